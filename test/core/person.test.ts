import { describe, expect, it } from 'vitest';
import {
  chatsOf,
  languageTag,
  mayVouchFor,
  mergePersons,
  nameOfLanguage,
  type PersonChannel,
  type PersonRecord,
  withoutPersonChannel,
  withPersonChannel,
} from '../../src/kernel/access/person.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  personId,
  userId,
} from '../../src/kernel/message/ids.ts';
import { reachesOthers } from '../../src/kernel/message/untrusted.ts';

const chatOn = (channel: string, chat: string) => ({
  channel: channelName(channel),
  account: DEFAULT_ACCOUNT,
  chat: chatId(chat),
});
const door = (channel: string, ids: readonly string[], chat?: string): PersonChannel => ({
  channel: channelName(channel),
  ids: ids.map(userId),
  ...(chat === undefined ? {} : { chat: chatOn(channel, chat) }),
});
const person = (id: string, ...doors: PersonChannel[]): PersonRecord => ({
  id: personId(id),
  name: id,
  doors,
  conversations: 'each',
});

describe('a person over several doors', () => {
  it('is the same record where a message shows nothing new, and learns a new id or chat', () => {
    const anna = person('a', door('whatsapp', ['1@lid'], 'c1'));
    expect(withPersonChannel(anna, door('whatsapp', ['1@lid']))).toBe(anna);
    const known = withPersonChannel(anna, door('whatsapp', ['1@lid', '49@s'], 'c2'));
    expect(known.doors).toEqual([door('whatsapp', ['1@lid', '49@s'], 'c2')]);
    expect(withPersonChannel(known, door('telegram', ['7'])).doors).toHaveLength(2);
  });

  it('joined of two keeps what the first says and the chats of both', () => {
    const first = { ...person('a', door('telegram', ['7'], 'c7')), language: 'de' };
    const second = {
      ...person('b', door('whatsapp', ['1'], 'c1')),
      language: 'fr',
      timeZone: 'UTC',
    };
    expect(mergePersons(first, second)).toEqual({
      ...first,
      timeZone: 'UTC',
      doors: [door('telegram', ['7'], 'c7'), door('whatsapp', ['1'], 'c1')],
    });
  });

  it('is allowed no more by being two people who are limited', () => {
    const first = {
      ...person('a', door('telegram', ['7'])),
      limits: { perDay: 5, moneyPerDay: 0 },
    };
    const second = {
      ...person('b', door('whatsapp', ['1'])),
      limits: { perDay: 0, moneyPerDay: 2, tokensPerDay: 10 },
    };
    const limits = { perDay: 5, moneyPerDay: 2, tokensPerDay: 10 };
    expect(mergePersons(first, second).limits).toEqual(limits);
    expect(mergePersons(person('c', door('chat', ['2'])), first).limits).toEqual(first.limits);
  });

  it('loses a door, but never the last one', () => {
    const both = {
      ...person('a', door('telegram', ['7'], 'c7'), door('whatsapp', ['1'], 'c1')),
      preferredDoor: channelName('whatsapp'),
    };
    expect(chatsOf(both).map(({ channel }) => channel)).toEqual(['whatsapp', 'telegram']);
    const one = withoutPersonChannel(both, 'whatsapp');
    expect(one).toEqual(person('a', door('telegram', ['7'], 'c7')));
    expect(one && withoutPersonChannel(one, 'telegram')).toBeUndefined();
  });

  it('is vouched for only by somebody who may do at least as much', () => {
    expect(mayVouchFor('owner', undefined)).toBe(true);
    expect(mayVouchFor('owner', 'trusted')).toBe(true);
    expect(mayVouchFor('trusted', 'trusted')).toBe(true);
    expect(mayVouchFor('trusted', 'owner')).toBe(false);
    expect(mayVouchFor('guest', 'trusted')).toBe(false);
    expect(mayVouchFor(undefined, undefined)).toBe(false);
    expect(mayVouchFor('blocked', undefined)).toBe(false);
    expect(mayVouchFor('owner', 'blocked')).toBe(false);
  });
});

describe('a language', () => {
  it.each([
    ['de', 'de', 'German'],
    [' EN-gb ', 'en-GB', 'British English'],
    ['pt-br', 'pt-BR', 'Brazilian Portuguese'],
    ['german', 'de', 'German'],
    ['Deutsch', 'de', 'German'],
    ['français', 'fr', 'French'],
    ['中文', 'zh', 'Chinese'],
    ['Hebrew', 'he', 'Hebrew'],
  ])('%j is spelled %s and called %s', (typed, tag, name) => {
    expect(languageTag(typed)).toBe(tag);
    expect(nameOfLanguage(tag)).toBe(name);
  });
  it.each(['', 'german please', 'klingonish', 'xx-not-a-language-at-all-', 'qqq'])(
    '%j is none',
    (typed) => {
      expect(languageTag(typed)).toBeUndefined();
    },
  );
});

describe('notes', () => {
  const own = 'people/p1/';
  it.each([
    'memory/MEMORY.md',
    './memory/../memory/MEMORY.md',
    'MEMORY',
    'Memory/x.md',
    'mem\u200bory/MEMORY.md',
    'memory./x',
    'USER.md',
    'people',
    'people/p2/memory/MEMORY.md',
    'people/p1/../p2/memory/MEMORY.md',
    'people/p10/x',
    'groups/g1/memory/MEMORY.md',
    '../ws/memory/MEMORY.md',
    'notes/../../ws/memory/x',
    '/home/me/ws/memory/MEMORY.md',
    'memory\\MEMORY.md',
  ])('of others are out of reach by %s', (path) => {
    expect(reachesOthers(path, own)).toBe(true);
    const isOfSomebody = /^(?:people|groups)\b/.test(path);
    expect(reachesOthers(path, '')).toBe(isOfSomebody);
  });
  it.each(['people/p1', 'people/p1/memory/MEMORY.md', 'draft.md', '.', 'skills/memory/SKILL.md'])(
    'of others do not stand in %s',
    (path) => {
      expect(reachesOthers(path, own)).toBe(false);
    },
  );
});
