// Takes what was said out of the log of a door of our own, where it holds certain words.

import type { Holds } from '../../core/forgetting.ts';
import type { KeyValueStore } from '../../store/store.ts';

/** Of one chat; how many messages went. Its title goes too where it holds them. */
export async function forgetSaid(
  state: KeyValueStore,
  chat: string,
  holds: Holds,
): Promise<number> {
  const rows = await state.list(`said/${chat}/`);
  const gone = rows.filter(({ value }) => holds(value)).map(({ key }) => key);
  const head = await state.get(`chat/${chat}`);
  const isTold = head !== undefined && holds(head);
  await state.setMany([
    ...gone.map((key) => ({ key, value: undefined })),
    ...(isTold
      ? [{ key: `chat/${chat}`, value: JSON.stringify({ ...JSON.parse(head), title: '…' }) }]
      : []),
  ]);
  return gone.length;
}
