// Opens what exists before the first feature: the foundations, people, owners, questions, and the
// registries that features contribute to.

import { hash, randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { redactedPicture } from '../agent/prepared.ts';
import { LOCAL_CHANNELS } from '../channels/local-channel.ts';
import {
  type Afterwork,
  createAfterwork,
  createPermits,
  createReaderMemory,
  rememberedFor,
} from '../lib/async.ts';
import { openLogFile } from '../lib/files/files.ts';
import { jsonRow, number, rowShape, text } from '../lib/json/json.ts';
import { createLogger, type Logger } from '../lib/logger.ts';
import type { Redactor } from '../lib/text/redact.ts';
import { t } from '../lib/texts.ts';
import { shiftedClock, systemClock } from '../lib/time/clock.ts';
import { withChosen } from './access/rights.ts';
import { createMessageBus } from './bus/message-bus.ts';
import type { NodeSelf } from './bus/store/shared.ts';
import { type EmbeddedStore, RECOVERY_SCOPE, type TurnEnding, UNTOLD } from './bus/store/store.ts';
import { createCommands } from './commands/commands.ts';
import type { Config } from './config/config.ts';
import { programVersion } from './config/files/home.ts';
import type { LiveConfig } from './config/files/live-config.ts';
import { type Contributed, createRegistries, type SessionWatcher } from './contributions.ts';
import { createSpentButtons } from './delivery/undelivered.ts';
import type { Foundations, Kernel, Orders } from './feature.ts';
import type { GatewayOptions } from './gateway.ts';
import { guardedModelCalls } from './guards.ts';
import { openGatewayStore, PAIRING_SCOPE } from './home-state.ts';
import { createJudge } from './intake/fair-use.ts';
import { createGates, policyOf } from './intake/routes.ts';
import { openMedia } from './media/files.ts';
import { createMediaReader } from './media/media-reader.ts';
import type { Settlement } from './message/delivery.ts';
import { type AccountName, ALERT, messageId, type SessionKey } from './message/ids.ts';
import type { OutboundMessage } from './message/message.ts';
import type { TranscriptEntry } from './message/transcript.ts';
import { buildTelemetry } from './observe/build-telemetry.ts';
import { createChannelDirectory, createOwnerChats, createOwners, type Owners } from './owners.ts';
import { createPeople } from './people/people.ts';
import { chosenPolicies } from './people/people-rows.ts';
import { createKnownAs } from './people/persons.ts';
import { createPorts, inOrder } from './ports.ts';
import { openQuestionRows, settle } from './questions/question-rows.ts';
import { auditedHandlers, createQuestions } from './questions/questions.ts';
import { createRows } from './rows.ts';
import { createJsonlSessionStore } from './sessions/jsonl.ts';
import { createRequestFiles } from './sessions/request-log.ts';
import type { SessionStore } from './sessions/store.ts';
import { kernelStatus } from './status.ts';
import { createOrigins, createQuotesOwn, createSessionSettings } from './turns/origins.ts';
import type { Typed } from './typed-command.ts';

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
  const questionRows = openQuestionRows(rows);
  const gates = rememberedFor(createGates);
  const people = createPeople({
    settled: (id, words) => settle(questionRows, id, words),
    ...{ rows, clock, randomBytes, localChannels: LOCAL_CHANNELS },
    state: store.scope(PAIRING_SCOPE),
    policy: (channel, account) => gates(live.config)(channel, account),
    async release(messages) {
      await bus.accept(messages.map((message) => ({ kind: 'queue', message })));
    },
  });
  const { persons, pairing } = people;
  const policy = (account: AccountName) => policyOf(account, live.config);
  const judge = createJudge({ persons, policy });
  const mediumOf = (channel: string) => policyOf(channel, live.config).medium;
  const policies = async () =>
    withChosen(live.config.tools, await chosenPolicies(people.peopleRows));
  const quotesOwn = createQuotesOwn({ ...foundations, questions: questionRows });
  const origins = createOrigins({
    judge,
    mediumOf,
    knownAs: createKnownAs(persons),
    policies,
    quotesOwn,
  });
  const chosen = () => live.config.notices.channel;
  const revision = () => store.revision(PAIRING_SCOPE);
  const chats = createOwnerChats({
    ...{ state: store.scope(PAIRING_SCOPE), pairing, chosen, revision },
  });
  const isChat = (account: AccountName) => mediumOf(account) === 'chat';
  const owners = createOwners({ chats, channels, bus, clock, log, isChat });
  const buttons = createSpentButtons({ rows, bus, clock, log, channel: channels.get });
  const questions = createQuestions({
    ...{ rows: questionRows, bus, clock, log, randomBytes },
    handlers: () => auditedHandlers(contributed, measuring.audit),
    spendButtons: buttons.spend,
    channel: channels.get,
    media: foundations.media,
  });
  add.personalData({ forget: questions.forget });
  const settings = createSessionSettings(store.scope('session-settings'));
  add.status(kernelStatus({ home: options.home, live, bus, store, settings }));
  if (live.config.store.engine === 'sqlite') {
    const run = (signal: AbortSignal) => careForFile(foundations, owners, signal);
    add.task({ name: 'store snapshots', run });
  }
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
    settings,
    modelCalls: guardedModelCalls(() =>
      inOrder('model guards', orders.modelGuards, contributed.modelGuards()),
    ),
    commands: createCommands({ contributed, audit: measuring.audit }),
    permits: createPermits(live.defaults.maxConcurrentChats),
  };
}

const WORN = t`state.db has a damaged page. Restart nanobot: the start rebuilds it. Check the disk.`;

async function careForFile(
  foundations: Foundations,
  owners: Owners,
  signal: AbortSignal,
): Promise<void> {
  const { keepSnapshots } = await import('./bus/store/snapshot.ts');
  const { live, home, store, clock, log } = foundations;
  const everyMs = () => live.config.store.snapshotMinutes * 60_000;
  const onDamage = () => owners.tell(WORN);
  await tellRecovery(foundations, owners);
  await keepSnapshots({ path: home.state, store, clock, log, everyMs, onDamage }, signal);
}

const UNTOLD_REPORT = rowShape<{ readonly at: number; readonly text: string }>({
  at: number,
  text,
});

/** The report of a store that was rebuilt at the start; once, also after a kill. */
async function tellRecovery({ store, bus }: Foundations, owners: Owners): Promise<void> {
  const rows = store.scope(RECOVERY_SCOPE);
  const report = jsonRow(await rows.get(UNTOLD), UNTOLD_REPORT);
  if (report === undefined) return;
  const id = messageId(`${ALERT}recovery-${report.at}`);
  await bus.send({ id, chat: await owners.noticeChat(), markdown: report.text });
  await rows.delete(UNTOLD);
}

// The foundations of the gateway: configuration, clock, log, the store with its bus, sessions and
// files. Nothing here knows channels or the agent.

/** @throws StoreError */
async function layFoundations(
  live: LiveConfig,
  options: GatewayOptions,
  contributed: Contributed,
  resources: AsyncDisposableStack,
): Promise<Foundations> {
  const { home, env, typed = (text: string) => text } = options;
  const { redact } = live;
  const afterwork = resources.use(createAfterwork(systemClock));
  const log = openLog(live, options, afterwork);
  let offsetMs = () => 0;
  const isOneOfSeveral = live.config.storage.path !== '';
  const clock = isOneOfSeveral ? shiftedClock(systemClock, () => offsetMs()) : systemClock;
  const node = isOneOfSeveral ? { node: nodeSelf(live.config, options) } : {};
  const opened = await openGatewayStore(home, { clock, log, ...node }, live.config.store);
  const store = resources.use(opened);
  // The server's time counts, so that processes whose clocks differ agree on what is due.
  offsetMs = () => store.shared?.offsetMs() ?? 0;
  const measuring = await buildTelemetry({ live, clock, log, store, afterwork }, home, resources);
  const { telemetry } = measuring;
  const { maxPending, maxPendingPerChat } = live.config.queue;
  const limits = { maxPending, maxPendingPerChat };
  const shown = redactedPicture(redact);
  const folder = home.sessions;
  const policy = () => live.config.sessions;
  const sessionFiles = resources.use(
    createJsonlSessionStore({ folder, store, clock, log, policy }),
  );
  const busStore = redactedStore(store, redact, typed);
  const how = { store: busStore, entries: sessionFiles, clock, log, limits, shown, telemetry };
  const bus = resources.use(createMessageBus(how));
  const sessions = watchedSessions(sessionFiles, redact, contributed.sessionWatchers);
  const asked = resources.use(createRequestFiles({ folder, clock, log, redact }));
  const media = await openMedia({ live, clock, store, env }, home);
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
      afterwork,
      measuring,
      store,
      rows: createRows(store),
      bus,
    },
    ...{ sessions, sessionFiles, asked, media, reader, readerMemory },
  };
}

function nodeSelf(config: Config, { role = 'all' }: GatewayOptions): NodeSelf {
  const { gateway: _own, logging: _log, ...rest } = config;
  return {
    name: `${hostname()}/${process.pid}`,
    role,
    version: programVersion(),
    config: hash('sha256', JSON.stringify(rest)).slice(0, CONFIG_HASH_CHARS),
  };
}

const CONFIG_HASH_CHARS = 8;

function openLog(live: LiveConfig, { home, logged }: GatewayOptions, { later }: Afterwork): Logger {
  const { level } = live.config.logging;
  const keepDays = () => live.config.logging.keepDays;
  const file = openLogFile({ folder: home.logs, clock: systemClock, keepDays, later });
  const destination = {
    write(line: string) {
      file.write(line);
      logged?.(line);
    },
  };
  return createLogger({ level, destination, redact: live.redact, later });
}

// The store as the bus gets it: values of secrets are redacted from texts for chats and from
// reasons in traces. Texts of the program give commands the form used on this machine.

/** Texts of the agent while its turn runs. */
const SAID_BY_AGENT = /\/say\/\d+$/;

function redactedStore(store: EmbeddedStore, redact: Redactor, typed: Typed): EmbeddedStore {
  const shown = (message: OutboundMessage): OutboundMessage => ({
    ...message,
    markdown: redact(message.markdown),
    ...(message.subject === undefined ? {} : { subject: redact(message.subject) }),
  });
  const ended = (ending: TurnEnding): TurnEnding => ({
    ...ending,
    ...('reason' in ending ? { reason: redact(ending.reason) } : {}),
    ...('outbound' in ending ? { outbound: ending.outbound.map(shown) } : {}),
  });
  const settled = (settlement: Settlement): Settlement =>
    'reason' in settlement ? { ...settlement, reason: redact(settlement.reason) } : settlement;
  return {
    ...store,
    queue(message) {
      const { id, markdown } = message;
      const text = SAID_BY_AGENT.test(id) ? markdown : typed(markdown);
      return store.queue(shown({ ...message, markdown: text }));
    },
    endTurn: (hold, ending, entries) => store.endTurn(hold, ended(ending), entries),
    settle: (hold, settlement) => store.settle(hold, settled(settlement)),
    markBounced: (id, reason) => store.markBounced(id, redact(reason)),
  };
}

// Conversations as they are stored: values of configured secrets are redacted; by whichever part wrote them.

/** Fields that no person writes: accidental redaction would change their meaning. */
const NO_WORDS = [
  'role',
  'turnId',
  'keepsFrom',
  'messageId',
  'callId',
  'resultId',
  'failure',
  'id',
  'undoes',
  'brings',
  'by',
  'media',
  'kind',
  'mimeType',
  'status',
  'outcome',
  'model',
  'asked',
  'signature',
];

/** The sessions of a gateway: redacts secrets on write, and notifies the watchers. */
export function watchedSessions(
  store: SessionStore,
  redact: Redactor,
  watchers: () => readonly SessionWatcher[],
): SessionStore {
  const masked = (key: string, value: unknown) =>
    typeof value === 'string' && !NO_WORDS.includes(key) ? redact(value) : value;
  const shown = (entry: TranscriptEntry): TranscriptEntry => {
    const written = JSON.stringify(entry);
    return redact(written) === written ? entry : JSON.parse(written, masked);
  };
  const tell = (session: SessionKey, entries: readonly TranscriptEntry[]) => {
    for (const watcher of watchers()) {
      watcher.changed?.(session);
      if (entries.length > 0) watcher.appended?.(session, entries);
    }
  };
  return {
    load: (...asked) => store.load(...asked),
    async append(session, entries, options) {
      const written = await store.append(session, entries.map(shown), options);
      tell(session, entries);
      return written;
    },
    async appendIf(session, entries, isTrue) {
      const isWritten = await store.appendIf(session, entries.map(shown), isTrue);
      if (isWritten) tell(session, entries);
      return isWritten;
    },
    turn: (session, turnId) => store.turn(session, turnId),
    restorePoints: (session, maxPoints) => store.restorePoints(session, maxPoints),
    async restore(session, index, by) {
      const restored = await store.restore(session, index, by);
      tell(session, []);
      return restored;
    },
    earlier: (session, question) => store.earlier(session, question),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
