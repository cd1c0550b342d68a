// CONTRACT between the kernel and features. A feature is one folder: its index.ts takes what it
// needs from the kernel, contributes the rest, and exports what other features may use; features.ts
// says when it is on. A feature that is off is not loaded (if others use it all the same,
// install.ts is beside index.ts); its chat commands say so, and its personal data is still found
// and erased.

import type { z } from 'zod';
import type { SpendingGuard } from '../agent/agent.ts';
import type { Afterwork, Permits, ReaderMemory } from '../lib/async.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { Medium } from './access/rights.ts';
import type { MessageBus } from './bus/bus.ts';
import type { EmbeddedStore } from './bus/store/store.ts';
import type { CommandTable } from './commands/command-access.ts';
import type { Commands } from './commands/commands.ts';
import type { Environment } from './config/environment.ts';
import type { Home } from './config/files/home.ts';
import type { LiveConfig } from './config/files/live-config.ts';
import type { Contributed, Contributions } from './contributions.ts';
import type { SpentButtons } from './delivery/undelivered.ts';
import type { GatewayOptions } from './gateway.ts';
import type { Judge } from './intake/fair-use.ts';
import type { MediaReader, MediaStore } from './media/media.ts';
import type { Measuring } from './observe/build-telemetry.ts';
import type { ChannelRegister, Owners } from './owners.ts';
import type { People } from './people/people.ts';
import type { PersonalData } from './personal-data.ts';
import type { Ports } from './ports.ts';
import type { Questions } from './questions/questions.ts';
import type { OpenRows } from './rows.ts';
import type { SessionFiles } from './sessions/forget.ts';
import type { RequestFiles } from './sessions/request-log.ts';
import type { SessionStore } from './sessions/store.ts';
import type { Origins, SessionSettingsStore } from './turns/origins.ts';

export { type Port, PortError, port } from './ports.ts';

export interface Feature {
  readonly name: string;
  /** The section of config.json that it adds; sections of the kernel's schema are not listed. */
  readonly settings?: { readonly at: string; readonly schema: z.ZodType };
  /**
   * Path of the setting that switches it off by false or an empty text, read when the gateway
   * starts; absent: always on.
   */
  readonly switchedBy?: string;
  load(): Promise<Installable>;
  /** What replaces it while it is off; absent if it is never off. */
  off?(): Promise<{ readonly off: WhenOff }>;
}

interface Installable {
  /** @param settings its own current section: `() => Settings` in the feature, read at each use */
  install(kernel: Kernel, settings: () => never): void | Promise<void>;
}

export type WhenOff = {
  /** Text for people: that it is off, and the setting that switches it on. */
  readonly text: string;
  readonly commands: CommandTable;
  /** Internal channels: turns on them wait until it is on again. */
  readonly channels: readonly string[];
  personalData(kernel: Kernel): Promise<PersonalData>;
};

export interface Foundations {
  /** How this gateway was started. */
  readonly options: GatewayOptions;
  readonly home: Home;
  readonly env: Environment;
  /** Closed in reverse order when the gateway ends. */
  readonly resources: AsyncDisposableStack;
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  /** Writes the log and the metrics file. */
  readonly afterwork: Afterwork;
  readonly measuring: Measuring;
  readonly store: EmbeddedStore;
  readonly rows: OpenRows;
  readonly bus: MessageBus;
  readonly sessions: SessionStore;
  readonly sessionFiles: SessionFiles;
  /** The request log. */
  readonly asked: RequestFiles;
  readonly media: MediaStore;
  readonly reader: MediaReader;
  /** Memory for all readers of untrusted files and pages. */
  readonly readerMemory: ReaderMemory;
}

/** Names, in the order in which contributions run. */
export type Orders = {
  readonly intake: readonly string[];
  /** Outermost first. */
  readonly stages: readonly string[];
  /** Outermost first. */
  readonly modelGuards: readonly string[];
  /** The first that decides. */
  readonly callGuards: readonly string[];
};

/** What exists before the first feature is installed. */
export interface Kernel extends Foundations, Ports {
  readonly orders: Orders;
  /** Written only by the channel manager. */
  readonly channels: ChannelRegister;
  mediumOf(channel: string): Medium;
  readonly people: People;
  readonly judge: Judge;
  readonly origins: Origins;
  readonly owners: Owners;
  readonly questions: Questions;
  readonly buttons: SpentButtons;
  /** What people chose for a session. */
  readonly settings: SessionSettingsStore;
  readonly commands: Commands;
  /** Every try of a model call passes through it. */
  readonly modelCalls: SpendingGuard;
  /** Places for turns of people. */
  readonly permits: Permits;
  readonly add: Contributions;
  readonly contributed: Contributed;
}
