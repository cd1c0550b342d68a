// Joining the doors of one person, at the gate over a real store: who may, what goes along, and what
// guessing, flooding and repeating come to.

import { describe, expect, it, onTestFinished } from 'vitest';
import { channelName, chatId, DEFAULT_ACCOUNT, messageId } from '../../src/kernel/message/ids.ts';
import type { InboundMessage } from '../../src/kernel/message/message.ts';
import { makePeopleRig, OWNER, type PeopleRig, person } from './people-rig.ts';

async function makeRig(...args: Parameters<typeof makePeopleRig>): Promise<PeopleRig> {
  const rig = await makePeopleRig(...args);
  onTestFinished(() => rig[Symbol.asyncDispose]());
  return rig;
}

/** On the other door. */
const other = (chat: string, extra: Partial<InboundMessage> = {}): Partial<InboundMessage> => ({
  id: messageId(`phone:default:${chat}:${JSON.stringify(extra)}:${Math.random()}`),
  chat: { channel: channelName('phone'), account: DEFAULT_ACCOUNT, chat: chatId(chat) },
  ...extra,
});

async function codeOf(rig: PeopleRig, owner = OWNER): Promise<string> {
  const before = (await rig.sentTo(owner)).length;
  await rig.say(owner, '/link', { id: messageId(`chat:default:${owner}:link:${before}`) });
  const answer = (await rig.sentTo(owner)).at(-1) ?? '';
  const code = /\/link ([A-Z0-9]{8})`/.exec(answer)?.[1];
  if (code === undefined) throw new Error(answer);
  return code;
}

const roleOn = (rig: PeopleRig, id: string) =>
  rig.people.persons.of('phone', [id]).then((found) => found?.role);

describe('a code of /link', () => {
  it('lets its sender in on another door as the same person, and names each door on the other', async () => {
    const rig = await makeRig();
    const code = await codeOf(rig);
    await rig.say('900', `/link ${code.toLowerCase()}`, other('900'));
    expect(await roleOn(rig, '900')).toBe('owner');
    expect((await rig.sentTo('900', 'phone')).at(-1)).toMatch(/same person.*chat `1`/);
    expect((await rig.sentTo(OWNER)).at(-1)).toMatch(/same person.*phone `900`/);
    await rig.say('900', 'hello', other('900'));
    expect(await rig.queued()).toEqual(['hello']);
    await rig.restart();
    expect(await roleOn(rig, '900')).toBe('owner');
    expect(await rig.people.persons.list()).toHaveLength(1);
  });

  it('answers what a stranger had written before', async () => {
    const rig = await makeRig();
    await rig.say('900', 'anybody there?', other('900'));
    expect(await rig.queued()).toEqual([]);
    await rig.say('900', `/link ${await codeOf(rig)}`, other('900'));
    expect(await rig.queued()).toEqual(['anybody there?']);
  });

  it('is good once, for ten minutes, and a repeat of the message that used it changes nothing', async () => {
    const rig = await makeRig();
    const code = await codeOf(rig);
    const late = await codeOf(rig);
    const link = other('900');
    await rig.say('900', `/link ${code}`, link);
    await rig.say('900', `/link ${code}`, link);
    expect(await rig.sentTo('900', 'phone')).toHaveLength(1);
    await rig.say('901', `/link ${code}`, other('901'));
    expect(await roleOn(rig, '901')).toBeUndefined();
    await rig.clock.advance(10 * 60_000);
    await rig.say('902', `/link ${late}`, other('902'));
    expect(await roleOn(rig, '902')).toBeUndefined();
    expect(await rig.sentTo('902', 'phone')).toEqual([]);
  });

  it('takes no door over for a sender whom nothing verifies, however they may be answered', async () => {
    const rig = await makeRig({ acceptUnverified: true, allowFrom: ['900'] });
    await rig.say('900', 'it is me', other('900'));
    const [before] = await rig.people.persons.find('900');
    const forged = person('900', { verified: 'unverified' });
    const trusted = '7';
    await rig.people.pairing.approve({ channel: 'chat', userId: trusted, name: 'T' }, 'trusted');
    await rig.say(trusted, 'hello');
    await rig.say(forged, `/link ${await codeOf(rig, trusted)}`, other('900'));
    expect((await rig.sentTo('900', 'phone')).at(-1)).toMatch(/wrong or has expired/);
    expect(await rig.people.persons.find('900')).toEqual([before]);
  });

  it('is worthless after ten wrong guesses by strangers, who are told nothing', async () => {
    const rig = await makeRig();
    const code = await codeOf(rig);
    for (const stranger of ['801', '802', '803']) {
      for (let guess = 0; guess < 6; guess += 1) {
        await rig.say(stranger, `/link AAAAAA${stranger.at(-1)}${guess}`, other(stranger));
      }
      expect(await rig.sentTo(stranger, 'phone')).toEqual([]);
    }
    await rig.say('900', `/link ${code}`, other('900'));
    expect(await roleOn(rig, '900')).toBeUndefined();
  });

  it('survives one stranger who guesses for ever', async () => {
    const rig = await makeRig();
    const code = await codeOf(rig);
    for (let guess = 0; guess < 200; guess += 1) {
      await rig.say('801', `/link GUESS${guess}`, other('801'));
    }
    await rig.say('900', `/link ${code}`, other('900'));
    expect(await roleOn(rig, '900')).toBe('owner');
  });

  it('is shown five times an hour at most', async () => {
    const rig = await makeRig();
    for (let count = 0; count < 5; count += 1) await codeOf(rig);
    await expect(codeOf(rig)).rejects.toThrow('several codes');
    await rig.clock.advance(3_600_000);
    expect(await codeOf(rig)).toHaveLength(8);
  });

  it('never lifts its giver: who may do more has to show it, not send it', async () => {
    const rig = await makeRig({}, { [OWNER]: 'owner', '5': 'guest' });
    const code = await codeOf(rig, '5');
    await rig.say(OWNER, `/link ${code}`);
    expect((await rig.sentTo(OWNER)).at(-1)).toContain('have more rights here');
    expect((await rig.people.persons.of('chat', ['5']))?.role).toBe('guest');
    expect(await rig.people.persons.of('chat', [OWNER])).toBeUndefined();
  });

  it("of somebody else's tells an owner who linked what", async () => {
    const rig = await makeRig({}, { [OWNER]: 'owner', '5': 'trusted' });
    await rig.say('900', `/link ${await codeOf(rig, '5')}`, other('900'));
    expect(await roleOn(rig, '900')).toBe('trusted');
    expect(rig.told).toEqual([expect.stringMatching(/Name 5.*phone `900`/)]);
  });

  it('does nothing for the blocked, in a group, from a mail nobody vouches for', async () => {
    const rig = await makeRig({}, { [OWNER]: 'owner', '6': 'blocked' });
    const code = await codeOf(rig);
    await rig.say('6', `/link ${code}`);
    await rig.say('900', `/link ${code}`, other('g', { addressing: 'mention' }));
    await rig.say(person('901', { verified: 'unverified' }), `/link ${code}`, other('901'));
    expect((await rig.people.persons.list()).flatMap(({ doors }) => doors)).toHaveLength(1);
    await rig.say('900', `/link ${code}`, other('900'));
    expect(await roleOn(rig, '900')).toBe('owner');
  });

  it('is not shown by mail', async () => {
    const rig = await makeRig({ allowFrom: ['a@b.example'] });
    const mail = { channel: channelName('mail'), account: DEFAULT_ACCOUNT, chat: chatId('m') };
    await rig.say('a@b.example', '/link', { chat: mail });
    expect((await rig.sentTo('m', 'mail')).at(-1)).toContain('not by mail');
  });
});

describe('a person over two doors', () => {
  async function linked() {
    const rig = await makeRig({}, { [OWNER]: 'owner', '5': 'trusted' });
    await rig.say('900', `/link ${await codeOf(rig, '5')}`, other('900'));
    return rig;
  }

  it('is blocked on both by a block on one', async () => {
    const rig = await linked();
    await rig.say(OWNER, '/block chat 5');
    await rig.say('900', 'let me in', other('900'));
    expect(await rig.queued()).toEqual([]);
  });

  it('takes the linked door off, and that one alone is closed then', async () => {
    const rig = await linked();
    await rig.say('5', '/unlink chat');
    expect((await rig.sentTo('5')).at(-1)).toContain('would lose');
    await rig.say('5', '/unlink phone');
    expect((await rig.sentTo('5')).at(-1)).toContain('phone is disconnected');
    await rig.say('900', 'still there?', other('900'));
    await rig.say('5', 'and I?');
    expect(await rig.queued()).toEqual(['and I?']);
  });

  it('is seen under a second id of a door without becoming two', async () => {
    const rig = await makeRig({ allowFrom: ['lid', 'number'] });
    await rig.say('lid', 'one');
    await rig.say('number', 'two');
    expect(await rig.people.persons.list()).toHaveLength(2);
    await rig.say(person('lid', { alsoKnownAs: [person('number').id] }), 'three');
    const [one, ...others] = await rig.people.persons.list();
    expect(others).toEqual([]);
    expect(one?.doors).toMatchObject([{ ids: ['lid', 'number'] }]);
  });
});
