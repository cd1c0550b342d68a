// The store as the bus gets it: no text that goes out to a chat, and no reason that traces show,
// holds the value of a secret. Texts of ours name commands as they are typed here.

import type { Redactor } from '../lib/text/redact.ts';
import type { BusStore, TurnEnding } from './bus/store/store.ts';
import type { SessionWatcher } from './contributions.ts';
import type { Settlement } from './message/delivery.ts';
import type { SessionKey } from './message/ids.ts';
import type { OutboundMessage } from './message/message.ts';
import type { TranscriptEntry } from './message/transcript.ts';
import type { SessionStore } from './sessions/store.ts';
import type { Typed } from './typed-command.ts';

/** What the agent says while its turn runs. */
const SAID_BY_AGENT = /\/say\/\d+$/;

export function redactedStore(store: BusStore, redact: Redactor, typed: Typed): BusStore {
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
    endTurn: (hold, ending) => store.endTurn(hold, ended(ending)),
    settle: (hold, settlement) => store.settle(hold, settled(settlement)),
    markBounced: (id, reason) => store.markBounced(id, redact(reason)),
  };
}

// Conversations as they are written down: without the values of configured secrets, whoever wrote
// or said them.

/** What nobody writes: masked by chance it would no longer mean the same. */
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

/** The sessions of a gateway: masks secrets on the way in, and tells the watchers what was written. */
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
