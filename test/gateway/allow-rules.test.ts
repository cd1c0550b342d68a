// "Always allow": what one press covers from then on, and everything that it does not. Cases A07, T09 and
// X06 of the catalogue.

import { describe, expect, test } from 'vitest';
import { NO_RIGHTS } from '../../src/kernel/access/rights.ts';
import { askerKey } from '../../src/kernel/guards.ts';
import { type Asked, makeApprovalsRig, OWNER, placeOf } from './approvals-rig.ts';
import { person } from './people-rig.ts';

const DAY = 86_400_000;
const MEMBER = '2';

async function allowed(command = 'git pull', options: Asked = {}) {
  const rig = await makeApprovalsRig();
  await rig.asks(command, options);
  expect(await rig.press(await rig.tokenOf('Always allow'))).toMatch(
    /^Allowed, and exactly this call always/,
  );
  return rig;
}

describe('a call that is always allowed', () => {
  test('runs once for the press, and is not asked about again, over a restart too', async () => {
    await using rig = await allowed();
    await rig.restart();
    expect((await rig.turns()).map(({ text }) => text)).toEqual([
      expect.stringContaining('ran git pull'),
    ]);
    expect(rig.ran).toEqual(['git pull']);
    expect(await rig.allows('git pull')).toBe(true);
    expect(rig.uses).toMatchObject([
      { subject: 'standing', action: 'used', by: OWNER, tool: 'runner', isTainted: false },
    ]);
    expect(await rig.standing.list()).toMatchObject([{ used: { uses: 1 } }]);
  });

  test.each<readonly [string, string, Asked]>([
    ['another command', 'git push', {}],
    ['an argument more', 'git pull --force', {}],
    ['another pattern of the same words', 'git pull', { pattern: 'in another folder' }],
    ['another program under its name', 'git pull', { seal: '/usr/bin/git 1:2 sha256:beef' }],
    ['another person in the conversation', 'git pull', { whose: 'chat:2' }],
    ['several people at once', 'git pull', { whose: undefined }],
    ['untrusted content in the conversation', 'git pull', { isTainted: true }],
    ['a tool that says no pattern for it', 'git pull', { pattern: undefined }],
  ])('is asked about again with %s', async (_, command, options) => {
    await using rig = await allowed();
    expect(await rig.allows(command, options)).toBe(false);
    expect(rig.uses).toEqual([]);
  });

  test('is not to be had while untrusted content is in view, and holds in all conversations else', async () => {
    await using rig = await allowed();
    expect(await rig.allows('git pull', { session: '3' })).toBe(true);
    expect(await rig.allows('git pull', { session: '3', whose: 'phone:49' })).toBe(true);
    await rig.asks('git pull', { turn: 2, isTainted: true, pattern: undefined });
    const labels = (await rig.lastQuestion())?.choices?.map(({ label }) => label);
    expect(labels).toEqual(['Allow once', 'Deny']);
    expect(await rig.allows('git pull', { isTainted: true })).toBe(false);
  });

  test('counts in the hour for which an owner ended the taint, in which no rule is made', async () => {
    await using rig = await allowed();
    const trusted = { isTainted: true, isTrusted: true } as const;
    expect(await rig.allows('git pull', trusted)).toBe(true);
    await rig.asks('git push', { turn: 2, ...trusted });
    const labels = (await rig.lastQuestion())?.choices?.map(({ label }) => label);
    expect(labels).toEqual(['Allow once', 'Deny']);
  });

  test.each([
    ['Allow for 1 hour', 3_600_000],
    ['Allow today', DAY],
    ['Allow for 30 days', 30 * DAY],
  ])('ends by %s', async (label, ms) => {
    await using rig = await makeApprovalsRig();
    await rig.asks('git pull');
    await rig.press(await rig.tokenOf(label));
    expect(await rig.allows('git pull')).toBe(true);
    await rig.clock.jump(ms);
    expect(await rig.allows('git pull')).toBe(false);
  });

  test('ends with its days, at most those configured now', async () => {
    await using rig = await makeApprovalsRig();
    await rig.asks('git pull');
    await rig.press(await rig.tokenOf('Allow for 30 days'));
    await rig.clock.jump(7 * DAY);
    rig.edge.days = 7;
    expect(await rig.allows('git pull')).toBe(false);
    rig.edge.days = 365;
    expect(await rig.allows('git pull')).toBe(true);
    await rig.clock.jump(23 * DAY);
    expect(await rig.allows('git pull')).toBe(false);
    expect(await rig.standing.list()).toEqual([]);
  });

  test('counts no more once whoever allowed it is no owner, or may not have it done', async () => {
    await using rig = await allowed();
    rig.edge.owners = [];
    expect(await rig.allows('git pull')).toBe(false);
    rig.edge.owners = [OWNER];
    rig.edge.rights = NO_RIGHTS;
    expect(await rig.allows('git pull')).toBe(false);
  });

  test('is taken back by its id or with all, and not by the beginning of several', async () => {
    await using rig = await allowed();
    for (let more = 2; more <= 17; more += 1) {
      await rig.asks(`call ${more}`, { turn: more });
      await rig.press(await rig.tokenOf('Always allow'));
    }
    const list = await rig.standing.list();
    const ids = list.map(({ yes }) => yes.id);
    const pull = list.find(({ yes }) => yes.about.includes('git pull'))?.yes.id ?? '';
    expect(ids).toHaveLength(17);
    // Of seventeen two begin with the same of sixteen signs.
    const shared = ids.find((id) => ids.filter((other) => other[0] === id[0]).length > 1) ?? '';
    expect(await rig.standing.takeBack(shared[0] ?? '')).toBe('several');
    expect(await rig.standing.takeBack('')).toBe(0);
    expect(await rig.standing.takeBack(pull.slice(0, 12))).toBe(1);
    expect(await rig.allows('git pull')).toBe(false);
    expect(await rig.standing.takeBack('ALL')).toBe(16);
    expect(await rig.standing.list()).toEqual([]);
  });

  test('is not run beside the yes that waits for its turn', async () => {
    await using rig = await allowed('git pull', { ordinal: 0 });
    expect(await rig.allows('git pull', { ordinal: 0, turn: 1 })).toBe(false);
    await rig.turns();
    expect(rig.ran).toEqual(['git pull']);
  });
});

test('what an owner decided is forgotten with the words it holds, and what is open stays', async () => {
  await using rig = await allowed('git pull zeppelin');
  await rig.turns();
  await rig.asks('open zeppelin', { turn: 2 });
  const holds = (text: string) => text.includes('zeppelin');
  expect(await rig.questions.forget(['chat:9'], holds)).toBe(0);
  expect(await rig.standing.forget(['chat:9'], holds)).toBe(0);
  expect(await rig.questions.forget(['chat:1'], () => false)).toBe(0);
  expect(await rig.questions.forget(['chat:1'], holds)).toBe(1);
  expect(await rig.standing.forget(['chat:1'], holds)).toBe(1);
  expect(await rig.allows('git pull zeppelin')).toBe(false);
  expect(await rig.questions.open()).toHaveLength(1);
});

describe('the longer choices', () => {
  const labels = async (rig: Awaited<ReturnType<typeof makeApprovalsRig>>) =>
    (await rig.lastQuestion())?.choices?.map(({ label }) => label);

  test('has numbers where there are no buttons, while thumbs mean once and no', async () => {
    await using rig = await makeApprovalsRig();
    rig.edge.hasButtons = false;
    await rig.asks('git pull');
    expect(await labels(rig)).toEqual([
      ...['Allow once', 'Deny', 'Allow for 1 hour', 'Allow today', 'Allow for 30 days'],
      'Always allow',
    ]);
    expect(await rig.thumb(OWNER, '👍')).toBe(await rig.tokenOf('Allow once'));
    expect(await rig.thumb(OWNER, '👎')).toBe(await rig.tokenOf('Deny'));
    const five = await rig.questions.numbered(rig.says(OWNER, '5'));
    expect(five).toBe(await rig.tokenOf('Allow for 30 days'));
    expect(await rig.press(five ?? '')).toMatch(/30 days/);
  });

  test('is not there where it can hold for nothing, or is switched off', async () => {
    await using rig = await makeApprovalsRig();
    await rig.asks('git pull', { pattern: undefined });
    expect(await labels(rig)).toEqual(['Allow once', 'Deny']);
    await rig.asks('git push', { whose: undefined });
    expect(await labels(rig)).toEqual(['Allow once', 'Deny']);
    rig.edge.days = 0;
    await rig.asks('git fetch');
    expect(await labels(rig)).toEqual(['Allow once', 'Deny']);
    expect((await rig.lastQuestion())?.markdown).not.toContain('longer approval');
  });

  test('is nobody’s but an owner’s, and good for the question as it was shown', async () => {
    await using rig = await makeApprovalsRig();
    await rig.asks('git pull');
    const token = await rig.tokenOf('Always allow');
    expect(await rig.press(token, MEMBER, { chat: placeOf(OWNER) })).toMatch(/not yours/);
    expect(await rig.standing.list()).toEqual([]);
    await rig.press(token);
    expect(await rig.press(token)).toMatch(/no longer/);
    expect(await rig.standing.list()).toHaveLength(1);
  });
});

test('only one person, or what comes again in one conversation, is an asker', () => {
  const chat = placeOf(OWNER);
  const by = (source: 'cron' | 'approval' | 'subagent', ...paidBy: string[]) => {
    const [first] = paidBy;
    const payer = first === undefined ? {} : { paidBy: [first] as const };
    return { chat, sender: { kind: 'system', source, ...payer } as const };
  };
  const one = { chat, sender: person('1') };
  expect(askerKey([one, one])).toBe('chat:1');
  expect(askerKey([one, by('approval', 'chat:1')])).toBe('chat:1');
  expect(askerKey([by('cron', 'chat:1')])).toBe('chat:1');
  for (const messages of [
    [one, { chat, sender: person('2') }],
    [one, by('subagent', 'chat:1')],
    [by('subagent', 'chat:1')],
    [by('approval')],
    [{ chat, sender: { ...person('1'), verified: 'unverified' as const } }],
  ]) {
    expect(askerKey(messages)).toBeUndefined();
  }
});
