// Conversations as they are written down: without the values of configured secrets, whoever wrote
// or said them.

import type { TranscriptEntry } from '../core/transcript.ts';
import type { Redactor } from '../lib/redact.ts';
import type { SessionStore } from '../sessions/store.ts';

export function redactedSessions(store: SessionStore, redact: Redactor): SessionStore {
  const shown = (entry: TranscriptEntry): TranscriptEntry => {
    const written = JSON.stringify(entry);
    const masked = redact(written);
    return masked === written ? entry : JSON.parse(masked);
  };
  return {
    load: (session) => store.load(session),
    append: (session, entries, options) => store.append(session, entries.map(shown), options),
    turn: (session, turnId) => store.turn(session, turnId),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
}
