// The running gateway: starts channels and background work, applies changed configurations, and
// stops in order: no more intake, wait for running turns, deliver, close.

import { MODELS } from './agent/models.ts';
import type { LoginOptions, LoginStep } from './channels/channel.ts';
import { CONFIGURED_CHANNELS, type ConfiguredChannels } from './channels/configured-channels.ts';
import type { LocalChannel } from './channels/local-channel.ts';
import { STOP } from './features/conversations/index.ts';
import { TOOL_SERVERS } from './features/mcp/index.ts';
import { loginLink, type ServedHttp, serveHttp } from './http/serve-http.ts';
import { type Turn, TurnDeferred } from './kernel/bus/bus.ts';
import { programVersion } from './kernel/config/files/home.ts';
import type { BackgroundTask } from './kernel/contributions.ts';
import type { ChannelManager } from './kernel/delivery/manager.ts';
import { CHANNEL_MANAGER } from './kernel/delivery/manager.ts';
import type { Kernel } from './kernel/feature.ts';
import type { ChannelReport, Gateway } from './kernel/gateway.ts';
import { announceGateway } from './kernel/home-state.ts';
import { createLocalChannels, type LocalChannels } from './kernel/intake/routes.ts';
import { GatewayMustEnd, ProviderError } from './kernel/message/errors.ts';
import { channelName, chatId, DEFAULT_ACCOUNT } from './kernel/message/ids.ts';
import type { OutboundDraft } from './kernel/message/message.ts';
import { followConfig } from './kernel/reload.ts';
import type { Dispatcher } from './kernel/turns/dispatcher.ts';
import { DISPATCHER } from './kernel/turns/dispatcher.ts';
import { supervise } from './lib/async.ts';
import { t } from './lib/texts.ts';
import { aborted, comesTrue } from './lib/time/clock.ts';
import type { ModelRegistry } from './providers/provider.ts';

/**
 * Turns that do not use the model: they run a command, or wait for the rest of a question or for a
 * slot.
 */
const OTHER_OPEN_TURNS = 1000;
/** Attempts for one message before it becomes a dead letter. */
const MAX_ATTEMPTS = 3;
/** Time for delivering answers after the last turn ended. */
const DELIVERY_GRACE_MS = 5000;
const POLL_IDLE_MS = 50;
/** For turns that a trial leaves alone, epoch milliseconds. */
const NEVER_MS = Number.MAX_SAFE_INTEGER;
const TERMINAL = channelName('terminal');
/** Before the names of tasks that one of several processes leads. */
const TASK = 'task ';
/** Delays before background work restarts after a store failure, e.g. on a full disk. */
const WORK_RESTARTS = { minMs: 500, maxMs: 30_000, stableMs: 60_000 };

const shortageNotice = (what: string) =>
  t`nanobot is low on ${what}. Messages wait and are retried; none is lost. ` +
  t`Free some, or raise the limit of the service.`;

export class GatewayService implements Gateway {
  readonly #kernel: Kernel;
  readonly #manager: ChannelManager;
  readonly #dispatcher: Dispatcher;
  readonly #models: { current(): ModelRegistry };
  readonly #localChannels: LocalChannels;
  readonly #channels: ConfiguredChannels;
  #served: ServedHttp | undefined;

  constructor(kernel: Kernel) {
    const { clock, live } = kernel;
    this.#kernel = kernel;
    this.#manager = kernel.use(CHANNEL_MANAGER);
    this.#dispatcher = kernel.use(DISPATCHER);
    this.#models = kernel.use(MODELS);
    this.#localChannels = createLocalChannels(clock, () => live.config.media.maxFileBytes);
    this.#channels = kernel.use(CONFIGURED_CHANNELS);
  }

  get address(): string | undefined {
    return this.#served?.address;
  }

  async loginLink(): Promise<string | undefined> {
    if (this.#served === undefined) return undefined;
    const { address, access } = this.#served;
    return loginLink(address, (await access.makeCode()).code);
  }

  /** Ends all logins of the previous token when the token changes. */
  async useToken(token: string): Promise<void> {
    await this.#served?.access.useToken(token);
  }

  get model(): string {
    return this.#models.current().defaultModel;
  }

  modelProblem(): string | undefined {
    const models = this.#models.current();
    try {
      models.resolve(models.defaultModel);
      return undefined;
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      return error.userText ?? error.message;
    }
  }

  toolsTried(): Promise<void> {
    return this.#kernel.use(TOOL_SERVERS).tried();
  }

  get terminal(): LocalChannel {
    return this.#localChannels.terminal;
  }

  /** Listens on the address of the web page. @throws where the address is in use */
  async listen(): Promise<void> {
    const { live, home, options, resources } = this.#kernel;
    if (options.http) {
      this.#served = await serveHttp(this.#kernel, this.#localChannels);
      resources.use(this.#served.server);
    }
    const host = this.#served === undefined ? undefined : live.config.gateway.host;
    const self = { address: this.address, host, startedAt: Date.now() };
    resources.defer(await announceGateway(home, self));
  }

  channels(): readonly ChannelReport[] {
    return this.#channels.channels();
  }

  login(
    name: string,
    options: LoginOptions,
    signal: AbortSignal,
  ): AsyncIterable<LoginStep> | undefined {
    return this.#channels.login(name, options, signal);
  }

  stop(chat: string): Promise<void> {
    return this.#kernel.use(STOP)({
      channel: TERMINAL,
      account: DEFAULT_ACCOUNT,
      chat: chatId(chat),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { log, clock, store, contributed, options } = this.#kernel;
    const manager = this.#manager;
    const stopping = new AbortController();
    const whole = AbortSignal.any([signal, stopping.signal]);
    await this.#startChannels();
    log.info('gateway started', { model: this.model, address: this.address });
    this.#audit('started');
    const kept = (name: string, run: (runSignal: AbortSignal) => Promise<void>) =>
      supervise(run, {
        ...{ name, signal: whole, clock, log, ...WORK_RESTARTS },
        onFailure(error) {
          if (error instanceof GatewayMustEnd) throw error;
          return 'restart';
        },
      });
    const work =
      options.role === 'channels'
        ? aborted(whole)
        : kept('turns', (workSignal) => this.#work(workSignal));
    const isTrial = options.trialChat !== undefined;
    const tasks = isTrial ? [] : contributed.tasks();
    const background = [
      ...tasks.map((part) => kept(part.name, (runSignal) => this.#perform(part, runSignal))),
      ...(isTrial ? [] : [followConfig(this, this.#kernel, whole)]),
    ];
    try {
      await Promise.race([aborted(signal), store.lost, work, ...background]);
    } finally {
      log.info('gateway stopping');
      manager.stopReceiving();
      stopping.abort();
      // Where others run accounts they take over these at once, with the answers of the last turns.
      const handedOver = store.shared?.hasOtherChannels() === true ? manager.stopAll() : undefined;
      store.shared?.drain();
      store.endSoon?.();
      await work;
      if (!isTrial && handedOver === undefined) await this.#delivered().catch(() => undefined);
      await Promise.allSettled([...background, handedOver ?? manager.stopAll()]);
      log.info('gateway stopped');
      this.#audit('stopped');
    }
  }

  /** What runs once is led by one process. */
  #perform({ name, isOnce, run }: BackgroundTask, signal: AbortSignal): Promise<void> {
    if (isOnce !== true) return run(signal);
    return this.#kernel.bus.lead(TASK + name, (leading) => run(leading), signal);
  }

  #audit(what: 'started' | 'stopped'): void {
    const fields = { what, pid: process.pid, version: programVersion() };
    this.#kernel.measuring.audit.note({ kind: 'gateway', fields });
  }

  async #startChannels(): Promise<void> {
    const { web, terminal } = this.#localChannels;
    if (this.#kernel.options.trialChat !== undefined) return this.#manager.start(terminal);
    await Promise.all([this.#manager.start(web), this.#manager.start(terminal)]);
    await this.#channels.startAll();
  }

  restartChannel(name: string): Promise<boolean> {
    return this.#channels.restartChannel(name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kernel.resources.disposeAsync();
  }

  /**
   * After the signal, running turns may continue for `drainSecs`; the others resume after a
   * restart.
   */
  #work(signal: AbortSignal): Promise<void> {
    const { bus, live, owners, options } = this.#kernel;
    const { typed = (text) => text, trialChat } = options;
    const dispatcher = this.#dispatcher;
    const typedIn = (drafts: readonly OutboundDraft[]) =>
      drafts.map((draft) => ({ ...draft, markdown: typed(draft.markdown) }));
    const handle = async (turn: Turn) => {
      const isMeant = turn.chat.channel === TERMINAL && turn.chat.chat === trialChat;
      if (trialChat !== undefined && !isMeant) throw new TurnDeferred('a trial', NEVER_MS);
      const handled = await dispatcher.handle(turn);
      const isAgents = handled.ending === 'answered' || handled.ending === 'stopped';
      return isAgents ? handled : { ...handled, outbound: typedIn(handled.outbound) };
    };
    return bus.work(handle, {
      signal,
      maxOpenTurns: () => live.defaults.maxConcurrentChats + OTHER_OPEN_TURNS,
      maxAttempts: MAX_ATTEMPTS,
      drainMs: live.config.gateway.drainSecs * 1000,
      onShortage: (what) => owners.tell(shortageNotice(what)),
      onPoison: (turn) => typedIn(dispatcher.onPoison(turn)),
    });
  }

  /** Waits a moment for the delivery of the last answers. */
  async #delivered(): Promise<void> {
    const { clock, bus } = this.#kernel;
    const limits = { withinMs: DELIVERY_GRACE_MS, everyMs: POLL_IDLE_MS };
    await comesTrue(clock, limits, async () => (await bus.stats()).outboundQueued === 0);
  }
}
