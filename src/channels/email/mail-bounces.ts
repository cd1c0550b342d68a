// What a delivery report says of a mail of ours: noted against its address, and told.

import type { MessageId } from '../../kernel/message/ids.ts';
import type { MailArrival } from './arrival.ts';
import type { KnownMail } from './mail-records.ts';
import type { MailRegister } from './mail-register.ts';

/** What becomes known of the mail that the report is. */
export type Bounced = {
  /** Something the owner should hear of. */
  readonly notice?: string;
  /** A report that an answer of ours could not be delivered. */
  readonly bounced?: { readonly id: MessageId; readonly reason: string };
};

export const isSent = (known: KnownMail | undefined): known is KnownMail =>
  known !== undefined && known.inbound === undefined;

/** A delivery report about an answer of ours counts against its address (RFC 3464). */
export async function noteBounces<T extends Bounced>(
  incoming: T,
  arrival: MailArrival,
  register: MailRegister,
): Promise<T> {
  const { result } = arrival.reading;
  const bounce = result.kind === 'parsed' ? result.mail.bounce : undefined;
  for (const id of bounce?.originalIds ?? []) {
    const known = await register.knownMail(id);
    if (bounce === undefined || !isSent(known)) continue;
    const { reason, recipient = known.sender } = bounce;
    // The person who asked has the answer; the report is about somebody's copy.
    const isCopy = known.copies?.includes(recipient) === true;
    await register.noteBounce(
      { at: arrival.receivedAt, recipient: isCopy ? recipient : known.sender },
      id,
    );
    const what = isCopy ? 'The copy of an answer for' : 'An answer to';
    const notice = `${what} ${recipient} could not be delivered: ${reason}.`;
    const outbound = isCopy ? undefined : known.outbound;
    return {
      ...incoming,
      notice,
      ...(outbound === undefined ? {} : { bounced: { id: outbound, reason } }),
    };
  }
  return incoming;
}
