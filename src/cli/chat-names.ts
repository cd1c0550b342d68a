// The display name of a conversation: the person of a private chat, the title of a chat of the web
// page.

import { channelScope } from '../kernel/message/ids.ts';
import { chatRefOf } from '../kernel/message/message.ts';
import { printable, type Terminal } from './terminal.ts';

/** By session key; empty where none is known. */
export async function chatNames(
  { home, clock }: Terminal,
  keys: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { hasState, withOpenState } = await import('../kernel/home-state.ts');
  if (!(await hasState(home))) return new Map();
  const { chatTitle } = await import('../channels/web/chat-log.ts');
  return withOpenState(home, clock, async ({ store, people }) => {
    const named = keys.map(async (key) => {
      const chat = chatRefOf(key);
      if (chat === undefined) return [key, ''] as const;
      const state = store.scope(channelScope(chat));
      const title = await chatTitle(state, chat.chat);
      const name = title ?? (await people.persons.inChat(chat))?.name ?? '';
      return [key, printable(name)] as const;
    });
    return new Map(await Promise.all(named));
  });
}

/** The name first; the key alone where no name is known. */
export function chatText(names: ReadonlyMap<string, string>, key: string): string {
  const name = names.get(key) ?? '';
  return name === '' ? printable(key) : `${name} (${printable(key)})`;
}
