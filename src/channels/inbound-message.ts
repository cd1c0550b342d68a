// What inbound messages of all platforms have in common: senders, quotes, reactions, and the record
// of a message that the agent does not answer. Pure.

import type { InboundEntry } from '../kernel/bus/bus.ts';
import { type Attachment, textWithAttachments } from '../kernel/message/attachment.ts';
import { userId } from '../kernel/message/ids.ts';
import type { InboundMessage, PersonSender } from '../kernel/message/message.ts';

/** The author, in a quote, of what the agent sent. */
export const OURSELVES = 'you';

/** A sender whom the platform vouches for; without an id the sender is unknown. */
export function personSender(
  id: string | undefined,
  name?: string,
  alsoKnownAs: readonly string[] = [],
): PersonSender {
  if (id === undefined) return { kind: 'person', id: userId('unknown'), verified: 'unverified' };
  const others = alsoKnownAs.length === 0 ? undefined : alsoKnownAs.map(userId);
  return { kind: 'person', id: userId(id), name, alsoKnownAs: others, verified: 'verified' };
}

/** `gate`: why the agent does not answer it. */
export const entryOf = (message: InboundMessage, gate: string | undefined): InboundEntry =>
  gate === undefined ? { kind: 'queue', message } : { kind: 'record', message, gate };

/** What a quoted message says, with its files as text. */
export const saidIn = (
  text: string | undefined,
  attachments: readonly Attachment[],
): string | undefined =>
  attachments.length === 0 ? text : textWithAttachments({ text: text ?? '', attachments });
