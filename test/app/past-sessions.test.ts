// Whose past conversations a turn may look into.

import { expect, it } from 'vitest';
import { chatsOfTurn } from '../../src/app/past-sessions.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  personId,
  sessionKey,
  userId,
} from '../../src/core/ids.ts';
import { sessionKeyOf } from '../../src/core/message.ts';
import type { Person } from '../../src/core/person.ts';

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
const ownDoorChats = async (channel: string) => (channel === 'web' ? ['web:w1', 'web:w2'] : []);

function chatsFor(where: ReturnType<typeof chat>, notes: string) {
  const turn = {
    chat: where,
    session: sessionKey(`${sessionKeyOf(where)}#topic`),
    person: { notes },
  };
  return chatsOfTurn(turn, { persons: () => records, ownDoorChats });
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
