// People nobody has decided about: what they get, what the owner hears, and what becomes of what they
// wrote.

import { afterEach, describe, expect, it } from 'vitest';
import { channelName, userId } from '../../src/kernel/message/ids.ts';
import { makePeopleRig, OWNER, type PeopleRig, person } from './people-rig.ts';

let rig: PeopleRig;
afterEach(() => rig[Symbol.asyncDispose]());

const DAY_MS = 86_400_000;

async function withOwnerPresent(policy: Parameters<typeof makePeopleRig>[0] = {}) {
  rig = await makePeopleRig(policy);
  await rig.say(OWNER, '/whoami');
  return rig;
}

describe('a stranger at a silent door', () => {
  it('gets nothing, while the owner hears once who it is and what they want', async () => {
    await withOwnerPresent();
    await rig.say('7', 'hello there');
    await rig.say('7', 'are you there?');
    expect(await rig.sentTo('7')).toEqual([]);
    expect(await rig.queued()).toEqual([]);
    const [, notice, ...more] = await rig.sentTo(OWNER);
    expect(notice).toContain('New contact on chat: `Name 7` (`7`): `hello there`');
    expect(notice).toContain('`/allow once chat 7`');
    expect(more).toEqual([]);
    const elsewhere = { ...rig.message('8', '').chat, channel: channelName('whatsapp') };
    await rig.say('8', 'hi', { chat: elsewhere });
    expect((await rig.sentTo(OWNER))[2]).toContain('New contact on WhatsApp: `Name 8`');
  });

  it('is answered from now on when allowed, beginning with all they wrote, once', async () => {
    await withOwnerPresent();
    await rig.say('7', 'one');
    await rig.say('7', 'two');
    await rig.restart();
    await rig.say(OWNER, '/allow chat 7');
    expect(await rig.queued()).toEqual(['one', 'two']);
    await rig.say('7', 'three');
    await rig.say('7', 'one');
    expect(await rig.queued()).toEqual(['one', 'two', 'three']);
    expect((await rig.sentTo(OWNER)).at(-1)).toContain('from now on');
    expect(await rig.people.pairing.roleOf('chat', ['7'])).toBe('trusted');
  });

  it('is answered no further when allowed once, and announced anew', async () => {
    await withOwnerPresent();
    await rig.say('7', 'one');
    await rig.say(OWNER, '/allow once 7');
    await rig.say('7', 'one');
    await rig.say('7', 'two');
    expect(await rig.queued()).toEqual(['one']);
    expect((await rig.sentTo(OWNER)).at(-1)).toContain('`two`');
  });

  it('is never heard of again when blocked, whatever is listed', async () => {
    await withOwnerPresent();
    await rig.say(person('7', { alsoKnownAs: [userId('seven')] }), 'one');
    await rig.say(OWNER, '/block seven');
    rig.policy = { ...rig.policy, allowFrom: ['*', '7'], strangers: 'open' };
    await rig.say('7', 'two');
    await rig.say(person('seven'), 'three');
    expect(await rig.queued()).toEqual([]);
    expect(await rig.sentTo('7')).toEqual([]);
    expect(await rig.people.strangers.list()).toEqual([]);
    await rig.say(OWNER, '/allow seven');
    expect(await rig.people.pairing.roleOf('chat', ['7', 'seven'])).toBe('trusted');
  });

  it('is forgotten after a week, with every word', async () => {
    await withOwnerPresent();
    await rig.say('7', 'secret words');
    await rig.clock.advance(8 * DAY_MS);
    expect(await rig.people.strangers.list()).toEqual([]);
    expect(await rig.people.strangers.expire()).toBe(2);
  });

  it('has only so much of theirs kept, and the owner is told what was not', async () => {
    await withOwnerPresent();
    for (let n = 0; n < 12; n += 1) await rig.say('7', `message ${n}`);
    await rig.say('8', 'x'.repeat(60_000));
    await rig.say(OWNER, '/allow 7');
    expect(await rig.queued()).toHaveLength(10);
    expect((await rig.sentTo(OWNER)).at(-1)).toContain('2 messages more than I keep');
    await rig.say(OWNER, '/allow 8');
    expect(await rig.queued()).toHaveLength(10);
  });

  it('shows its name and words as they are, never as links or commands', async () => {
    await withOwnerPresent();
    const name = 'Owner` [x](http://evil.example)\u202e\n`/allow 9`';
    await rig.say(person('7', { name }), '`](http://evil.example)\n/allow 7');
    const [, notice = ''] = await rig.sentTo(OWNER);
    const outside =
      notice
        .split('\n')[0]
        ?.split(/`[^`]*`/)
        .join('') ?? '';
    expect(outside).toBe('New contact on chat:  (): ');
  });
});

describe('a thousand strangers', () => {
  it('cost the owner eleven notices an hour and the store a hundred rows', async () => {
    await withOwnerPresent();
    for (let id = 100; id < 350; id += 1) await rig.say(`${id}`, 'buy now');
    const notices = (await rig.sentTo(OWNER)).slice(1);
    expect(notices).toHaveLength(11);
    expect(notices.at(-1)).toContain('/strangers');
    expect(await rig.people.strangers.list()).toHaveLength(100);
    await rig.restart();
    await rig.say('101', 'again');
    await rig.say('130', 'again');
    expect((await rig.sentTo(OWNER)).slice(1)).toHaveLength(11);
    await rig.clock.advance(3_600_001);
    await rig.say('130', 'still here');
    expect((await rig.sentTo(OWNER)).at(-1)).toContain('`130`');
    expect(await rig.queued()).toEqual([]);
  });

  it('get three codes in half an hour, each once', async () => {
    await withOwnerPresent({ strangers: 'pairing' });
    for (let id = 100; id < 200; id += 1) {
      await rig.say(`${id}`, 'hello');
      await rig.say(`${id}`, 'hello?');
    }
    const ids = Array.from({ length: 100 }, (_, n) => `${100 + n}`);
    const codes: string[] = [];
    for (const id of ids) codes.push(...(await rig.sentTo(id)));
    expect(codes).toHaveLength(3);
    expect((await rig.sentTo(OWNER)).slice(1)).toEqual([]);
  });
});

describe('a stranger at a door with codes', () => {
  const codeIn = (text = '') => /`([A-Z0-9]{10})`/.exec(text)?.[1] ?? 'none';

  it('is let in by the code in the owner’s hand, and by nobody else', async () => {
    await withOwnerPresent({ strangers: 'pairing' });
    await rig.say('7', 'let me in');
    const [text, ...more] = await rig.sentTo('7');
    expect(more).toEqual([]);
    const code = codeIn(text);
    await rig.say('8', `/start ${code}`);
    await rig.say('7', `/allow ${code}`);
    expect(await rig.queued()).toEqual([]);
    await rig.say(OWNER, `/allow ${code.toLowerCase()}`);
    expect((await rig.queued())[0]).toBe('let me in');
    expect((await rig.sentTo(OWNER)).at(-1)).toContain('`Name 7` (`7`) on chat');
    expect(await rig.people.pairing.roleOf('chat', ['8'])).toBeUndefined();
  });

  it('has a code that is worth nothing after half an hour, and gets no second one', async () => {
    await withOwnerPresent({ strangers: 'pairing' });
    await rig.say('7', 'let me in');
    const [text] = await rig.sentTo('7');
    await rig.clock.advance(31 * 60_000);
    await rig.say('7', 'hello?');
    await rig.say(OWNER, `/allow ${codeIn(text)}`);
    expect((await rig.sentTo(OWNER)).at(-1)).toContain('Nobody with the id');
    expect(await rig.sentTo('7')).toHaveLength(1);
  });
});

describe('the owner’s link', () => {
  it('makes an owner of somebody who knocked before, and answers what they had written', async () => {
    rig = await makePeopleRig({}, {});
    await rig.say('7', 'hello');
    const { code } = await rig.people.pairing.issueOwnerCode('chat');
    await rig.say('7', `/start ${code}`);
    expect(await rig.people.pairing.roleOf('chat', ['7'])).toBe('owner');
    expect(await rig.queued()).toEqual(['hello']);
  });

  it('greets once, and carries out no command from before', async () => {
    rig = await makePeopleRig({}, {});
    for (const text of ['/start', '/start WRONGCODE2', '/allow 8', 'hello'])
      await rig.say('7', text);
    const { code } = await rig.people.pairing.issueOwnerCode('chat');
    await rig.say('7', `/start ${code}`);
    expect(await rig.queued()).toEqual(['hello']);
  });

  it('works for somebody on the allow list, and for nobody who is blocked', async () => {
    rig = await makePeopleRig({ allowFrom: ['7'] }, { 8: 'blocked' });
    const { code } = await rig.people.pairing.issueOwnerCode('chat');
    await rig.say('8', `/start ${code}`);
    await rig.say('7', `/start ${code}`);
    expect(await rig.people.pairing.roleOf('chat', ['8'])).toBe('blocked');
    expect(await rig.people.pairing.roleOf('chat', ['7'])).toBe('owner');
  });
});

describe('decisions about people', () => {
  it('answer the first `/start` of somebody, and no other command from before', async () => {
    await withOwnerPresent({});
    for (const text of ['/start', '/allow 8', 'let me in']) await rig.say('7', text);
    await rig.say(OWNER, '/allow 7');
    expect(await rig.queued()).toEqual(['/start', 'let me in']);
  });

  it.each(['trusted', 'guest'] as const)('are not for somebody who is %s', async (role) => {
    rig = await makePeopleRig({}, { [OWNER]: 'owner', 2: role });
    await rig.say('7', 'hello');
    for (const text of ['/allow 7', '/allow once 7', `/block ${OWNER}`, '/strangers']) {
      await rig.say('2', text);
    }
    expect(await rig.queued()).toEqual([]);
    expect(new Set(await rig.sentTo('2'))).toEqual(new Set(['Only my owner can do that.']));
    expect(await rig.people.pairing.roleOf('chat', [OWNER])).toBe('owner');
  });

  it('never touch an owner from a chat', async () => {
    rig = await makePeopleRig({}, { [OWNER]: 'owner', 2: 'owner' });
    await rig.say('2', `/block ${OWNER}`);
    await rig.say('2', `/allow ${OWNER}`);
    expect(await rig.people.pairing.roleOf('chat', [OWNER])).toBe('owner');
  });

  it('say who somebody is to the agent', async () => {
    rig = await makePeopleRig({ allowFrom: ['3'] }, { 2: 'guest' });
    await rig.say('2', '/whoami');
    await rig.say(person('3', { alsoKnownAs: [userId('three')] }), '/whoami');
    expect(await rig.sentTo('2')).toEqual(['- You: `2`\n- Role: guest\n- Channel: chat']);
    expect((await rig.sentTo('3'))[0]).toContain('- You: `3`, `three`\n- Role: trusted');
  });
});
