// Takes the whole texts and quotes of a person's mails out of the register, where they hold certain words.

import type { Holds } from '../../core/forgetting.ts';
import { jsonRow } from '../../lib/read-once.ts';
import type { KeyValueStore } from '../../store/store.ts';
import type { KnownMail } from './mail-register.ts';

/** `sender`: their address; how many texts went. */
export async function forgetMails(
  state: KeyValueStore,
  sender: string,
  holds: Holds,
): Promise<number> {
  const known = (await state.list('id/')).map(({ value }) => jsonRow<KnownMail>(value));
  const theirs = known.flatMap((mail) => (mail?.sender === sender ? (mail.inbound ?? []) : []));
  let texts = 0;
  for (const key of theirs.flatMap((id) => [`text/${id}`, `quote/${id}`])) {
    const value = await state.get(key);
    if (value === undefined || !holds(value)) continue;
    await state.delete(key);
    texts += 1;
  }
  return texts;
}
