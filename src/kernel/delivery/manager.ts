// Runs the accounts of the channels: each under its own supervisor, with its courier and its live
// replies. One can fail, stop or be replaced without affecting the others.

import type { Channel, ChannelHost, ChannelStatus } from '../../channels/channel.ts';
import { accountsOf, CHANNELS } from '../../channels/index.ts';
import { supervise } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import { aborted } from '../../lib/time/clock.ts';
import { isUnknownSender, withoutCode } from '../access/admission.ts';
import type { Courier } from '../bus/bus.ts';
import type { SharedStore } from '../bus/store/shared.ts';
import type { StateStore } from '../bus/store/store.ts';
import { type Kernel, port } from '../feature.ts';
import { createSharedArrivals, type Receiver, type SharedArrivals } from '../intake/receive.ts';
import { ChannelError } from '../message/errors.ts';
import { type AccountName, accountNameOf, channelScope } from '../message/ids.ts';
import { isLate, lateNote } from '../message/late.ts';
import { type OutboundMessage, withNumbers } from '../message/message.ts';
import type { ChannelRegister, Owners } from '../owners.ts';
import { createLiveReplies, type LiveReplies } from './live-replies.ts';
import { createUndelivered, withoutFiles } from './undelivered.ts';

/** Accepts what channels receive. */
export const RECEIVER = port<Receiver>('receiver');
export const CHANNEL_MANAGER = port<ChannelManager>('channel manager');

export function install(kernel: Kernel): void {
  const { live, clock, log, store, bus, media, channels, judge, owners } = kernel;
  const arrivals = createSharedArrivals({
    ...{ state: store, judge, clock },
    hasSeveral(channel) {
      const definition = CHANNELS.find(({ name }) => name === channel);
      return definition !== undefined && accountsOf(definition, live.config.channels).length > 1;
    },
  });
  const manager = createChannelManager({
    ...{ bus, judge, arrivals, state: store, media, clock, log, directory: channels },
    receiver: kernel.use(RECEIVER),
    timeZone: () => live.config.sessions.timeZone,
    shared: store.shared,
    leads: kernel.options.role !== 'workers',
    owners,
    setAside: createUndelivered({ ...{ bus, clock, log }, ...owners }),
    onStopped: (name, { reason, remedy }) =>
      kernel.options.foreground(live.redact(t`${name} stopped: ${reason}. ${remedy}`)),
  });
  kernel.provide(CHANNEL_MANAGER, manager);
}

/** Waits before a failed channel restarts. */
const RESTART_MIN_MS = 1000;
const RESTART_MAX_MS = 300_000;
/** A channel that ran this long restarts without the wait of an earlier failure. */
const STABLE_MS = 600_000;
/** Chats of one account with concurrent sends. */
const DELIVERY_CONCURRENCY = 64;

type ManagerDeps = Pick<Kernel, 'bus' | 'judge' | 'clock' | 'log' | 'media'> & {
  /** The register of running channels. */
  readonly directory: ChannelRegister;
  readonly receiver: Receiver;
  readonly state: StateStore;
  /** IANA zone for people without one; empty = the machine's. */
  timeZone(): string;
  readonly owners: Pick<Owners, 'alert' | 'tell'>;
  /** A channel stopped until a person acts: reported to the gateway's operator. */
  onStopped(account: AccountName, status: StoppedStatus): void;
  readonly setAside: NonNullable<Courier['setAside']>;
  /** Which account answers what came to several. */
  readonly arrivals: SharedArrivals;
  /** Other processes may run the accounts. */
  readonly shared: SharedStore | undefined;
  /** This process runs accounts; otherwise it only has them for what turns need of them. */
  readonly leads: boolean;
};

type StoppedStatus = Extract<ChannelStatus, { readonly kind: 'stopped' }>;

type Running = {
  readonly intake: AbortController;
  readonly whole: AbortController;
  readonly done: Promise<void>;
};

export type ChannelManager = ReturnType<typeof createChannelManager>;

function createChannelManager(deps: ManagerDeps) {
  const { directory } = deps;
  const running = new Map<AccountName, Running>();

  async function stop(name: AccountName): Promise<void> {
    const current = running.get(name);
    if (current === undefined) return;
    running.delete(name);
    current.whole.abort();
    await current.done;
    directory.remove(name);
  }

  return {
    /** Starts the channel, replacing the one of that account. */
    async start(channel: Channel): Promise<void> {
      const name = accountNameOf(channel);
      await stop(name);
      const whole = new AbortController();
      const intake = new AbortController();
      const signals = {
        whole: whole.signal,
        intake: AbortSignal.any([whole.signal, intake.signal]),
      };
      const report = (status: ChannelStatus) => {
        if (isNewStop(status, directory.status(name))) deps.onStopped(name, status);
        directory.report(name, status);
      };
      directory.put(name, channel);
      report({ kind: 'starting' });
      const done = runChannel(channel, deps, report, signals);
      running.set(name, { intake, whole, done });
    },
    stop,
    /** Accepts nothing more, but continues delivering: the first half of a graceful stop. */
    stopReceiving(): void {
      for (const { intake } of running.values()) intake.abort();
    },
    async stopAll(): Promise<void> {
      await Promise.all([...running.keys()].map(stop));
    },
  };
}

const isNewStop = (now: ChannelStatus, before: ChannelStatus | undefined): now is StoppedStatus =>
  now.kind === 'stopped' && before?.kind !== 'stopped';

async function runChannel(
  channel: Channel,
  deps: ManagerDeps,
  report: (status: ChannelStatus) => void,
  signals: { readonly whole: AbortSignal; readonly intake: AbortSignal },
): Promise<void> {
  const log = deps.log.child({ channel: accountNameOf(channel) });
  const live = createLiveReplies({ ...deps, channel, log });
  const host = hostFor(channel, deps, { report, log, closing: signals.intake });
  const supervised = (
    name: string,
    signal: AbortSignal,
    run: (signal: AbortSignal) => Promise<void>,
  ) =>
    supervise(run, {
      name,
      signal,
      clock: deps.clock,
      log,
      minMs: RESTART_MIN_MS,
      maxMs: RESTART_MAX_MS,
      stableMs: STABLE_MS,
      onFailure: (error, waitMs) => reactTo(error, waitMs, deps, report),
    });
  const receive = (signal: AbortSignal) =>
    supervised('receive', signal, (runSignal) => channel.run(host, runSignal));
  const deliver = (signal: AbortSignal) =>
    supervised('deliver', signal, (runSignal) =>
      deps.bus.deliver(courierFor(channel, live, deps), {
        signal: runSignal,
        concurrency: DELIVERY_CONCURRENCY,
      }),
    );
  const show = (signal: AbortSignal) =>
    supervised(t`live replies`, signal, (runSignal) => live.run(runSignal));
  const lead = (run: (signal: AbortSignal) => Promise<unknown>) =>
    supervised('lead', signals.whole, (runSignal) =>
      deps.bus.lead(
        accountNameOf(channel),
        async (leading) => void (await run(leading)),
        runSignal,
      ),
    );
  if (channel.isEverywhere === true) {
    await Promise.all([receive(signals.whole), show(signals.whole), lead(deliver)]);
    return;
  }
  const isElsewhere = deps.shared !== undefined;
  if (isElsewhere) report({ kind: 'elsewhere' });
  if (!deps.leads) return aborted(signals.whole);
  await lead(async (leading) => {
    report({ kind: 'starting' });
    await Promise.all([receive(leading), deliver(leading), show(leading)]);
    if (isElsewhere) report({ kind: 'elsewhere' });
  });
}

function reactTo(
  error: unknown,
  waitMs: number,
  deps: ManagerDeps,
  report: (status: ChannelStatus) => void,
): 'restart' | 'stop' {
  const reason = error instanceof Error ? error.message : String(error);
  if (error instanceof ChannelError && error.remedy.kind === 'never') {
    // The channel has reported what a person must do; its own text stays.
    return 'stop';
  }
  report({ kind: 'degraded', reason, retryAt: deps.clock.now() + waitMs });
  return 'restart';
}

function hostFor(
  channel: Channel,
  deps: ManagerDeps,
  own: Pick<ChannelHost, 'report' | 'log' | 'closing'>,
): ChannelHost {
  const name = accountNameOf(channel);
  const scope = channelScope({ channel: channel.name, account: channel.account });
  return {
    ...own,
    receive: (batch, options) => deps.receiver.receive(batch, options),
    cursor: () => deps.bus.cursor(channel.name, channel.account),
    bounced: (id, reason) => deps.bus.markBounced(id, reason),
    async isUnknownSender(message) {
      return isUnknownSender(await deps.judge(message));
    },
    async isTrusted(message) {
      const verdict = withoutCode(await deps.judge(message));
      return verdict.kind === 'admit' && verdict.role !== 'guest';
    },
    answers: async (key, message) => (await deps.arrivals(name, key, message)) === name,
    alert: (text) => deps.owners.alert(name, text),
    tell: (text) => deps.owners.tell(text, name),
    // A process that lost the account must not write its keys over those of the new leader.
    state: deps.state.scope(scope, channel.isEverywhere === true ? undefined : name),
    onWrittenElsewhere: (hear) =>
      deps.shared?.onNews(
        ({ isAnything, scopes }) => (isAnything || scopes.has(scope)) && void hear(),
      ),
    clock: deps.clock,
    media: deps.media,
  };
}

/** Before a turn's final text is sent, its draft settles; the final text then replaces it. */
function courierFor(
  channel: Channel,
  live: LiveReplies,
  { timeZone, setAside }: ManagerDeps,
): Courier {
  const shown = (message: OutboundMessage) => {
    const carried = channel.attachments === undefined ? withoutFiles(message) : message;
    return channel.choices === undefined ? withNumbers(carried) : carried;
  };
  const reconcile = channel.reconcile?.bind(channel);
  return {
    account: accountNameOf(channel),
    onUnknown: channel.onUnknown,
    lifetimeMs: channel.lifetimeMs,
    ...(channel.readiness === undefined ? {} : { readiness: channel.readiness }),
    ...(channel.announcesRequests === true ? { announcesRequests: true } : {}),
    setAside,
    async send(queued, context) {
      const message = shown(queued);
      const { finalizes } = message;
      const settled =
        finalizes === undefined || context.sentParts.length > 0
          ? undefined
          : await live.settle(finalizes, message.markdown, context);
      const draft = settled ?? context.draft;
      const whole = draft === undefined ? context : { ...context, draft };
      const { question } = message;
      if (question === undefined || !isLate(question.at, context.textAt)) {
        return channel.send(message, whole);
      }
      // A draft that becomes the answer cannot become a reply.
      const isQuoted = channel.quotesWhenLate === true && draft === undefined;
      const note = lateNote(question, context.textAt, timeZone(), isQuoted);
      const markdown = `${note}\n\n${message.markdown}`;
      return channel.send({ ...message, markdown }, { ...whole, isLate: true });
    },
    ...(reconcile === undefined
      ? {}
      : { reconcile: (message, signal) => reconcile(shown(message), signal) }),
  };
}
