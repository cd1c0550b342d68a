// What a gateway offers the commands that start one.

import type { ChannelStatus, LoginOptions, LoginStep } from '../channels/channel.ts';
import type { LocalChannel } from '../channels/local-channel.ts';
import type { Environment } from './config/environment.ts';
import type { Home } from './config/files/home.ts';
import type { Typed } from './typed-command.ts';

/** Of one account. */
export type ChannelReport = {
  /** `email`, or `email@work` for a further account. */
  readonly name: string;
  /** As people write it. */
  readonly label: string;
  readonly enabled: boolean;
  readonly status: ChannelStatus | { readonly kind: 'off'; readonly remedy: string };
  /** What a limit holds back and why. */
  readonly waiting?: string;
  /** It runs, and a person can connect its account with `login`. */
  readonly canLogIn: boolean;
};

export type GatewayOptions = {
  readonly home: Home;
  readonly env: Environment;
  /** Which platform channels may run; the configuration still has to enable them. */
  readonly channels: 'all' | readonly string[];
  /** Serve the web page and the API. */
  readonly http: boolean;
  /** Names commands in texts as the person who started the gateway types them. */
  readonly typed?: Typed;
  /** Fingerprints a line for whoever started the gateway. */
  readonly foreground: (line: string) => void;
  /** Gets every finished line of the log as well. */
  readonly logged?: (line: string) => void;
};

export interface Gateway extends AsyncDisposable {
  /** `http://127.0.0.1:18790`; undefined without http. */
  readonly address: string | undefined;
  /** A link that opens the page logged in, once; undefined without http. */
  loginLink(): string | undefined;
  /** The model that answers unless a chat chose another. */
  readonly model: string;
  channels(): readonly ChannelReport[];
  /** Connects a channel's account; undefined where the channel is not there or has no such power. */
  login(
    name: string,
    options: LoginOptions,
    signal: AbortSignal,
  ): AsyncIterable<LoginStep> | undefined;
  /** Starts the channel again, or stops it where it is off. False where it is off or unknown. */
  restartChannel(name: string): Promise<boolean>;
  /** The door of a terminal in this process. */
  readonly terminal: LocalChannel;
  /** Resolves when every tool server of the configuration was tried once. */
  toolsTried(): Promise<void>;
  /** Stops what runs in a chat of the terminal's door. */
  stop(chat: string): Promise<void>;
  /** Runs until aborted, then drains: running turns may finish for a bounded time. */
  run(signal: AbortSignal): Promise<void>;
}
