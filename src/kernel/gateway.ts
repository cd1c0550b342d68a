// The interface of a gateway for the commands that start one.

import type { ChannelStatus, LoginOptions, LoginStep } from '../channels/channel.ts';
import type { LocalChannel } from '../channels/local-channel.ts';
import type { NodeRole } from './bus/store/shared.ts';
import type { Environment } from './config/environment.ts';
import type { Home } from './config/files/home.ts';
import type { Typed } from './typed-command.ts';

/** The state of one account. */
export type ChannelReport = {
  /** `email`, or `email@work` for a further account. */
  readonly name: string;
  /** As shown to people. */
  readonly label: string;
  readonly enabled: boolean;
  readonly status: ChannelStatus | { readonly kind: 'off'; readonly remedy: string };
  /** What a limit holds back, and why. */
  readonly waiting?: string;
  /** It runs, and a person can connect its account by `login`. */
  readonly canLogIn: boolean;
};

export type GatewayOptions = {
  readonly home: Home;
  readonly env: Environment;
  /** Which platform channels may run, if the configuration enables them. */
  readonly channels: 'all' | readonly string[];
  /** Among several processes: what this one does; absent: everything. */
  readonly role?: NodeRole;
  /** Serves the web page and the API. */
  readonly http: boolean;
  /**
   * A trial: only turns of this chat of the terminal run. Nothing else is started, delivered or
   * followed.
   */
  readonly trialChat?: string;
  /** Gives commands in texts the form in which the person who started the gateway types them. */
  readonly typed?: Typed;
  /** Prints a line for the person who started the gateway. */
  readonly foreground: (line: string) => void;
  /** Gets every finished line of the log as well. */
  readonly logged?: (line: string) => void;
};

export interface Gateway extends AsyncDisposable {
  /** `http://127.0.0.1:18790`; undefined without http. */
  readonly address: string | undefined;
  /** A link that opens the page logged in, once; undefined without http. */
  loginLink(): Promise<string | undefined>;
  /** The model that answers unless a chat chose another. */
  readonly model: string;
  /** Why that model cannot be called; sends no request. */
  modelProblem(): string | undefined;
  channels(): readonly ChannelReport[];
  /**
   * Connects a channel's account; undefined if the channel does not exist or does not support it.
   */
  login(
    name: string,
    options: LoginOptions,
    signal: AbortSignal,
  ): AsyncIterable<LoginStep> | undefined;
  /** Restarts the channel, or stops it if it is off. False if it is off or unknown. */
  restartChannel(name: string): Promise<boolean>;
  /** The local channel of a terminal in this process. */
  readonly terminal: LocalChannel;
  /** Resolves when every configured tool server was tried once. */
  toolsTried(): Promise<void>;
  /** Stops the running turn in a chat of the terminal's channel. */
  stop(chat: string): Promise<void>;
  /** Runs until aborted, then drains: running turns may finish for a bounded time. */
  run(signal: AbortSignal): Promise<void>;
}
