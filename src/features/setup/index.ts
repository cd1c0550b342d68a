// The setup from the web page: models, by the steps of `nanobot onboard`.

import { MODELS } from '../../agent/models.ts';
import type { Kernel } from '../../kernel/feature.ts';

export function install(kernel: Kernel): void {
  const { add, live, home, env, clock, measuring } = kernel;
  add.routes(
    ['GET /api/v1/setup/models', 'POST /api/v1/setup/models', 'POST /api/v1/setup/models/listed'],
    async () => {
      const { modelRoutes } = await import('./model-routes.ts');
      const config = () => live.config;
      const { audit } = measuring;
      return modelRoutes({ home, env, clock, config, models: kernel.use(MODELS), audit });
    },
  );
}
