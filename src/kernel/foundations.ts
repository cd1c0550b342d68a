// What everything else of the gateway stands on: configuration, clock, log, the store with its bus, sessions and
// files. Nothing here knows of channels or of the agent.

import { join } from 'node:path';
import { redactedPicture } from '../agent/prepared.ts';
import { createAskedFiles } from '../features/request-log/request-log.ts';
import { createReaderMemory } from '../lib/async.ts';
import { openLogFile } from '../lib/files/files.ts';
import { createLogger, type Logger } from '../lib/logger.ts';
import { systemClock } from '../lib/time/clock.ts';
import { createMessageBus } from './bus/message-bus.ts';
import type { LiveConfig } from './config/files/live-config.ts';
import type { Contributed } from './contributions.ts';
import type { Foundations } from './feature.ts';
import type { GatewayOptions } from './gateway.ts';
import { openStore } from './home-state.ts';
import { openMedia } from './media/home-media.ts';
import { createMediaReader } from './media/media-reader.ts';
import { buildTelemetry } from './observe/build-telemetry.ts';
import { redactedStore, watchedSessions } from './redaction.ts';
import { createRows } from './rows.ts';
import { createJsonlSessionStore } from './sessions/jsonl.ts';

/** About a second; larger stores are checked by the doctor. */
const CHECK_UP_TO_BYTES = 100_000_000;

/** @throws StoreError */
export async function layFoundations(
  live: LiveConfig,
  options: GatewayOptions,
  contributed: Contributed,
  resources: AsyncDisposableStack,
): Promise<Foundations> {
  const { home, env, typed = (text: string) => text } = options;
  const clock = systemClock;
  const redact = (text: string) => live.redact(text);
  const log = openLog(live, options, resources);
  const store = resources.use(
    await openStore(home, { clock, log, checkUpToBytes: CHECK_UP_TO_BYTES, inBackground: true }),
  );
  const measuring = await buildTelemetry({ live, clock, log, store }, home, resources);
  const { telemetry } = measuring;
  const { maxPending, maxPendingPerChat } = live.config.queue;
  const limits = { maxPending, maxPendingPerChat };
  const shown = redactedPicture(redact);
  const busStore = redactedStore(store, redact, typed);
  const bus = resources.use(
    createMessageBus({ store: busStore, clock, log, limits, shown, telemetry }),
  );
  const folder = home.sessions;
  const policy = () => live.config.sessions;
  const jsonl = createJsonlSessionStore({ folder, clock, log, policy });
  const sessions = resources.use(watchedSessions(jsonl, redact, contributed.sessionWatchers));
  const asked = resources.use(createAskedFiles({ folder, clock, log, redact }));
  const media = await openMedia({ live, clock, store }, home);
  const readerMemory = createReaderMemory();
  const derived = join(home.media, 'derived');
  const reader = createMediaReader({ store: media, clock, memory: readerMemory, folder: derived });
  return {
    ...{
      options,
      home,
      env,
      resources,
      live,
      clock,
      log,
      measuring,
      store,
      rows: createRows(store),
      bus,
    },
    ...{ sessions, exclusively: jsonl.exclusively.bind(jsonl), asked, media, reader, readerMemory },
  };
}

function openLog(
  live: LiveConfig,
  { home, logged }: GatewayOptions,
  resources: AsyncDisposableStack,
): Logger {
  const { level } = live.config.logging;
  const keepDays = () => live.config.logging.keepDays;
  const file = resources.use(openLogFile({ folder: home.logs, clock: systemClock, keepDays }));
  const destination = {
    write(line: string) {
      file.write(line);
      logged?.(line);
    },
  };
  return createLogger({ level, destination, redact: (text) => live.redact(text) });
}
