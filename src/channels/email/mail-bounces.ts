// What a delivery report says of a mail of ours: noted against its address, and told.

import type { MailArrival } from './arrival.ts';
import type { Incoming } from './inbound.ts';
import type { KnownMail, MailRegister } from './mail-register.ts';

export const isSent = (known: KnownMail | undefined): known is KnownMail =>
  known !== undefined && known.inbound === undefined;

/** A delivery report about an answer of ours counts against its address (RFC 3464). */
export async function noteBounces(
  incoming: Incoming,
  arrival: MailArrival,
  register: MailRegister,
): Promise<Incoming> {
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
