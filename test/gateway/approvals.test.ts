// What an owner is asked, what a yes does, and everything that is not a yes. Cases A07, A09, T09, X04
// and X05 of the catalogue.

import { describe, expect, test } from 'vitest';
import { chatId, messageId, nativeId, userId } from '../../src/kernel/message/ids.ts';
import { makeApprovalsRig, OWNER, OWNER_RIGHTS, placeOf } from './approvals-rig.ts';
import { person } from './people-rig.ts';

const MEMBER = '2';
const MINUTE = 60_000;
const unescaped = (_: string, code: string) => String.fromCharCode(Number.parseInt(code, 16));

describe('a call that needs a yes', () => {
  test('is shown whole, run once after it, and its result begins a turn of the same rights', async () => {
    await using rig = await makeApprovalsRig();
    expect(await rig.asks('make coffee')).toMatch(/^Not run yet/);
    const question = await rig.lastQuestion();
    expect(question).toMatchObject({ chat: placeOf(OWNER) });
    expect(question?.markdown).toContain('command: make coffee');
    expect(question?.markdown).toContain('Use `runner`, which runs a program?');
    expect(rig.ran).toEqual([]);
    expect(await rig.press(await rig.tokenOf('Allow once'))).toBe('Allowed, this once.');
    expect(rig.ran).toEqual([]);
    const [turn] = await rig.turns();
    expect(rig.ran).toEqual(['make coffee']);
    expect(turn?.text).toMatch(/^\[An owner allowed runner.*\]\nran make coffee$/);
    expect(turn?.message).toMatchObject({
      chat: placeOf(OWNER),
      sender: { kind: 'system', source: 'approval', rights: OWNER_RIGHTS },
    });
    expect(await rig.turns()).toEqual([]);
  });

  test('is run where the yes comes while its turn is tried again', async () => {
    await using rig = await makeApprovalsRig();
    await rig.asks('make coffee', { ordinal: 0 });
    const token = await rig.tokenOf('Allow once');
    const retries = Array.from({ length: 20 }, () => rig.asks('make coffee', { ordinal: 0 }));
    const pressed = rig.press(token);
    await Promise.all([...retries, pressed]);
    expect(await pressed).toBe('Allowed, this once.');
    expect((await rig.turns()).map(({ text }) => text)).toEqual([
      expect.stringContaining('It was run once'),
    ]);
    expect(rig.ran).toEqual(['make coffee']);
  });

  test('is run later where the chat has no room for more when the yes comes', async () => {
    await using rig = await makeApprovalsRig();
    await rig.asks('make coffee');
    const token = await rig.tokenOf('Allow once');
    await rig.queue(10);
    expect(await rig.press(token)).toMatch(/I try again/);
    await rig.clock.advance(20 * MINUTE);
    expect(await rig.press(token, OWNER, { id: messageId('another') })).toMatch(/no longer/);
    expect((await rig.turns()).map(({ text }) => text)).not.toContainEqual(/allowed/);
    await rig.clock.advance(1000);
    await expect.poll(async () => (await rig.sent()).at(-1)?.markdown).toMatch(/^Allowed/);
    expect((await rig.turns()).at(-1)?.text).toMatch(/It was run once/);
    expect(rig.ran).toEqual(['make coffee']);
    expect(await rig.questions.open()).toEqual([]);
  });

  test('is not run when denied, and the chat that asked hears it', async () => {
    await using rig = await makeApprovalsRig();
    await rig.asks('rm -rf', { from: MEMBER, ordinal: 0 });
    expect((await rig.lastQuestion())?.chat).toEqual(placeOf(OWNER));
    expect((await rig.lastQuestion())?.markdown).toContain('Asked by `Name 2` on chat');
    expect(await rig.press(await rig.tokenOf('Deny'))).toMatch(/^Refused/);
    const told = (await rig.sent()).filter(({ chat }) => chat.chat === MEMBER);
    expect(told.map(({ markdown }) => markdown)).toEqual([
      'An owner did not allow it: `runner` was not run.',
    ]);
    expect(await rig.turns()).toEqual([]);
    expect(await rig.asks('rm -rf', { from: MEMBER, ordinal: 0 })).toMatch(/did not allow/);
    expect(rig.ran).toEqual([]);
  });

  test('is a no after an hour, whoever presses then', async () => {
    await using rig = await makeApprovalsRig();
    await rig.asks('late');
    const token = await rig.tokenOf('Allow once');
    await rig.clock.advance(61 * MINUTE);
    await expect.poll(async () => (await rig.sent()).at(-1)?.markdown).toMatch(/1 hour/);
    expect(await rig.press(token)).toMatch(/no longer/);
    expect(await rig.turns()).toEqual([]);
    expect(rig.ran).toEqual([]);
    expect(await rig.questions.open()).toEqual([]);
  });

  test('is asked once, however often the turn is tried or the model calls it', async () => {
    await using rig = await makeApprovalsRig();
    for (let attempt = 0; attempt < 3; attempt += 1) await rig.asks('again', { ordinal: 0 });
    await rig.asks('again', { ordinal: 1 });
    expect((await rig.sent()).filter(({ choices }) => choices !== undefined)).toHaveLength(1);
  });

  test('is shown again to an owner who asks for the same later, and still run once', async () => {
    await using rig = await makeApprovalsRig();
    await rig.asks('again');
    const old = await rig.tokenOf('Allow once');
    await rig.asks('again', { turn: 2 });
    expect((await rig.sent()).filter(({ choices }) => choices !== undefined)).toHaveLength(2);
    expect(await rig.press(old)).toMatch(/no longer/);
    expect(await rig.press(await rig.tokenOf('Allow once'))).toBe('Allowed, this once.');
    await rig.turns();
    expect(rig.ran).toEqual(['again']);
  });

  test('is not asked where too many wait already', async () => {
    await using rig = await makeApprovalsRig();
    for (let n = 0; n < 5; n += 1) await rig.asks(`call ${n}`);
    expect(await rig.asks('one more')).toMatch(/too many/);
    expect((await rig.sent()).filter(({ choices }) => choices !== undefined)).toHaveLength(5);
  });

  test('finds a place while other people’s tainted conversations ask for all they can get', async () => {
    await using rig = await makeApprovalsRig();
    const flood = async (from: string, session: string) => {
      for (let n = 0; n < 5; n += 1)
        await rig.asks(`${session} ${n}`, { from, session, isTainted: true });
    };
    for (const from of ['2', '3', '4', '5']) await flood(from, from);
    expect(await rig.questions.open()).toHaveLength(16);
    expect(await rig.asks('of a sixth', { from: '6', isTainted: true })).toMatch(/^Not run yet/);
    expect(await rig.asks('of the owner')).toMatch(/^Not run yet/);
  });

  test('of the owner finds a place beside four tainted conversations of their own', async () => {
    await using rig = await makeApprovalsRig();
    for (const session of ['a', 'b', 'c', 'd']) {
      for (let n = 0; n < 5; n += 1) await rig.asks(`${n}`, { session, isTainted: true });
    }
    expect(await rig.questions.open()).toHaveLength(10);
    expect(await rig.asks('own', { session: 'e' })).toMatch(/^Not run yet/);
    expect(await rig.asks('of a member', { from: MEMBER })).toMatch(/^Not run yet/);
  });

  test.each([
    ['5,000 characters', 'x'.repeat(5000)],
    ['300 lines', 'echo hello\n'.repeat(300)],
    ['a tail behind 400 blanks', `ls${' '.repeat(400)}; rm -rf`],
    ['700 letters that need escapes', '\u202e'.repeat(700)],
  ])('comes whole as a file where it has %s, and is run as it was shown', async (_, command) => {
    await using rig = await makeApprovalsRig();
    expect(await rig.asks(command)).toMatch(/^Not run yet/);
    const { markdown = '', attachments: [file] = [] } = (await rig.lastQuestion()) ?? {};
    expect(markdown.length).toBeLessThan(1500);
    const text = `${await rig.fileText(file)}`;
    expect(text.replace(/\\u([0-9a-f]{4})/g, unescaped).replaceAll('\n  ', '\n')).toBe(
      command.includes('\n') ? `command:\n${command}` : `command: ${command}`,
    );
    await rig.press(await rig.tokenOf('Allow once'));
    await rig.turns();
    expect(rig.ran).toEqual([command]);
  });
});

describe('the yes', () => {
  test('counts once: the same press, and another below the same question, do nothing more', async () => {
    await using rig = await makeApprovalsRig();
    await rig.asks('once');
    const [allow, deny] = [await rig.tokenOf('Allow once'), await rig.tokenOf('Deny')];
    const presses = [allow, allow, deny].map((token) => rig.press(token));
    const words = await Promise.all(presses);
    expect(words.filter((text) => text === 'Allowed, this once.')).toHaveLength(1);
    expect(words.filter((text) => text?.includes('no longer'))).toHaveLength(2);
    await rig.turns();
    await rig.turns();
    expect(rig.ran).toEqual(['once']);
  });

  test.each([
    ['another member in the owner’s chat', { sender: person(MEMBER) }, 'trusted'],
    [
      'somebody trusted with the owner’s name',
      { sender: person('3', { name: 'Name 1' }) },
      'guest',
    ],
    ['the owner in a group', { chat: placeOf('group') }, 'owner'],
    [
      'the owner under a number that is forged',
      { sender: person(OWNER, { verified: 'unverified' }) },
      'owner',
    ],
    ['our own machinery', { sender: { kind: 'system', source: 'cron' } }, 'owner'],
  ] as const)('of %s is none', async (_, extra, role) => {
    await using rig = await makeApprovalsRig();
    await rig.asks('mine');
    const token = await rig.tokenOf('Allow once');
    expect(await rig.press(token, OWNER, extra, role)).toMatch(/not yours/);
    expect(await rig.turns()).toEqual([]);
    expect(await rig.press(token)).toBe('Allowed, this once.');
  });

  test.each(['', 'x', 'approval', '__proto__', 'allow', 'A'.repeat(48)])(
    'with the made-up token %j is none',
    async (token) => {
      await using rig = await makeApprovalsRig();
      await rig.asks('mine');
      expect(await rig.press(token)).toMatch(/no longer/);
      expect(await rig.turns()).toEqual([]);
    },
  );

  test('is good after a restart, and done after one that came right behind it', async () => {
    await using rig = await makeApprovalsRig();
    await rig.asks('first');
    const token = await rig.tokenOf('Allow once');
    await rig.restart();
    expect(await rig.press(token)).toBe('Allowed, this once.');
    await rig.restart();
    await rig.turns();
    expect(rig.ran).toEqual(['first']);
  });

  test('has tokens that nobody can guess and no two questions share', async () => {
    await using rig = await makeApprovalsRig();
    for (let n = 0; n < 5; n += 1) await rig.asks(`call ${n}`);
    const tokens = (await rig.sent()).flatMap(({ choices = [] }) => choices.map((c) => c.token));
    expect(new Set(tokens).size).toBe(30);
    for (const token of tokens) expect(token).toMatch(/^[A-Za-z0-9_-]{32}$/);
  });
});

describe('a process that dies', () => {
  test('while the call runs leaves it as unknown: it is told, and never run again', async () => {
    await using rig = await makeApprovalsRig();
    const stop = new AbortController();
    rig.edge.run = () => {
      stop.abort(new Error('killed'));
      return new Promise(() => undefined);
    };
    await rig.asks('half');
    await rig.press(await rig.tokenOf('Allow once'));
    const [message] = await rig.waiting();
    if (message === undefined) throw new Error('nothing waits');
    await expect(rig.resolve(message, stop.signal)).rejects.toThrow('killed');
    expect(rig.ran).toEqual(['half']);
    await rig.restart();
    rig.edge.run = async () => 'ran';
    for (let attempt = 0; attempt < 2; attempt += 1) {
      expect((await rig.resolve(message)).message.text).toMatch(/outcome unknown/);
    }
    expect(rig.ran).toEqual(['half']);
  });

  test('after the call ran has its result, and does not run it again', async () => {
    await using rig = await makeApprovalsRig();
    await rig.asks('whole');
    await rig.press(await rig.tokenOf('Allow once'));
    const [message] = await rig.waiting();
    if (message === undefined) throw new Error('nothing waits');
    const before = (await rig.resolve(message)).message.text;
    await rig.restart();
    expect((await rig.resolve(message)).message.text).toBe(before);
    expect(rig.ran).toEqual(['whole']);
  });
});

describe('on a door without buttons', () => {
  async function numbered() {
    const rig = await makeApprovalsRig();
    rig.edge.hasButtons = false;
    await rig.asks('by number');
    return rig;
  }

  test('the number of a choice is the answer', async () => {
    await using rig = await numbered();
    expect(await rig.questions.numbered(rig.says(OWNER, ' 1. '))).toBe(
      await rig.tokenOf('Allow once'),
    );
    expect(await rig.questions.numbered(rig.says(OWNER, '2'))).toBe(await rig.tokenOf('Deny'));
  });

  test('a number that quotes a question answers that one, whatever was said or asked since', async () => {
    await using rig = await numbered();
    const first = await rig.lastQuestion();
    const token = await rig.tokenOf('Allow once');
    await rig.asks('something else');
    await rig.lastQuestion();
    const quoting = (sentAs: string) =>
      rig.says(OWNER, '1', { quoted: { text: 'Run?', author: 'you', sentAs: nativeId(sentAs) } });
    expect(await rig.questions.numbered(quoting(`sent-${first?.id}`))).toBe(token);
    await rig.questions.numbered(rig.says(OWNER, 'wait'));
    expect(await rig.questions.numbered(quoting(`sent-${first?.id}`))).toBe(token);
    expect(await rig.questions.numbered(quoting('sent-before'))).toBeUndefined();
  });

  test('a thumb up is the first choice, a thumb down the last, other signs are none', async () => {
    await using rig = await numbered();
    expect(await rig.thumb(OWNER, '👍')).toBe(await rig.tokenOf('Allow once'));
    expect(await rig.thumb(OWNER, '👍🏽')).toBe(await rig.tokenOf('Allow once'));
    expect(await rig.thumb(OWNER, '👎')).toBe(await rig.tokenOf('Deny'));
    expect(await rig.thumb(OWNER, '❤')).toBeUndefined();
    await rig.press(await rig.tokenOf('Deny'));
    expect(await rig.thumb(OWNER, '👍')).toBeUndefined();
  });

  test('a thumb answers nothing where there are buttons, or in another chat', async () => {
    await using rig = await numbered();
    expect(await rig.thumb('eve', '👍')).toBeUndefined();
    rig.edge.hasButtons = true;
    expect(await rig.thumb(OWNER, '👍')).toBeUndefined();
  });

  test.each([
    'yes',
    'ok',
    'allow',
    'approve',
    '1 2',
    '0',
    '7',
    '11',
    '1,',
    'one',
    '１',
    '/approve',
  ])('%j is none, and no number after it', async (text) => {
    await using rig = await numbered();
    expect(await rig.questions.numbered(rig.says(OWNER, text))).toBeUndefined();
    expect(await rig.questions.numbered(rig.says(OWNER, '1'))).toBeUndefined();
    expect(rig.ran).toEqual([]);
  });

  test('a number said elsewhere, or in a group, is none', async () => {
    await using rig = await numbered();
    const group = { group: { ids: [chatId(OWNER)] as const } };
    for (const message of [
      rig.says(MEMBER, '1'),
      rig.says(OWNER, '1', group),
      rig.says(OWNER, '1', { addressing: 'mention' }),
    ]) {
      expect(await rig.questions.numbered(message)).toBeUndefined();
    }
    expect(await rig.questions.numbered(rig.says(OWNER, '1'))).toBeDefined();
  });

  test('the question can be asked anew elsewhere; what stood before is worth nothing', async () => {
    await using rig = await numbered();
    const old = await rig.tokenOf('Allow once');
    await rig.questions.numbered(rig.says(OWNER, 'what is that?'));
    const [open] = await rig.questions.open();
    expect(await rig.questions.askAgain(open?.id ?? '', placeOf(OWNER))).toBe('asked');
    expect(await rig.press(old)).toMatch(/no longer/);
    const token = await rig.questions.numbered(rig.says(OWNER, '1'));
    expect(await rig.press(token ?? '')).toBe('Allowed, this once.');
  });
});

describe('a question to single people', () => {
  test('is answered by an id they are surely known by, and by nobody else', async () => {
    await using rig = await makeApprovalsRig();
    await rig.questions.ask({
      ...{ id: 'q', chat: placeOf('group'), markdown: 'Who?', subject: 'approval:x:y' },
      choices: [{ label: 'Allow once', action: 'allow' }],
      approvers: [userId('9')],
      expiresInMs: MINUTE,
    });
    const here = { chat: placeOf('group') };
    const token = await rig.tokenOf('Allow once');
    expect(await rig.press(token, OWNER, here)).toMatch(/not yours/);
    const known = { ...here, sender: person('8', { alsoKnownAs: [userId('9')] }) };
    expect(await rig.press(token, OWNER, known, 'guest')).toMatch(/not known any more/);
  });
});
