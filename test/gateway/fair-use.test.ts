// The limits of messages at the gate, over a real store: who counts as one, what counts once, and what
// a restart changes. What is queued is what the model would be asked.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { withPersonChannel } from '../../src/kernel/access/person.ts';
import { limitsSchema } from '../../src/kernel/config/limits.ts';
import { channelName, chatId, DEFAULT_ACCOUNT, userId } from '../../src/kernel/message/ids.ts';
import type { InboundMessage } from '../../src/kernel/message/message.ts';
import { makePeopleRig, OWNER, type PeopleRig, person } from './people-rig.ts';

const GROUP = '-100';
let rig: PeopleRig;

beforeEach(async () => {
  rig = await makePeopleRig({ allowFrom: ['*'] });
});
afterEach(() => rig[Symbol.asyncDispose]());

const limit = (messages: object, exceptions: readonly object[] = []) => {
  rig.limits = limitsSchema.parse({ messages, exceptions });
};
async function flood(count: number, from: Parameters<PeopleRig['say']>[0], word = 'flood') {
  for (let index = 0; index < count; index += 1) await rig.say(from, `${word} ${index}`);
}
const queued = async () => (await rig.queued()).length;

describe('a person who writes too much', () => {
  it('has exactly so many answered, is told once, and then nothing more is said', async () => {
    await flood(100, '7');
    expect(await queued()).toBe(20);
    expect(await rig.sentTo('7')).toEqual([
      expect.stringMatching(/20 messages a minute.*60 seconds/),
    ]);
    const trace = await rig.bus.trace('last');
    expect(JSON.stringify(trace)).toContain('too many messages of one person in a minute');
  });

  it('goes on after the minute, and is told again only when it is too much again', async () => {
    await flood(25, '7');
    await rig.clock.advance(60_000);
    await flood(20, '7', 'later');
    expect(await queued()).toBe(40);
    expect(await rig.sentTo('7')).toHaveLength(1);
    await flood(5, '7', 'more');
    expect(await rig.sentTo('7')).toHaveLength(2);
  });

  it('finds the same pause and the same counts after a restart in the middle', async () => {
    await flood(15, '7');
    await rig.restart();
    await flood(15, '7', 'again');
    expect(await queued()).toBe(20);
    await rig.restart();
    await flood(5, '7', 'still');
    expect(await queued()).toBe(20);
    expect(await rig.sentTo('7')).toHaveLength(1);
  });

  it('is answered again from the next local day on', async () => {
    limit({ perMinute: 0, perDay: 10 });
    await flood(12, '7');
    expect(await queued()).toBe(10);
    expect(await rig.sentTo('7')).toEqual([expect.stringContaining('tomorrow, in 12 hours')]);
    await rig.clock.advance(12 * 3_600_000 - 1);
    await rig.say('7', 'too early');
    await rig.clock.advance(1);
    await rig.say('7', 'good morning');
    expect((await rig.queued()).slice(10)).toEqual(['good morning']);
  });

  it('has what an owner allows them over all their doors, and takes it along off a door', async () => {
    limit({ perMinute: 0, perDay: 50 }, [{ who: 'chat:7', perDay: 40 }]);
    await rig.say('7', 'hello');
    await rig.say(OWNER, '/people 7 messages-per-day 3');
    expect((await rig.sentTo(OWNER)).at(-1)).toContain('At most: 3 messages a day');
    await rig.say(OWNER, '/people 7 messages-per-day three');
    expect((await rig.sentTo(OWNER)).at(-1)).toContain('is not a valid number of messages a day');
    const [seven] = await rig.people.persons.find('7');
    const door = { channel: channelName('other'), ids: [userId('70')] };
    const { persons } = rig.people;
    if (seven !== undefined)
      await persons.change(seven.id, (record) => withPersonChannel(record, door));
    const chat = { channel: door.channel, account: DEFAULT_ACCOUNT, chat: chatId('70') };
    for (const word of ['one', 'two', 'three']) await rig.say('70', word, { chat });
    await rig.say('7', 'four');
    await rig.say('7', '/me');
    expect((await rig.sentTo('7')).at(-1)).toContain('At most: 3 messages a day');
    expect((await rig.queued()).filter((text) => !text.startsWith('/'))).toHaveLength(3);
    if (seven !== undefined) expect(await persons.unlink(seven.id, 'other')).toBe('done');
    expect((await persons.find('70')).map(({ limits }) => limits)).toEqual([{ perDay: 3 }]);
    await rig.say(OWNER, '/people 7 messages-per-day auto');
    await rig.say('7', 'five');
    expect(await rig.queued()).toContain('five');
  });

  it('counts as one by number and by LID, also when that is found out later', async () => {
    const byNumber = person('+49');
    const byLid = person('lid-7');
    const both = person('lid-7', { alsoKnownAs: [userId('+49')] });
    await flood(10, byNumber, 'number');
    await flood(10, byLid, 'lid');
    await flood(5, both, 'both');
    expect(await queued()).toBe(20);
    await rig.restart();
    await flood(5, byNumber, 'after');
    expect(await queued()).toBe(20);
  });

  it('can still give commands, of which a flood costs nothing either', async () => {
    await flood(25, '7');
    await rig.say('7', '/stop now');
    expect((await rig.sentTo('7')).at(-1)).toMatch(/dropped|Nothing is running/);
    for (let index = 0; index < 100; index += 1) await rig.say('7', `/help ${index}`);
    const answers = await rig.sentTo('7');
    expect(answers.filter((text) => text.startsWith('**This conversation**'))).toHaveLength(59);
    expect(answers.filter((text) => text.includes('60 commands a minute'))).toHaveLength(1);
  });

  it('cannot flood with commands that are carried out before they are stored', async () => {
    for (let index = 0; index < 100; index += 1) await rig.say('7', `/continue nowhere${index}`);
    expect((await rig.sentTo('7')).filter((text) => !text.includes('60 commands'))).toHaveLength(
      60,
    );
  });

  it('is no other person: each has their own allowance', async () => {
    await flood(25, '7');
    await flood(5, '8');
    expect(await queued()).toBe(25);
  });

  it('may be an owner, who has ten times as much', async () => {
    await flood(210, OWNER);
    expect(await queued()).toBe(200);
  });

  it('may have limits of their own, which count over the channel’s and the general ones', async () => {
    limit({ perMinute: 5 }, [
      { who: 'chat', perMinute: 3 },
      { who: 'chat:8', perMinute: 7 },
    ]);
    await flood(10, '7');
    expect(await queued()).toBe(3);
    await flood(10, '8');
    expect(await queued()).toBe(10);
    limit({ perMinute: 0 });
    await flood(10, '7', 'free');
    expect(await queued()).toBe(20);
  });
});

describe('a person of two doors', () => {
  it('has the limits that are set for one of them on both', async () => {
    limit({}, [{ who: 'chat:7', perMinute: 3 }]);
    const chat = { channel: channelName('phone'), account: DEFAULT_ACCOUNT, chat: chatId('900') };
    await rig.say('7', 'hello');
    await rig.say('900', 'hello', { chat });
    const [one] = await rig.people.persons.find('7');
    const [other] = await rig.people.persons.find('900');
    if (one === undefined || other === undefined) throw new Error('nobody is known');
    await rig.people.persons.merge(one.id, other);
    await rig.clock.advance(60_000);
    for (const text of ['a', 'b', 'c', 'd', 'e']) await rig.say('900', text, { chat });
    expect(await queued()).toBe(2 + 3);
  });
});

describe('counts that cannot be read', () => {
  it('keep nobody from being answered, and cost nobody else theirs', async () => {
    await flood(15, '8');
    await rig.store.scope('fair-use').set('person chat:7', '{"names":["person ch');
    await rig.store.scope('fair-use').set('person chat:9', '{}');
    await rig.restart();
    await flood(1, '7', 'still');
    await flood(15, '8', 'again');
    expect(await queued()).toBe(21);
  });
});

describe('a message that is offered again', () => {
  it('is not counted twice', async () => {
    await flood(10, '7');
    for (let round = 0; round < 5; round += 1) await flood(10, '7');
    expect(await queued()).toBe(10);
    await flood(10, '7', 'new');
    expect(await queued()).toBe(20);
    await flood(20, '7', 'new');
    await rig.clock.advance(60_000);
    await flood(10, '7');
    await flood(20, '7', 'third');
    expect(await queued()).toBe(40);
  });

  it('begins no pause and is answered by no notice, even when the allowance is used up', async () => {
    await flood(20, '7');
    await flood(20, '7');
    expect(await rig.sentTo('7')).toEqual([]);
    await rig.restart();
    await flood(20, '7');
    expect(await rig.sentTo('7')).toEqual([]);
    expect(await queued()).toBe(20);
  });
});

describe('a group', () => {
  const inGroup = (extra: Partial<InboundMessage> = {}): Partial<InboundMessage> => ({
    addressing: 'mention',
    chat: { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId(GROUP) },
    group: { ids: [chatId(GROUP)] },
    ...extra,
  });

  it('has so many answered of all members together, and is told once', async () => {
    await rig[Symbol.asyncDispose]();
    const groups = { listed: [GROUP], allow: 'members', names: [], speakAs: [] } as const;
    rig = await makePeopleRig({ allowFrom: ['*'], groups });
    for (let index = 0; index < 60; index += 1) {
      await rig.say(`${100 + index}`, `hello ${index}`, inGroup());
    }
    expect(await queued()).toBe(30);
    expect(await rig.sentTo(GROUP)).toEqual([expect.stringContaining('from this group')]);
    await rig.say('100', 'and alone');
    await rig.say(OWNER, 'the owner still', inGroup());
    expect((await rig.queued()).slice(30).toSorted()).toEqual(['and alone', 'the owner still']);
  });
});
