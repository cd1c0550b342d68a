// What Prometheus scrapes, with the gateway's token as a bearer token; a login of the page is not enough.

import type { FastifyInstance } from 'fastify';
import type { GaugeValues, MetricsPage } from '../kernel/observe/telemetry.ts';
import { Refusal } from './failure-reply.ts';

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
  app.get('/metrics', async (request, reply) => {
    if (request.credential?.kind !== 'token') {
      const message = 'Metrics need the gateway token: send it as a bearer token.';
      throw new Refusal(403, 'token_needed', message);
    }
    return reply
      .header('cache-control', 'no-store')
      .type(page.contentType)
      .send(await page.render(await gauges()));
  });
}
