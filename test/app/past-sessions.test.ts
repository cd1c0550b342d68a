// Whose past conversations a turn may look into.

import { expect, it } from 'vitest';
import { chatsOfTurn, createPastSessions } from '../../src/features/memory/memory-tools.ts';
import type { Person } from '../../src/kernel/access/person.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  personId,
  sessionKey,
  userId,
} from '../../src/kernel/message/ids.ts';
import { sessionKeyOf } from '../../src/kernel/message/message.ts';
import { createMovableClock } from '../support/movable-clock.ts';

const chat = (channel: string, id: string) => {
  return { channel: channelName(channel), account: DEFAULT_ACCOUNT, chat: chatId(id) };
};
const door = (channel: string, id: string) => {
  return { channel: channelName(channel), ids: [userId(id)], chat: chat(channel, id) };
};
const person = (id: string, role: Person['role'], ...doors: Person['doors']): Person => {
  return { id: personId(id), name: id, role, conversations: 'each', doors };
};
const PEOPLE = [
  person('p-anna', 'trusted', door('telegram', '1'), door('email', 'a@x')),
  person('p-olga', 'owner', door('telegram', '2'), door('web', 'w1')),
  person('p-otto', 'owner', door('telegram', '3')),
];
const records = {
  get: async (id: string) => PEOPLE.find((each) => each.id === id),
  list: async () => PEOPLE,
};
const localChats = async (channel: string) => (channel === 'web' ? ['web:w1', 'web:w2'] : []);

function chatsFor(where: ReturnType<typeof chat>, notes: string) {
  const turn = {
    chat: where,
    session: sessionKey(`${sessionKeyOf(where)}#topic`),
    person: { notes },
  };
  return chatsOfTurn(turn, { persons: records, localChats });
}

it.each([
  [
    'a person: all their doors',
    chat('telegram', '1'),
    'people/p-anna/',
    ['telegram:1', 'email:a@x'],
  ],
  ['an owner: their own alone', chat('telegram', '3'), '', ['telegram:3']],
  ['the page: all of its chats', chat('web', 'w2'), '', ['web:w2', 'telegram:2', 'web:w1']],
  ['a group: only that', chat('telegram', '-9'), 'groups/gabc/', ['telegram:-9']],
  ['a mail that nobody proves: none', chat('email', 'a@x'), 'people/p-anna-unverified/', []],
  ['somebody unknown: only this', chat('lark', 'q'), 'people/p-none/', ['lark:q']],
])('%s', async (_who, where, notes, chats) => {
  expect(await chatsFor(where, notes)).toEqual(chats);
});

it('a conversation that stays on one’s own machines is read from no other', async () => {
  const here = sessionKeyOf(chat('telegram', '1'));
  const kept = sessionKey(`${sessionKeyOf(chat('email', 'a@x'))}#topic`);
  const asked: string[] = [];
  const past = createPastSessions({
    index: {
      find: async (_words: string, { scopes }: { readonly scopes: readonly string[] }) => {
        asked.push(...scopes);
        return [];
      },
    } as unknown as Parameters<typeof createPastSessions>[0]['index'],
    indexing: { flushFor: async () => undefined } as never,
    sessions: { earlier: async () => ({ turns: [] }) as never },
    clock: createMovableClock(),
    closedTo: async (session) => (session === kept ? [] : [kept]),
    ...{ persons: records, localChats },
  });
  const from = (session: typeof here) => ({
    ...{ chat: chat('telegram', '1'), session, person: { notes: 'people/p-anna/' } },
  });
  await past.find('words', from(here), 1);
  expect(asked).toEqual(['session:telegram:1']);
  const question = {} as Parameters<typeof past.read>[2];
  expect(await past.read(kept, from(here), question)).toBeUndefined();
  expect(await past.read(kept, from(kept), question)).toBeDefined();
});
