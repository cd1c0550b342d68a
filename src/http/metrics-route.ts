// What Prometheus scrapes, with the gateway's token as a bearer token.

import type { FastifyInstance } from 'fastify';
import type { GaugeValues, MetricsPage } from '../telemetry/telemetry.ts';

export type MetricsRouteOptions = {
  /** Left out where it is switched off. */
  readonly metrics: MetricsPage | undefined;
  readonly gauges: () => Promise<GaugeValues>;
};

export function addMetricsRoute(
  app: FastifyInstance,
  { metrics: page, gauges }: MetricsRouteOptions,
): void {
  if (page === undefined) return;
  app.get('/metrics', async (_request, reply) =>
    reply
      .header('cache-control', 'no-store')
      .type(page.contentType)
      .send(await page.render(await gauges())),
  );
}
