// The life of one configured server: connects, lists the tools, lists them again when they change,
// and reconnects. The delay between attempts grows. A server that lost its connection keeps its
// tools while it reconnects.

import type { Kernel } from '../../kernel/feature.ts';
import type { MediaStore } from '../../kernel/media/media.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { supervise, within } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import { following, orAborted, reasonFirst, withDeadline } from '../../lib/time/clock.ts';
import type { Provenance } from '../../tools/files/provenance.ts';
import type { Tool } from '../../tools/tool.ts';
import {
  type CallOptions,
  type Connection,
  type ConnectionDeps,
  callFailure,
  connect,
} from './connection.ts';
import { LoginNeeded, type LoginRows, mayLogIn, ServerLogin } from './login.ts';
import { createRemoteTools, type RemoteTools } from './remote-tool.ts';
import type { ToolServerConfig } from './settings.ts';

export type ToolServerDeps = Omit<ConnectionDeps, 'config' | 'folder' | 'login'> &
  Pick<Kernel, 'clock' | 'log'> & {
    readonly logins: LoginRows;
    readonly media: Pick<MediaStore, 'put'>;
    readonly own: Pick<Provenance, 'running'>;
    /** Masks the values of configured secrets. */
    readonly redact: (text: string) => string;
    /** The working folder of a server with this configuration. */
    folderOf(config: ToolServerConfig): string;
    /** A server needs a login of the owner, who was not told of it yet. */
    loginNeeded(name: string): void;
  };

const WAITS = { minMs: 1000, maxMs: 300_000, stableMs: 60_000 };
/** An idle server is pinged; one with calls in progress is not. */
const PING_EVERY_MS = 60_000;
const PING_TIMEOUT_MS = 20_000;
/** Delay between two listings of tools that keep changing. */
const LOOK_AGAIN_MS = 2000;
/** Time that a call waits for a server that reconnects. */
const WAIT_MS = 15_000;
/** A shorter connection counts as a failed attempt. */
const WORKED_MS = 5000;

export class ToolServer {
  readonly name: string;
  readonly config: ToolServerConfig;
  readonly #deps: ToolServerDeps;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #state: ToolServerState = { kind: 'starting' };
  #remote: RemoteTools;
  #connection = Promise.withResolvers<Connection>();
  readonly #tried = Promise.withResolvers<void>();
  readonly #login: ServerLogin | undefined;
  readonly #redact: (text: string) => string;
  #loggedIn = Promise.withResolvers<void>();
  #calls = 0;

  constructor(name: string, config: ToolServerConfig, deps: ToolServerDeps) {
    this.name = name;
    this.config = config;
    this.#deps = deps;
    const { clock, proxy, resolver, logins: rows } = deps;
    if (mayLogIn(config))
      this.#login = new ServerLogin({ name, config, rows, clock, proxy, resolver });
    const redact = (text: string) => this.#login?.mask(deps.redact(text)) ?? deps.redact(text);
    this.#redact = redact;
    this.#connection.promise.catch(() => undefined);
    this.#remote = createRemoteTools({
      ...{ server: name, config, media: deps.media, own: deps.own, redact },
      isAvailable: () => this.#state.kind === 'connected' || this.#state.kind === 'lost',
      unavailableBecause: () => t`the tool server ${name} ${unavailable(this.#state)}`,
      call: (tool, input, options) => this.#call(tool, input, options),
    });
  }

  get tools(): readonly Tool[] {
    return this.#remote.tools;
  }

  /** Resolves when it was connected or failed once. */
  get tried(): Promise<void> {
    return this.#tried.promise;
  }

  report(): ToolServerReport {
    return {
      name: this.name,
      transport: this.config.url === '' ? 'stdio' : 'http',
      state: this.#shownState(),
      tools: this.tools.map(({ name }) => name),
    };
  }

  /** Undefined: it is no hosted server, or has a configured key. */
  get login(): ServerLogin | undefined {
    return this.#login;
  }

  /** Connects anew if it waits for a login. */
  loggedIn(): void {
    this.#loggedIn.resolve();
  }

  #shownState(): ToolServerState {
    const state = this.#state;
    if (!('reason' in state)) return state;
    return { ...state, reason: this.#redact(state.reason) };
  }

  start(): void {
    const { clock, log } = this.#deps;
    this.#running = supervise((signal) => this.#live(signal), {
      ...{ name: `tool server ${this.name}`, signal: this.#stop.signal, clock, log, ...WAITS },
      onFailure: (error, waitMs) => {
        const reason = error instanceof Error ? error.message : t`no reason given`;
        if (this.#state.kind !== 'lost') {
          this.#state = { kind: 'failed', reason, retryAt: clock.now() + waitMs };
        }
        this.#tried.resolve();
        return 'restart';
      },
    });
  }

  /** Resolves when its child process and all descendants are gone. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#connection.reject(this.#notConnected());
    this.#tried.resolve();
    await this.#running;
  }

  /** One connection, from start to end. @throws Error why it ended */
  async #live(signal: AbortSignal): Promise<void> {
    const { clock, log, folderOf } = this.#deps;
    const connection = await this.#openedOnceLoggedIn(signal, folderOf(this.config));
    try {
      const since = clock.now();
      this.#state = { kind: 'connected', since };
      this.#connection.resolve(connection);
      this.#tried.resolve();
      log.info('tool server connected', { server: this.name, tools: this.tools.length });
      await this.#attend(connection, signal);
      signal.throwIfAborted();
      const ending = connection.needsLogin() ? t`it needs a login` : t`the connection ended`;
      const reason = connection.fault() ?? ending;
      const hasWorked = clock.now() - since >= WORKED_MS;
      this.#state = hasWorked ? { kind: 'lost', reason } : { kind: 'failed', reason };
      throw new Error(reason);
    } finally {
      this.#connection = Promise.withResolvers<Connection>();
      this.#connection.promise.catch(() => undefined);
      await connection.close();
    }
  }

  /** Waits for the owner as long as the server wants a login. */
  async #openedOnceLoggedIn(signal: AbortSignal, folder: string): Promise<Connection> {
    for (;;) {
      try {
        return await this.#opened(signal, folder);
      } catch (error) {
        if (!(error instanceof LoginNeeded)) throw error;
      }
      this.#state = { kind: 'login' };
      this.#loggedIn = Promise.withResolvers<void>();
      this.#tried.resolve();
      if (await this.#login?.isNewlyNeeded()) this.#deps.loginNeeded(this.name);
      await orAborted(this.#loggedIn.promise, signal);
    }
  }

  /** Connects and lists the tools. */
  async #opened(signal: AbortSignal, folder: string): Promise<Connection> {
    const seconds = this.config.startupTimeoutSecs;
    const late = () => new Error(`it did not answer within ${seconds} s`);
    const open = reasonFirst(async (opening) => {
      const connection = await connect(
        { ...this.#deps, config: this.config, folder, login: this.#login },
        opening,
      );
      try {
        this.#remote = this.#remote.next(await orAborted(connection.tools(opening), opening));
        return connection;
      } catch (error) {
        await connection.close();
        throw error;
      }
    });
    try {
      return await withDeadline(this.#deps.clock, seconds * 1000, late, signal, open);
    } catch (error) {
      if (this.#state.kind === 'lost')
        this.#state = { kind: 'failed', reason: t`it is disconnected` };
      throw error;
    }
  }

  /** Watches the connection until it or the signal ends. */
  async #attend(connection: Connection, signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    for (;;) {
      const waiting = following(signal);
      const what = await Promise.race([
        connection.ended.then(() => 'ended' as const),
        connection.changed().then(() => 'changed' as const),
        clock.sleep(PING_EVERY_MS, waiting.signal).then(
          () => 'quiet' as const,
          () => 'ended' as const,
        ),
      ]);
      waiting.abort();
      if (what === 'ended' || signal.aborted) return;
      if (what === 'quiet' && this.#calls === 0) await this.#within(connection.ping, signal);
      if (what === 'changed') {
        this.#remote = this.#remote.next(await this.#within(connection.tools, signal));
        await clock.sleep(LOOK_AGAIN_MS, signal).catch(() => undefined);
      }
    }
  }

  #within<T>(ask: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    const limits = { clock: this.#deps.clock, ms: PING_TIMEOUT_MS, signal };
    return within(limits, ask, () => new Error('it no longer answers'));
  }

  async #call(tool: string, input: Readonly<Record<string, unknown>>, options: CallOptions) {
    const connection = await this.#reached(options.signal);
    this.#calls += 1;
    try {
      return await orAborted(connection.call(tool, input, options), options.signal);
    } catch (error) {
      options.signal.throwIfAborted();
      const failure = callFailure(error, t`the tool server ${this.name}`, this.#redact);
      if (failure.isLost) void connection.close();
      throw failure.error;
    } finally {
      this.#calls -= 1;
    }
  }

  #reached(signal: AbortSignal): Promise<Connection> {
    const limits = { clock: this.#deps.clock, ms: WAIT_MS, signal };
    return within(
      limits,
      () => this.#connection.promise,
      () => (signal.aborted ? signal.reason : this.#notConnected()),
    );
  }

  #notConnected(): ToolError {
    return new ToolError('execution', `the tool server ${this.name} is not connected`, {
      isTransient: true,
    });
  }
}

function unavailable(state: ToolServerState): string {
  switch (state.kind) {
    case 'starting':
      return t`is being started`;
    case 'connected':
      return t`is connected`;
    case 'login':
      return t`needs a login: the owner sends /mcp`;
    case 'lost':
    case 'failed':
      return t`is not connected: ${state.reason}`;
  }
}

// CONTRACT of tool servers (Model Context Protocol, specification 2025-06-18): third-party programs
// and addresses whose tools the agent gets. A slow, lost or hostile server affects only its own
// tools.

export type ToolServerState =
  | { readonly kind: 'starting' }
  /** `since`: epoch milliseconds. */
  | { readonly kind: 'connected'; readonly since: number }
  /** The owner has to log in. */
  | { readonly kind: 'login' }
  /** Reconnecting; calls wait for that. */
  | { readonly kind: 'lost'; readonly reason: string }
  /** `retryAt`: epoch milliseconds of the next attempt. */
  | { readonly kind: 'failed'; readonly reason: string; readonly retryAt?: number };

export type ToolServerReport = {
  readonly name: string;
  readonly transport: 'stdio' | 'http';
  readonly state: ToolServerState;
  /** Names as the model gets them. */
  readonly tools: readonly string[];
};
