// Checks and links the platform channels for setup and doctor: tests credentials at the service and
// links WhatsApp when no gateway runs. The imports cost start-up time, so commands load this file
// on demand.

import { holdHome } from '../kernel/bus/store/home-lock.ts';
import type { EmbeddedStore } from '../kernel/bus/store/store.ts';
import { loadConfig } from '../kernel/config/files/config-file.ts';
import { LiveConfig } from '../kernel/config/files/live-config.ts';
import type { Kernel } from '../kernel/feature.ts';
import { openStore } from '../kernel/home-state.ts';
import { openMedia } from '../kernel/media/files.ts';
import { BusFullError } from '../kernel/message/errors.ts';
import { channelScope } from '../kernel/message/ids.ts';
import { createAfterwork } from '../lib/async.ts';
import { openLogFile } from '../lib/files/files.ts';
import { createLogger } from '../lib/logger.ts';
import { t } from '../lib/texts.ts';
import type { Channel, ChannelHost, LoginOptions, LoginStep } from './channel.ts';
import type { BotInfo, LarkCredentials } from './lark/api.ts';

export { checkMailLogins, discoverMailbox, proveMailbox } from './email/servers.ts';
export type { BotInfo as ProvenLarkBot, LarkCredentials } from './lark/api.ts';
export { type ProvenBot, pairingLink, proveTelegram, webhookOf } from './telegram/prove.ts';
export { readLinkHealth, reconnectsOfLastDay } from './whatsapp/link-status.ts';

/** Checks Lark credentials. The SDK is large, so it is loaded on demand. @throws ChannelError */
export async function proveLark(
  credentials: LarkCredentials,
  signal: AbortSignal,
): Promise<BotInfo> {
  const lark = await import('./lark/api.ts');
  return lark.proveLark(credentials, signal);
}

type LinkOptions = Pick<Kernel, 'home' | 'env' | 'clock'> & {
  readonly login: LoginOptions;
};

/**
 * Links the WhatsApp account in a home without a running gateway: runs only the channel until the
 * login ends. Messages that arrive meanwhile are refused, so that the platform keeps them for the
 * gateway. The last step is `done` or `failed` unless the signal aborts first.
 * @throws HomeLockedError where a gateway runs; ConfigError; what ends the channel's run.
 */
export async function* linkWhatsApp(
  { home, env, clock, login }: LinkOptions,
  signal: AbortSignal,
): AsyncGenerator<LoginStep, void, void> {
  await using resources = new AsyncDisposableStack();
  const holder = { pid: process.pid, startedAt: new Date(clock.now()).toISOString() };
  resources.use(await holdHome(home.lock, holder));
  const live = new LiveConfig(await loadConfig(home, env), env);
  const { level, keepDays } = live.config.logging;
  const { later } = resources.use(createAfterwork(clock));
  const destination = openLogFile({ folder: home.logs, clock, keepDays: () => keepDays, later });
  const log = createLogger({ level, destination, redact: live.redact, later });
  const store = resources.use(await openStore(home, { clock, log, setting: live.config.store }));
  const { createWhatsAppChannel } = await import('./whatsapp/whatsapp.ts');
  const current = () => live.config.channels.whatsapp;
  const allowFrom = () => current().allowFrom;
  const channel = createWhatsAppChannel(current(), { random: Math.random, allowFrom });
  const media = await openMedia({ live, clock, store, env }, home);
  const parts = { store, media, clock, log: log.child({ channel: channel.name }) };
  const host = hostFor(channel, parts);
  const over = new AbortController();
  // Not `signal`: the channel, which still runs, cleans up an aborted login.
  const run = channel.run(host, over.signal);
  resources.defer(async () => {
    over.abort();
    await run.catch(() => undefined);
  });
  yield* loginWhile(run, channel, login, signal);
}

type HostParts = Pick<ChannelHost, 'media' | 'clock' | 'log'> & { readonly store: EmbeddedStore };

function hostFor(channel: Channel, { store, media, clock, log }: HostParts): ChannelHost {
  return {
    receive() {
      return Promise.reject(new BusFullError(t`the gateway is not running yet`));
    },
    cursor: () => store.cursor(channel.name, channel.account),
    bounced: (id, reason) => store.markBounced(id, reason),
    answers: async () => true,
    isUnknownSender: async () => false,
    isTrusted: async () => false,
    report: (status) => log.debug('status while linking', { status: status.kind }),
    alert: () => log.warn('notice while linking'),
    tell: () => log.info('notice while linking'),
    closing: new AbortController().signal,
    state: store.scope(channelScope({ channel: channel.name, account: channel.account })),
    media,
    clock,
    log,
  };
}

/** Yields the steps; ends the login when the channel ends first. */
async function* loginWhile(
  run: Promise<void>,
  { login }: Channel,
  options: LoginOptions,
  signal: AbortSignal,
): AsyncGenerator<LoginStep, void, void> {
  if (login === undefined) return;
  const ended = run.then(() => undefined);
  const steps = login.begin(options, signal)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await Promise.race([steps.next(), ended]);
      if (next === undefined || next.done === true) return;
      yield next.value;
      if (next.value.kind === 'done' || next.value.kind === 'failed') return;
    }
  } finally {
    // Not awaited: a login that hangs ends with the channel's run.
    void Promise.resolve(steps.return?.()).catch(() => undefined);
  }
}
