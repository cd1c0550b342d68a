// The state of the gateway and its channels over HTTP: status, readiness (a running channel has stalled
// when it completes no poll, IDLE or ping for a while), metrics, and logging in to and restarting a
// channel.

import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { ChannelStatus, LoginOptions, LoginStep } from '../channels/channel.ts';
import type { PeerState } from '../features/cluster/peer-set.ts';
import type { ToolServerReport } from '../features/mcp/mcp.ts';
import { NanobotError } from '../kernel/message/errors.ts';
import type { GaugeValues, MetricsPage } from '../kernel/observe/telemetry.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { MissingTool } from '../tools/tool.ts';
import { eventText, Refusal, replyWithEvents, valid } from './replies.ts';

export type GatewayStatus = {
  /** The model that answers unless a chat chose another. */
  readonly model: string;
  readonly channels: readonly {
    readonly name: string;
    readonly status: ChannelStatus | { readonly kind: 'off'; readonly remedy: string };
    /** What a limit holds back and why. */
    readonly waiting?: string;
  }[];
  /** Servers whose tools the agent gets, and tools that cannot work. */
  readonly tooling: {
    readonly servers: readonly ToolServerReport[];
    readonly missing: readonly MissingTool[];
  };
  /** Other machines that run models; left out: nothing is known of any. */
  readonly peers?: readonly PeerState[];
  /** How long the disk has been holding back a write of the store. */
  readonly storeWaitMs: number;
};

/** A channel that completed nothing for so long has stalled. */
const STALLED_MS = 150_000;
/** A disk that holds back a write for so long is not merely busy. */
const SLOW_STORE_MS = 5000;

/** A channel that is off is nobody's concern; one that is starting or failing is not ready. */
export function readinessOf(
  { channels, storeWaitMs }: Pick<GatewayStatus, 'channels' | 'storeWaitMs'>,
  now: number,
) {
  const judged = channels.map(({ name, status, waiting }) => {
    const held = waiting === undefined ? {} : { waiting };
    if (status.kind !== 'running') return { name, ready: status.kind === 'off', status, ...held };
    // Since the last completed poll, IDLE or ping.
    const idleMs = Math.max(0, now - status.activeAt);
    return { name, ready: idleMs <= STALLED_MS, status, ...held, idleMs };
  });
  const store = { ready: storeWaitMs <= SLOW_STORE_MS, waitMs: storeWaitMs };
  const ready = store.ready && judged.every((channel) => channel.ready);
  return { ready, store, channels: judged };
}

// What Prometheus scrapes, with the gateway's token as a bearer token; a login of the page is not enough.

type MetricsRouteOptions = {
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

// The platform channels over HTTP: how they fare, connecting the account of one that a person's phone
// connects, and starting one again.
//   GET  /api/channels                  {channels: [{name, label, status, canLogIn}]}
// A further account is named behind its channel: email@work.
//   POST /api/channels/<name>/login     {phoneNumber?}; server-sent events, one per step; ends with it
//   POST /api/channels/<name>/restart   {}; 202 once it was started again

export type ChannelView = GatewayStatus['channels'][number] & {
  /** The name as people write it. */
  readonly label: string;
  /** It runs, and a person can connect its account here. */
  readonly canLogIn: boolean;
};

/** What may be done to the channels from outside, by their names. */
export interface ChannelControl {
  channels(): readonly ChannelView[];
  /** Undefined where the channel is not there or connects no account so. */
  login(
    name: string,
    options: LoginOptions,
    signal: AbortSignal,
  ): AsyncIterable<LoginStep> | undefined;
  /** False where no such channel is on. */
  restartChannel(name: string): Promise<boolean>;
}

type ChannelRoutesOptions = {
  readonly control: ChannelControl;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborts when the server closes. */
  readonly closing: AbortSignal;
};

/** A step as it is sent: a QR code comes with its picture, so that nobody else has to draw it. */
export type SentLoginStep =
  | Exclude<LoginStep, { readonly kind: 'show_qr' }>
  | (Extract<LoginStep, { readonly kind: 'show_qr' }> & {
      /** An SVG as a `data:` address. */
      readonly image: string;
    });

const channelParams = z.object({
  name: z.string().regex(/^[a-z0-9-]{1,64}(@[a-z0-9-]{1,32})?$/, 'is no name'),
});
const loginBody = z.strictObject({
  phoneNumber: z
    .string()
    .regex(/^\d{8,15}$/, 'is an international number: 8 to 15 digits and nothing else')
    .optional(),
});

export function addChannelRoutes(app: FastifyInstance, options: ChannelRoutesOptions) {
  const { control, clock, closing } = options;

  app.get('/api/channels', async (_request, reply) => {
    reply.header('cache-control', 'no-store');
    return { channels: control.channels() };
  });

  app.post('/api/channels/:name/login', (request, reply) => {
    const { name } = valid(channelParams, request.params);
    const { phoneNumber } = valid(loginBody, request.body);
    const view = known(control, name);
    if (!view.canLogIn) throw new Refusal(409, 'no_login', noLoginText(view));
    const asked = phoneNumber === undefined ? {} : { phoneNumber };
    return replyWithEvents(reply, {
      clock,
      closing,
      render: eventText,
      events: (signal) => loginSteps(name, asked, options, signal),
    });
  });

  app.post('/api/channels/:name/restart', async (request, reply) => {
    const { name } = valid(channelParams, request.params);
    valid(z.strictObject({}), request.body);
    const view = known(control, name);
    if (!(await control.restartChannel(name))) throw new Refusal(409, 'channel_off', offText(view));
    return reply.code(202).send({ result: 'restarted' });
  });
}

function known(control: ChannelControl, name: string): ChannelView {
  const view = control.channels().find((channel) => channel.name === name);
  if (view !== undefined) return view;
  throw new Refusal(404, 'not_found', 'There is no channel of this name.');
}

function noLoginText(view: ChannelView): string {
  return view.status.kind === 'off'
    ? offText(view)
    : `${view.label} is connected by its configuration, not here.`;
}

function offText({ label, status }: ChannelView): string {
  const remedy = status.kind === 'off' ? status.remedy : 'Turn it on in the configuration.';
  return `${label} is off. ${remedy}`;
}

/** An error becomes the last step, so that the person is never left with a mere silence. */
async function* loginSteps(
  name: string,
  asked: LoginOptions,
  { control, log }: ChannelRoutesOptions,
  signal: AbortSignal,
): AsyncGenerator<SentLoginStep, void, void> {
  try {
    const steps = control.login(name, asked, signal);
    if (steps === undefined) throw new NanobotError('channel_gone', 'the channel was turned off');
    for await (const step of steps) yield step.kind === 'show_qr' ? await withImage(step) : step;
  } catch (error) {
    if (signal.aborted) return;
    log.warn('login failed', { channel: name, error });
    const isOurs = error instanceof NanobotError;
    const reason = isOurs ? error.message : 'something went wrong in the gateway';
    yield { kind: 'failed', reason, remedy: 'Try again; the gateway’s log says more.' };
  }
}

async function withImage(
  step: Extract<LoginStep, { readonly kind: 'show_qr' }>,
): Promise<SentLoginStep> {
  const { qrMatrix, qrSvg } = await import('../lib/qr-code.ts');
  const svg = Buffer.from(qrSvg(qrMatrix(step.qr))).toString('base64');
  return { ...step, image: `data:image/svg+xml;base64,${svg}` };
}
