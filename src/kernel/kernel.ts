// Opens what exists before the first feature: the foundations, who people are, where owners are reached, what is
// asked of whom, and the registries that features contribute to.

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { redactedPicture } from '../agent/prepared.ts';
import { buildPeople } from '../features/people/open-people.ts';
import { createKnownAs } from '../features/people/people.ts';
import { createAskedFiles } from '../features/request-log/request-log.ts';
import { createPermits, createReaderMemory } from '../lib/async.ts';
import { openLogFile } from '../lib/files/files.ts';
import { createLogger, type Logger } from '../lib/logger.ts';
import { systemClock } from '../lib/time/clock.ts';
import { createMessageBus } from './bus/message-bus.ts';
import { createChannelDirectory } from './channels.ts';
import { createCommands } from './commands/commands.ts';
import type { LiveConfig } from './config/files/live-config.ts';
import { type Contributed, createRegistries } from './contributions.ts';
import { createSpentButtons } from './delivery/spent-buttons.ts';
import { createPorts, type Foundations, type Kernel, type Orders } from './feature.ts';
import type { GatewayOptions } from './gateway.ts';
import { openStore, PAIRING_SCOPE } from './home-state.ts';
import { policyOf } from './intake/doors.ts';
import { createJudge } from './intake/judge.ts';
import { openMedia } from './media/home-media.ts';
import { createMediaReader } from './media/media-reader.ts';
import type { AccountName } from './message/account.ts';
import { buildTelemetry } from './observe/build-telemetry.ts';
import { createOwnerDoor, createOwners } from './owners.ts';
import { auditedHandlers } from './questions/audited-handlers.ts';
import { openQuestionRows } from './questions/question-rows.ts';
import { createQuestions } from './questions/questions.ts';
import { redactedStore, watchedSessions } from './redaction.ts';
import { createRows } from './rows.ts';
import { createJsonlSessionStore } from './sessions/jsonl.ts';
import { createOrigins } from './turns/origins.ts';
import { createSessionSettings } from './turns/session-settings.ts';

/** @throws StoreError */
export async function openKernel(
  live: LiveConfig,
  options: GatewayOptions,
  orders: Orders,
  resources: AsyncDisposableStack,
): Promise<Kernel> {
  const { add, contributed } = createRegistries();
  const foundations = await layFoundations(live, options, contributed, resources);
  const { clock, log, store, rows, bus, measuring } = foundations;
  const channels = createChannelDirectory();
  const people = buildPeople(foundations);
  const { persons, pairing } = people;
  const policy = (account: AccountName) => policyOf(account, live.config);
  const judge = createJudge({ persons, policy });
  const mediumOf = (channel: string) => policyOf(channel, live.config).medium;
  const policies = () => live.config.tools;
  const origins = createOrigins({ judge, mediumOf, knownAs: createKnownAs(persons), policies });
  const chosen = () => live.config.notices.channel;
  const door = createOwnerDoor({ state: store.scope(PAIRING_SCOPE), pairing, chosen });
  const isChat = (account: AccountName) => mediumOf(account) === 'chat';
  const owners = createOwners({ door, channels, bus, clock, log, isChat });
  const buttons = createSpentButtons({ rows, bus, clock, log, channel: channels.get });
  const questions = createQuestions({
    ...{ rows: openQuestionRows(rows), bus, clock, log, randomBytes },
    handlers: () => auditedHandlers(contributed, measuring.audit),
    spendButtons: buttons.spend,
    hasButtons: (name) => channels.get(name)?.choices !== undefined,
  });
  return {
    ...foundations,
    ...createPorts(),
    ...{
      orders,
      add,
      contributed,
      channels,
      people,
      judge,
      mediumOf,
      origins,
      owners,
      questions,
      buttons,
    },
    settings: createSessionSettings(store.scope('session-settings')),
    commands: createCommands({ contributed, audit: measuring.audit }),
    permits: createPermits(live.defaults.maxConcurrentChats),
  };
}

// What everything else of the gateway stands on: configuration, clock, log, the store with its bus, sessions and
// files. Nothing here knows of channels or of the agent.

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
