// Installs the configuration over HTTP; its code loads with the first request.

import type { Kernel } from '../../kernel/feature.ts';

export function install({ add, live, home, env, clock }: Kernel): void {
  add.routes(
    [
      'GET /api/v1/configuration',
      'GET /api/v1/configuration/events',
      'GET /api/v1/configuration/schema',
      'POST /api/v1/configuration/check',
      'POST /api/v1/configuration',
      'GET /api/v1/configuration/history',
      'POST /api/v1/configuration/restore',
    ],
    async () =>
      (await import('./configuration-routes.ts')).configurationRoutes({ live, home, env, clock }),
  );
}
