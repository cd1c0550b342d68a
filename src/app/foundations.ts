// What everything else of the gateway stands on: configuration, clock, log, the store with its bus,
// conversations and files. Nothing here knows of channels or of the agent.

import { redactedPicture } from '../agent/prepared.ts';
import { type AskedFiles, createAskedFiles } from '../features/request-log/request-log.ts';
import type { MessageBus } from '../kernel/bus/bus.ts';
import { createMessageBus } from '../kernel/bus/message-bus.ts';
import type { EmbeddedStore } from '../kernel/bus/store/store.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import type { MediaReader, MediaStore } from '../kernel/media/media.ts';
import { buildTelemetry, type Measuring } from '../kernel/observe/build-telemetry.ts';
import { createRows, type OpenRows } from '../kernel/rows.ts';
import type { SessionForgetting } from '../kernel/sessions/forget.ts';
import { createJsonlSessionStore } from '../kernel/sessions/jsonl.ts';
import type { SessionStore } from '../kernel/sessions/store.ts';
import { createReaderMemory, type ReaderMemory } from '../lib/async.ts';
import { openLogFile } from '../lib/files/files.ts';
import { createLogger, type Logger } from '../lib/logger.ts';
import { type Clock, systemClock } from '../lib/time/clock.ts';
import { buildMedia, buildReader } from './build-media.ts';
import { type Collections, openCollections } from './collections.ts';
import type { GatewayOptions } from './gateway.ts';
import { redactedSessions, redactedStore } from './redacted-store.ts';
import { openStore } from './state.ts';

/** About a second; larger stores are checked by the doctor. */
const CHECK_UP_TO_BYTES = 100_000_000;

export type Foundations = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: EmbeddedStore;
  readonly rows: OpenRows;
  readonly collections: Collections;
  readonly bus: MessageBus;
  readonly sessions: SessionStore;
  /** What models were asked with. */
  readonly asked: AskedFiles;
  readonly exclusively: SessionForgetting['exclusively'];
  readonly media: MediaStore;
  readonly reader: MediaReader;
  /** For everything that reads contents of others. */
  readonly readerMemory: ReaderMemory;
  readonly measuring: Measuring;
};

export async function layFoundations(
  live: LiveConfig,
  { home, typed = (text) => text, logged }: GatewayOptions,
  resources: AsyncDisposableStack,
): Promise<Foundations> {
  const clock = systemClock;
  const redact = (text: string) => live.redact(text);
  const keepDays = () => live.config.logging.keepDays;
  const file = resources.use(openLogFile({ folder: home.logs, clock, keepDays }));
  const destination = {
    write(line: string) {
      file.write(line);
      logged?.(line);
    },
  };
  const { level } = live.config.logging;
  const log = createLogger({ level, destination, redact });
  const store = resources.use(
    await openStore(home, { clock, log, checkUpToBytes: CHECK_UP_TO_BYTES, inBackground: true }),
  );
  const { maxPending, maxPendingPerChat } = live.config.queue;
  const limits = { maxPending, maxPendingPerChat };
  const rows = createRows(store);
  const collections = openCollections(rows, redact);
  const busStore = redactedStore(store, redact, typed);
  const shown = redactedPicture(redact);
  const measuring = await buildTelemetry({ live, clock, log, store }, home, resources);
  const { telemetry } = measuring;
  const bus = resources.use(
    createMessageBus({ store: busStore, clock, log, limits, shown, telemetry }),
  );
  const policy = () => live.config.sessions;
  const jsonl = createJsonlSessionStore({ folder: home.sessions, clock, log, policy });
  const sessions = resources.use(redactedSessions(jsonl, redact));
  const asked = resources.use(createAskedFiles({ folder: home.sessions, clock, log, redact }));
  const media = await buildMedia({ live, clock, store }, home);
  const readerMemory = createReaderMemory();
  const reader = buildReader(media, clock, readerMemory, home);
  const exclusively = jsonl.exclusively.bind(jsonl);
  return {
    ...{ live, clock, log, store, bus, sessions, asked, exclusively, media, measuring },
    ...{ reader, readerMemory, rows, collections },
  };
}
