// The gateway as a running thing: starts channels and work, applies changed configurations, and
// stops in order: take no more in, let running turns finish, deliver, close.

import type { Models } from '../agent/models.ts';
import type { LoginOptions, LoginStep } from '../channels/channel.ts';
import { ConfiguredChannels } from '../channels/configured-channels.ts';
import type { Door } from '../channels/door.ts';
import { accountsOf, CHANNELS } from '../channels/index.ts';
import type { PeerState } from '../features/cluster/peer-set.ts';
import { keepTidy } from '../features/health/upkeep.ts';
import type { Tooling, ToolingReport } from '../features/mcp/tool-servers.ts';
import type { People } from '../features/people/people.ts';
import { type HttpParts, loginLink, type ServedHttp, serveHttp } from '../http/serve-http.ts';
import type { MessageBus, Turn } from '../kernel/bus/bus.ts';
import type { EmbeddedStore, StateStore } from '../kernel/bus/store/store.ts';
import type { ChannelDirectory } from '../kernel/channels.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import { programVersion } from '../kernel/config/files/package-files.ts';
import type { Contributed } from '../kernel/contributions.ts';
import type { ChannelManager } from '../kernel/delivery/manager.ts';
import type { Doors } from '../kernel/intake/doors.ts';
import type { GroupBuffer } from '../kernel/intake/group-intake.ts';
import type { Judge } from '../kernel/intake/judge.ts';
import { createSharedArrivals, type SharedArrivals } from '../kernel/intake/receive.ts';
import type { MediaReader, MediaStore } from '../kernel/media/media.ts';
import { type ChannelName, channelName, chatId, DEFAULT_ACCOUNT } from '../kernel/message/ids.ts';
import type { ChatRef, OutboundDraft } from '../kernel/message/message.ts';
import type { Measuring } from '../kernel/observe/build-telemetry.ts';
import type { TellOwner } from '../kernel/owners.ts';
import type { Questions } from '../kernel/questions/questions.ts';
import type { Dispatcher } from '../kernel/turns/dispatcher.ts';
import { type Permits, supervise } from '../lib/async.ts';
import type { Logger } from '../lib/logger.ts';
import { aborted, type Clock } from '../lib/time/clock.ts';
import type { ChannelReport, Gateway, GatewayOptions } from './gateway.ts';
import { followConfig } from './reload.ts';
import { announceGateway } from './running-gateway.ts';

export type GatewayParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: StateStore & Pick<EmbeddedStore, 'lost' | 'waitMs'>;
  readonly bus: MessageBus;
  readonly models: Models;
  readonly manager: ChannelManager;
  readonly dispatcher: Dispatcher;
  readonly permits: Permits;
  /** Ends the answer there and what belongs to it. */
  stopIn(chat: ChatRef): Promise<void>;
  readonly doors: Doors;
  readonly people: People;
  readonly groupTalk: Pick<GroupBuffer, 'expire'>;
  readonly questions: Questions;
  readonly channels: ChannelDirectory;
  readonly contributed: Pick<Contributed, 'tasks'>;
  readonly media: MediaStore;
  readonly reader: Pick<MediaReader, 'sweep'>;
  readonly tooling: Tooling;
  /** Other machines that run models. */
  peers(): readonly PeerState[];
  readonly measuring: Measuring;
  readonly spending: HttpParts['spending'];
  readonly tell: TellOwner;
};

/** Sessions whose messages are held at once; their places at the model are counted apart. */
const MAX_OPEN_TURNS = 2000;
/** Tries of one message before it is set aside. */
const MAX_ATTEMPTS = 3;
/** After the last turn ended its answers still have to go out. */
const DELIVERY_GRACE_MS = 5000;
const POLL_IDLE_MS = 50;
/** Waits of our own work after the store failed under it, e.g. on a full disk. */
const WORK_RESTARTS = { minMs: 500, maxMs: 30_000, stableMs: 60_000 };

const shortageNotice = (what: string) =>
  `nanobot is short of ${what} on its machine. Messages wait and are tried again until there is enough; ` +
  'none is set aside for it. Free some, or raise the limit of the service.';

export class GatewayService implements Gateway {
  readonly #parts: GatewayParts;
  readonly #options: GatewayOptions;
  readonly #resources: AsyncDisposableStack;
  readonly #channels: ConfiguredChannels;
  #served: ServedHttp | undefined;

  constructor(parts: GatewayParts, options: GatewayOptions, resources: AsyncDisposableStack) {
    this.#parts = parts;
    this.#options = options;
    this.#resources = resources;
    this.#channels = new ConfiguredChannels(parts, options.channels);
  }

  get address(): string | undefined {
    return this.#served?.address;
  }

  loginLink(): string | undefined {
    if (this.#served === undefined) return undefined;
    const { address, access } = this.#served;
    return loginLink(address, access.makeCode().code);
  }

  /** Ends what the old token opened, where this is another one. */
  async useToken(token: string): Promise<void> {
    await this.#served?.access.useToken(token);
  }

  get model(): string {
    return this.#parts.models.current().defaultModel;
  }

  peers(): readonly PeerState[] {
    return this.#parts.peers();
  }

  tooling(): ToolingReport {
    return this.#parts.tooling.report();
  }

  toolsTried(): Promise<void> {
    return this.#parts.tooling.tried();
  }

  get terminal(): Door {
    return this.#parts.doors.terminal;
  }

  /** Opens the web page's address; where it is taken the start is refused. */
  async listen(): Promise<void> {
    if (this.#options.http) {
      this.#served = await serveHttp(this, this.#parts, this.#options);
      this.#resources.use(this.#served.server);
    }
    const host = this.#served === undefined ? undefined : this.#parts.live.config.gateway.host;
    const self = { address: this.address, host, startedAt: Date.now() };
    this.#resources.defer(await announceGateway(this.#options.home, self));
  }

  channels(): readonly ChannelReport[] {
    return this.#channels.reports();
  }

  login(
    name: string,
    options: LoginOptions,
    signal: AbortSignal,
  ): AsyncIterable<LoginStep> | undefined {
    return this.#channels.login(name, options, signal);
  }

  async stop(chat: string): Promise<void> {
    await this.stopChat(channelName('terminal'), chat);
  }

  async stopChat(channel: ChannelName, chat: string): Promise<void> {
    await this.#parts.stopIn({ channel, account: DEFAULT_ACCOUNT, chat: chatId(chat) });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { log, manager } = this.#parts;
    const stopping = new AbortController();
    const whole = AbortSignal.any([signal, stopping.signal]);
    await this.#startChannels();
    log.info('gateway started', { model: this.model, address: this.address });
    this.#audit('started');
    const kept = (name: string, run: (runSignal: AbortSignal) => Promise<void>) =>
      supervise(run, {
        ...{ name, signal: whole, clock: this.#parts.clock, log, ...WORK_RESTARTS },
        onFailure: () => 'restart',
      });
    const work = kept('turns', (workSignal) => this.#work(workSignal));
    const background = [
      ...this.#parts.contributed
        .tasks()
        .map((part) => kept(part.name, (runSignal) => part.run(runSignal))),
      followConfig(this, this.#parts, this.#options, whole),
      keepTidy(this.#parts, whole),
    ];
    try {
      await Promise.race([aborted(signal), this.#parts.store.lost, work, ...background]);
    } finally {
      log.info('gateway stopping');
      manager.stopReceiving();
      stopping.abort();
      await work;
      await this.#delivered();
      await Promise.allSettled([...background, manager.stopAll()]);
      log.info('gateway stopped');
      this.#audit('stopped');
    }
  }

  #audit(what: 'started' | 'stopped'): void {
    const fields = { what, pid: process.pid, version: programVersion() };
    this.#parts.measuring.audit.note({ kind: 'gateway', fields });
  }

  async #startChannels(): Promise<void> {
    const { doors, manager } = this.#parts;
    await Promise.all([manager.start(doors.web), manager.start(doors.terminal)]);
    await this.#channels.startAll();
  }

  restartChannel(name: string): Promise<boolean> {
    return this.#channels.restart(name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }

  /** After the signal, running turns may go on for `drainSecs`; the rest goes on after a restart. */
  #work(signal: AbortSignal): Promise<void> {
    const { bus, dispatcher, live } = this.#parts;
    const { typed = (text) => text } = this.#options;
    const typedIn = (drafts: readonly OutboundDraft[]) =>
      drafts.map((draft) => ({ ...draft, markdown: typed(draft.markdown) }));
    const handle = async (turn: Turn) => {
      const handled = await dispatcher.handle(turn);
      const isAgents = handled.ending === 'answered' || handled.ending === 'stopped';
      return isAgents ? handled : { ...handled, outbound: typedIn(handled.outbound) };
    };
    return bus.work(handle, {
      signal,
      maxOpenTurns: MAX_OPEN_TURNS,
      maxAttempts: MAX_ATTEMPTS,
      drainMs: live.config.gateway.drainSecs * 1000,
      onShortage: (what) => this.#parts.tell(shortageNotice(what)),
      onPoison: (turn) => typedIn(dispatcher.onPoison(turn)),
    });
  }

  /** Gives the last answers a moment to go out. */
  async #delivered(): Promise<void> {
    const { clock, bus } = this.#parts;
    const until = clock.monotonic() + DELIVERY_GRACE_MS;
    while (clock.monotonic() < until && (await bus.stats()).outboundQueued > 0) {
      await clock.sleep(POLL_IDLE_MS);
    }
  }
}

// Builds what lets one account answer where a message came to several.

export type ArrivalsParts = {
  readonly live: LiveConfig;
  readonly store: StateStore;
  readonly clock: Clock;
  readonly judge: Judge;
};

export function buildArrivals({ live, store, clock, judge }: ArrivalsParts): SharedArrivals {
  return createSharedArrivals({
    ...{ state: store, judge, clock },
    hasSeveral(channel) {
      const definition = CHANNELS.find(({ name }) => name === channel);
      return definition !== undefined && accountsOf(definition, live.config.channels).length > 1;
    },
  });
}
