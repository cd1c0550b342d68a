// Whether two addresses are of the same person or group, whatever the device. A LID and a phone
// number never are by their digits alone.

import { isPerson, parseJid } from '../../core/whatsapp-jid.ts';

export function isSameAddress(left: string | undefined, right: string | undefined): boolean {
  const [a, b] = [parseJid(left), parseJid(right)];
  if (isPerson(a) && isPerson(b)) return a.kind === b.kind && a.user === b.user;
  return a.kind === 'group' && b.kind === 'group' && a.jid === b.jid;
}
