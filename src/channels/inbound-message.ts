// What inbound messages of all platforms have in common: senders, quotes, reactions, and the record
// of a message that the agent does not answer. Pure.

import type { InboundEntry } from '../kernel/bus/bus.ts';
import { type Attachment, textWithAttachments } from '../kernel/message/attachment.ts';
import { type NativeId, nativeId, userId } from '../kernel/message/ids.ts';
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
  return {
    kind: 'person',
    id: userId(id),
    ...(name === undefined ? {} : { name }),
    ...(alsoKnownAs.length === 0 ? {} : { alsoKnownAs: alsoKnownAs.map(userId) }),
    verified: 'verified',
  };
}

/** `gate`: why the agent does not answer it. */
export const entryOf = (message: InboundMessage, gate: string | undefined): InboundEntry =>
  gate === undefined ? { kind: 'queue', message } : { kind: 'record', message, gate };

/** `sentAs`: the outbound id, if the quoted message is the agent's. */
export function quoted(
  text: string | undefined,
  author?: string,
  sentAs?: NativeId,
): Pick<InboundMessage, 'quoted'> {
  if (text === undefined) return {};
  return {
    quoted: {
      text,
      ...(author === undefined ? {} : { author }),
      ...(sentAs === undefined ? {} : { sentAs }),
    },
  };
}

/** What a quoted message says, with its files as text. */
export const saidIn = (
  text: string | undefined,
  attachments: readonly Attachment[],
): string | undefined =>
  attachments.length === 0 ? text : textWithAttachments({ text: text ?? '', attachments });

/** Without an emoji the reaction was removed. */
export const reactionTo = (
  id: string,
  emoji: string | undefined,
): NonNullable<InboundMessage['reaction']> => {
  const to = nativeId(id);
  return emoji === undefined ? { to } : { to, emoji };
};
