// Conversations as they are written down: without the values of configured secrets, whoever wrote
// or said them.

import type { TranscriptEntry } from '../core/transcript.ts';
import type { Redactor } from '../lib/redact.ts';
import type { SessionStore } from '../sessions/store.ts';

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

export function redactedSessions(store: SessionStore, redact: Redactor): SessionStore {
  const masked = (key: string, value: unknown) =>
    typeof value === 'string' && !NO_WORDS.includes(key) ? redact(value) : value;
  const shown = (entry: TranscriptEntry): TranscriptEntry => {
    const written = JSON.stringify(entry);
    return redact(written) === written ? entry : JSON.parse(written, masked);
  };
  return {
    load: (...asked) => store.load(...asked),
    append: (session, entries, options) => store.append(session, entries.map(shown), options),
    appendIf: (session, entries, isTrue) => store.appendIf(session, entries.map(shown), isTrue),
    turn: (session, turnId) => store.turn(session, turnId),
    restorePoints: (session, maxPoints) => store.restorePoints(session, maxPoints),
    restore: (session, index, by) => store.restore(session, index, by),
    earlier: (session, question) => store.earlier(session, question),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
