// What a gateway offers the commands that start one.

import type { ChannelStatus } from '../channels/channel.ts';
import type { Door } from '../channels/door.ts';
import type { Environment } from '../core/environment.ts';
import type { Home } from './home.ts';

export type ChannelReport = {
  readonly name: string;
  readonly enabled: boolean;
  readonly status: ChannelStatus | { readonly kind: 'off'; readonly remedy: string };
};

export type GatewayOptions = {
  readonly home: Home;
  readonly env: Environment;
  /** Which platform channels may run; the configuration still has to enable them. */
  readonly channels: 'all' | readonly string[];
  /** Serve the web page and the API. */
  readonly http: boolean;
  /** Prints a line for whoever started the gateway. */
  readonly foreground: (line: string) => void;
};

export interface Gateway extends AsyncDisposable {
  /** `http://127.0.0.1:18790`; undefined without http. */
  readonly address: string | undefined;
  /** The model that answers unless a chat chose another. */
  readonly model: string;
  channels(): readonly ChannelReport[];
  /** The door of a terminal in this process. */
  readonly terminal: Door;
  /** Stops what runs in a chat of the terminal's door. */
  stop(chat: string): Promise<void>;
  /** Runs until aborted, then drains: running turns may finish for a bounded time. */
  run(signal: AbortSignal): Promise<void>;
}
