// What events leave out: the names of senders, the titles of groups, the message that is answered. Asked once
// and with a short deadline beside the delivery; without an answer the message goes on without it.

import { RecentMap } from '../../lib/async.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../../lib/json/json.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { LarkApi } from './api.ts';
import { LarkCallError } from './failures.ts';
import { at, isId } from './rules/content.ts';

export type ChatInfo = { readonly isGroup: boolean; readonly title?: string };

export type Directory = ReturnType<typeof createDirectory>;

/** Lark waits three seconds for the receipt of an event, and storing takes time too. */
const DEADLINE_MS = 1200;
const LIFETIME_MS = 6 * 3_600_000;
/** A missing permission, or an API that does not answer, is not asked about at every message. */
const RETRY_MS = 60_000;
const MAX_KNOWN = 2000;

export function createDirectory(api: LarkApi, clock: Clock) {
  const names = createCache<string>(clock);
  const chats = createCache<ChatInfo>(clock);

  async function ask(path: string, params: Readonly<Record<string, string>> = {}) {
    try {
      const signal = AbortSignal.timeout(DEADLINE_MS);
      return fieldsOf(at(await api.call({ method: 'GET', path, params, signal }), 'data'));
    } catch (error) {
      if (error instanceof LarkCallError) return undefined;
      throw error;
    }
  }

  return {
    /** Undefined where it cannot be had now. */
    nameOf: (openId: string): Promise<string | undefined> =>
      names.get(openId, async () => {
        if (!isId(openId)) return undefined;
        const data = await ask(`contact/v3/users/${openId}`, { user_id_type: 'open_id' });
        return textOf(at(data, 'user', 'name'));
      }),
    chat: (chatId: string): Promise<ChatInfo | undefined> =>
      chats.get(chatId, async () => {
        const data = isId(chatId) ? await ask(`im/v1/chats/${chatId}`) : undefined;
        if (data === undefined) return undefined;
        const title = textOf(data['name']);
        const isGroup = data['chat_mode'] !== 'p2p';
        return { isGroup, ...(title === undefined ? {} : { title }) };
      }),
    /** Spares asking: an event told that somebody wrote to the bot alone there. */
    noteDirect: (chatId: string) => chats.put(chatId, { isGroup: false }),
    /** A message as the API shows it; undefined where it is gone or cannot be had now. */
    async message(messageId: string): Promise<Fields | undefined> {
      if (!isId(messageId)) return undefined;
      // Without the parameter Lark shows a placeholder in place of a card like ours.
      const params = { card_msg_content_type: 'user_card_content' };
      const data = await ask(`im/v1/messages/${messageId}`, params);
      return fieldsOf(listOf(data?.['items'])[0]);
    },
  };
}

function createCache<T>(clock: Clock) {
  const known = new RecentMap<string, { readonly value: Promise<T | undefined>; until: number }>(
    MAX_KNOWN,
  );
  const keep = (key: string, value: Promise<T | undefined>) => {
    const entry = { value, until: clock.now() + LIFETIME_MS };
    known.set(key, entry);
    return entry;
  };
  return {
    put: (key: string, value: T) => void keep(key, Promise.resolve(value)),
    get(key: string, find: () => Promise<T | undefined>): Promise<T | undefined> {
      const kept = known.get(key);
      if (kept !== undefined && kept.until > clock.now()) return kept.value;
      const value = find();
      const entry = keep(key, value);
      return value.then(
        (found) => {
          if (found === undefined) entry.until = clock.now() + RETRY_MS;
          return found;
        },
        (error: unknown) => {
          known.delete(key);
          throw error;
        },
      );
    },
  };
}
