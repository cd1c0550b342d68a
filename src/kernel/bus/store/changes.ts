// A person's change of an earlier message: while that one waits untouched it is changed in place; later
// the change itself waits in the session, where the turn under way or the next one takes it up.

import { excerptOf } from '../../../lib/text/cut.ts';
import { isSameSender } from '../../message/change.ts';
import type { Amendment, InboundMessage } from '../../message/message.ts';
import type { InboundEntry } from '../bus.ts';
import { change, first, type Operation } from './operation.ts';

type Row = { seq: number; state: string; body: string | null; turn: string | null };

/** What of the change is to be stored: its text only where it has to wait. */
export function* applyChange(
  message: InboundMessage,
  { id, kind }: Amendment,
  now: number,
): Operation<InboundEntry> {
  const done = (gate: string): InboundEntry => ({ kind: 'record', message, gate });
  const row = yield* first<Row>('SELECT seq, state, body, turn FROM inbound WHERE id = ?', id);
  if (row === undefined || row.body === null) return done('changes a message that is not kept');
  const earlier: InboundMessage = JSON.parse(row.body);
  if (!isSameSender(earlier.sender, message.sender))
    return done('changes what somebody else wrote');
  if (kind === 'edited' && earlier.text === message.text) return done('changes nothing');
  const isWaiting = row.state === 'pending';
  if (!isWaiting && row.state !== 'done') return done('changes a message that was not answered');
  // A turn had it, maybe one that runs again: what the model was shown cannot be taken back.
  if (!isWaiting || row.turn !== null) {
    const amends = { id, kind, earlier: excerptOf(earlier.text) };
    // Kept, so that going back to the first words is a change too.
    if (!isWaiting && kind === 'edited') yield* swap(row.seq, { ...earlier, text: message.text });
    return { kind: 'queue', message: { ...message, amends } };
  }
  if (kind === 'withdrawn') {
    yield* withdraw(row.seq, now);
    return done('withdrew a message that waited');
  }
  yield* swap(row.seq, { ...earlier, text: message.text });
  return done('changed a message that waited');
}

function* withdraw(seq: number, now: number): Operation<void> {
  yield* change(
    `UPDATE inbound SET state = 'cancelled', reason = 'withdrawn by its author', settled_at = ?
     WHERE seq = ?`,
    ...[now, seq],
  );
}

function* swap(seq: number, message: InboundMessage): Operation<void> {
  yield* change('UPDATE inbound SET body = ? WHERE seq = ?', JSON.stringify(message), seq);
}
