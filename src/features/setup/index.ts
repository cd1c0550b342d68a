// The setup from the web page: models and channels, by the steps of `nanobot onboard`.

import { MODELS } from '../../agent/models.ts';
import { CONFIGURED_CHANNELS } from '../../channels/configured-channels.ts';
import type { Kernel } from '../../kernel/feature.ts';

export function install(kernel: Kernel): void {
  const { add, live, home, env, clock, log } = kernel;
  const { audit } = kernel.measuring;
  const host = { home, env, clock };
  const models = kernel.use(MODELS);
  add.routes(
    ['GET /api/v1/setup/models', 'POST /api/v1/setup/models', 'POST /api/v1/setup/models/listed'],
    async () => {
      const { modelRoutes } = await import('./model-routes.ts');
      return modelRoutes({ ...host, config: () => live.config, models, audit });
    },
  );
  add.routes(
    [
      'GET /api/v1/setup/events',
      'POST /api/v1/setup/channels/:name',
      'POST /api/v1/setup/channels/:name/login',
      'POST /api/v1/setup/channels/:name/restart',
      'POST /api/v1/setup/answers/:question',
    ],
    async () => {
      const { setupRoutes } = await import('./setup-routes.ts');
      const { modelInUse } = await import('./model-routes.ts');
      return setupRoutes({
        ...{ ...host, log, audit },
        channels: kernel.use(CONFIGURED_CHANNELS),
        model: () => modelInUse(models.current()),
        redact: (text) => live.redact(text),
      });
    },
  );
}
