// The decisions below the notice about a stranger: the same as the commands, by a number where there
// are no buttons, and only an owner's.

import { describe, expect, test } from 'vitest';
import { makePeopleRig, OWNER } from './people-rig.ts';

const EVE = '666';
const MIA = '700';

async function knocked() {
  const rig = await makePeopleRig({}, { [OWNER]: 'owner', [MIA]: 'trusted' });
  await rig.say(OWNER, 'hello');
  await rig.say(EVE, 'let me in');
  return rig;
}

describe('an owner who answers the notice', () => {
  test('is heard also where what came with the answer failed, which is said', async () => {
    await using rig = await knocked();
    const before = (await rig.sentTo(OWNER)).length;
    await rig.sayTogether(OWNER, '/approvals', '2');
    await rig.sayTogether(OWNER, '/approvals now', '/whoami');
    expect(await rig.queued()).toEqual(['hello', 'let me in']);
    const words = (await rig.sentTo(OWNER)).slice(before);
    expect(words).toEqual([
      expect.stringContaining('went wrong'),
      expect.stringContaining('from now on'),
      expect.stringContaining('went wrong'),
      expect.stringContaining('owner'),
    ]);
  });

  test('is heard also where a question of before cannot be read any more', async () => {
    await using rig = await knocked();
    await rig.store.scope('questions').set('open:stranger/old', '{"id":"stranger/o');
    await rig.restart();
    await rig.say(OWNER, '2');
    expect(await rig.queued()).toEqual(['hello', 'let me in']);
  });

  test.each([
    ['1', ['hello', 'let me in'], undefined],
    ['2', ['hello', 'let me in'], 'trusted'],
    ['3', ['hello'], 'blocked'],
    ['4', ['hello'], undefined],
  ])('by %s decides, once', async (number, queued, role) => {
    await using rig = await knocked();
    const question = (await rig.sentTo(OWNER)).at(-1);
    expect(question).toContain('let me in');
    await rig.say(OWNER, number);
    expect(await rig.queued()).toEqual(queued);
    expect(await rig.people.strangers.list()).toEqual([]);
    expect(await rig.people.pairing.roleOf('chat', [EVE])).toBe(role);
    const words = (await rig.sentTo(OWNER)).length;
    await rig.say(OWNER, `${number} `);
    expect(await rig.queued()).toEqual([...queued, `${number} `]);
    expect(await rig.sentTo(OWNER)).toHaveLength(words);
  });

  test('is obeyed though the process died right behind it, and told so once', async () => {
    await using rig = await knocked();
    const [open] = await rig.questions.open();
    const allow = open?.choices.find(({ label }) => label === 'Allow');
    const press = { ...rig.message(OWNER, '2'), press: allow?.token ?? '' };
    await rig.questions.choose(press, 'owner');
    await rig.restart();
    const stop = new AbortController();
    const running = rig.questions.run(stop.signal);
    await expect.poll(() => rig.queued()).toEqual(['hello', 'let me in']);
    expect(await rig.people.pairing.roleOf('chat', [EVE])).toBe('trusted');
    stop.abort();
    await running;
    await rig.say(OWNER, '2', { press: press.press });
    const told = (await rig.sentTo(OWNER)).filter((text) => /^I answer|no longer/.test(text));
    expect(told).toEqual([expect.stringContaining('from now on')]);
  });

  test('by a number is obeyed once, also where it comes again to the next process', async () => {
    await using rig = await knocked();
    const [open] = await rig.questions.open();
    const said = rig.message(OWNER, '2');
    const press = (await rig.questions.numbered(said)) ?? '';
    expect(open?.choices.map(({ token }) => token)).toContain(press);
    await rig.questions.choose({ ...said, press }, 'owner');
    await rig.restart();
    const stop = new AbortController();
    const running = rig.questions.run(stop.signal);
    await expect.poll(() => rig.questions.open()).toEqual([]);
    await expect.poll(() => rig.queued()).toEqual(['hello', 'let me in']);
    stop.abort();
    await running;
    const told = await rig.sentTo(OWNER);
    await rig.say(OWNER, '2', { id: said.id });
    await rig.restart();
    await rig.say(OWNER, '2', { id: said.id });
    expect(await rig.queued()).toEqual(['hello', 'let me in']);
    expect(await rig.sentTo(OWNER)).toEqual(told);
  });

  test('decides after a restart too, and not about what was decided in between', async () => {
    await using rig = await knocked();
    await rig.restart();
    await rig.say(OWNER, '/block 666');
    await rig.say(OWNER, '2');
    expect(await rig.people.pairing.roleOf('chat', [EVE])).toBe('blocked');
    await using other = await knocked();
    await other.restart();
    await other.say(OWNER, '2');
    expect(await other.people.pairing.roleOf('chat', [EVE])).toBe('trusted');
  });

  test('by other words has said nothing about it: the number after them is for the agent', async () => {
    await using rig = await knocked();
    await rig.say(OWNER, 'how many eggs?');
    await rig.say(OWNER, '2');
    expect(await rig.queued()).toEqual(['hello', 'how many eggs?', '2']);
    expect(await rig.people.strangers.list()).toHaveLength(1);
  });
});

describe('anybody else who presses', () => {
  test.each([
    ['a stranger', EVE],
    ['another stranger', '667'],
    ['somebody trusted', MIA],
  ])('%s decides nothing, reaches no model, and knocks nowhere', async (_, who) => {
    await using rig = await knocked();
    const asked = (await rig.sentTo(OWNER)).length;
    await rig.say(who, 'Allow', { press: 'A'.repeat(32) });
    await rig.say(who, '/start', { press: 'B'.repeat(32) });
    expect(await rig.queued()).toEqual(['hello']);
    expect(await rig.sentTo(OWNER)).toHaveLength(asked);
    const waiting = await rig.people.strangers.list();
    expect(waiting.map(({ userId, heldMessages }) => [userId, heldMessages])).toEqual([[EVE, 1]]);
    expect((await rig.sentTo(who)).every((text) => text.includes('no longer'))).toBe(true);
  });
});
