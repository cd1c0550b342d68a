// The setup from the web page: models, channels, voice, web search and tool servers, by the steps of `nanobot onboard`.

import { MODELS } from '../../agent/models.ts';
import { CONFIGURED_CHANNELS } from '../../channels/configured-channels.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { TOOL_SERVERS } from '../mcp/index.ts';

export function install(kernel: Kernel): void {
  const { add, live, home, env, clock, log } = kernel;
  const { audit } = kernel.measuring;
  const host = { home, env, clock };
  const models = kernel.use(MODELS);
  const publicUrl = () => live.config.gateway.publicUrl;
  add.routes(
    ['GET /api/v1/setup/models', 'POST /api/v1/setup/models', 'POST /api/v1/setup/models/listed'],
    async () => {
      const { modelRoutes } = await import('./model-routes.ts');
      return modelRoutes(kernel);
    },
  );
  add.routes(
    [
      'GET /api/v1/setup',
      'GET /api/v1/setup/events',
      'POST /api/v1/setup/channels/:name',
      'POST /api/v1/setup/channels/:name/login',
      'POST /api/v1/setup/channels/:name/restart',
      'POST /api/v1/setup/voice',
      'POST /api/v1/setup/search',
      'POST /api/v1/setup/tool-servers',
      'POST /api/v1/setup/tool-servers/:name/login',
      'POST /api/v1/setup/answers/:question',
    ],
    async () => {
      const { setupRoutes } = await import('./setup-routes.ts');
      const { modelInUse } = await import('./model-routes.ts');
      const { extrasOf } = await import('./extras.ts');
      return setupRoutes({
        ...{ ...host, log, audit },
        channels: kernel.use(CONFIGURED_CHANNELS),
        model: () => modelInUse(models.current()),
        extras: () => extrasOf(live.config, env),
        logIn: async (asker, name) => {
          const { logInToServer } = await import('../mcp/login-step.ts');
          const servers = kernel.use(TOOL_SERVERS);
          await logInToServer(host, asker, name, { servers, publicUrl });
        },
        redact: live.redact,
      });
    },
  );
}
