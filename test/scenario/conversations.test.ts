// What people see of their conversations, and bring back after /new and /undo: the whole program, seen
// from Telegram and from the model.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { echo } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const PERSON = 810;
const OTHER = 811;

const world = await startTelegramWorld({
  respond: echo,
  channel: { allowFrom: [`${PERSON}`, `${OTHER}`] },
});
const { telegram, bot, lastBody } = world;
afterAll(() => world[Symbol.asyncDispose]());

/** What is said next in the chat after these words. */
async function answerTo(chat: number, text: string): Promise<string> {
  const before = bot(chat).at(-1)?.id ?? 0;
  // What a kill cut off is sent once more.
  const isNew = (one: { id: number; text: string }) =>
    one.id > before && !one.text.startsWith('(sent again');
  telegram.say(chat, text);
  const answer = await telegram.waitFor(() => bot(chat).find(isNew));
  return answer.text;
}

describe('what was taken out of sight', () => {
  it('comes back by /restore, the newest first, over a kill, and stays', async () => {
    expect(await answerTo(PERSON, '/restore')).toContain('nothing to restore');
    await answerTo(PERSON, 'first nonce-one');
    await answerTo(PERSON, '/new');
    await answerTo(PERSON, 'second nonce-two');
    await answerTo(PERSON, '/new');
    await answerTo(PERSON, 'third nonce-three');
    await answerTo(PERSON, 'fourth nonce-four');
    await answerTo(PERSON, '/undo');
    const list = await answerTo(PERSON, '/restore list');
    expect(list).toMatch(/1\. fourth nonce-four \(2 messages, taken back by \/undo/);
    expect(list).toMatch(/2\. second nonce-two \(2 messages, before \/new/);
    expect(list).toMatch(/3\. first nonce-one/);
    await world.restart();
    expect(await answerTo(PERSON, '/restore 2')).toContain('second nonce-two');
    await answerTo(PERSON, 'fifth nonce-five');
    expect(lastBody()).toMatch(/nonce-two.*nonce-two.*nonce-three.*nonce-five/);
    expect(lastBody()).not.toMatch(/nonce-one|nonce-four/);
    await world.restart();
    expect(await answerTo(PERSON, '/restore')).toContain('fourth nonce-four');
    expect(await answerTo(PERSON, '/restore list')).toMatch(
      /^1\. first nonce-one.*Usage: \/restore/s,
    );
    await answerTo(PERSON, 'sixth nonce-six');
    expect(lastBody()).toMatch(/nonce-two.*nonce-three.*nonce-four.*nonce-five.*nonce-six/);
    expect(await answerTo(PERSON, '/restore 7')).toContain('nothing to restore');
  });
});

describe('what people are shown of their conversations', () => {
  it('is what fills the window, part by part, as the next call takes it', async () => {
    const text = await answerTo(PERSON, '/context');
    expect(text).toMatch(/The next call takes about [\d,]+ of [\d,]+ tokens of openai\/sim-1/);
    const tokens = (name: string) =>
      Number(new RegExp(`${name}[^:\n]*: ([\\d,]+)`).exec(text)?.[1]?.replaceAll(',', ''));
    expect(tokens('identity')).toBeGreaterThan(50);
    expect(tokens('System prompt')).toBeGreaterThanOrEqual(tokens('identity'));
    expect(tokens('Tools offered')).toBeGreaterThan(500);
    const [, total = ''] = /about ([\d,]+)/.exec(text) ?? [];
    const sum = tokens('System prompt') + tokens('Tools offered') + tokens('Conversation');
    expect(Math.abs(sum - Number(total.replaceAll(',', '')))).toBeLessThan(30);
    const before = tokens('Conversation');
    await answerTo(PERSON, `long nonce-long ${'words '.repeat(2000)}`);
    const longer = await answerTo(PERSON, '/context');
    const [, after = ''] = /Conversation[^:\n]*: ([\d,]+)/.exec(longer) ?? [];
    expect(Number(after.replaceAll(',', ''))).toBeGreaterThan(before + 1000);
    expect(longer).toContain('corrected by the provider’s counts');
  });

  it('is their own and nobody else’s', async () => {
    await answerTo(OTHER, 'hello nonce-other');
    const mine = await answerTo(OTHER, '/sessions');
    expect(mine).toMatch(/telegram:811, this one: 2 messages, 1 kB, last/);
    expect(mine).not.toContain('telegram:810');
    for (const text of ['/sessions all', '/ss all purge 1h yes', '/ss list all', '/ss index']) {
      expect(await answerTo(OTHER, text)).toBe('Only my owner can use everyone’s conversations.');
    }
    for (const text of ['/ss show telegram:810', '/ss export telegram:810', '/ss show 2']) {
      expect(await answerTo(OTHER, text)).toContain('There is no such conversation');
    }
    expect(await answerTo(OTHER, '/ss search nonce-long')).toBe('Nothing was found.');
    expect(await answerTo(OTHER, '/ss search NONCE-other')).toMatch(
      /^. .*, telegram:811, user: hello nonce-other$/m,
    );
  });

  it('is shown in the chat where it is short, and else a file', async () => {
    expect(await answerTo(OTHER, '/ss show')).toMatch(/User · .* UTC\nhello nonce-other\n/);
    const fileOf = () => telegram.chat(PERSON).messages.flatMap(({ file }) => file ?? []);
    await answerTo(PERSON, '/sessions show 1');
    await telegram.waitFor(() => bot(PERSON).find(({ text }) => /is in the file \(/.test(text)));
    await telegram.waitFor(() => fileOf()[0]);
    expect(fileOf()[0]?.name).toMatch(/^conversation-[\d-]+\.md$/);
    expect(fileOf()[0]?.content.toString()).toContain('nonce-long words words');
    telegram.say(PERSON, '/sessions export jsonl');
    const exported = await telegram.waitFor(() => fileOf()[1]);
    expect(JSON.parse(exported.content.toString().split('\n')[0] ?? '')).toMatchObject({
      session_key: 'telegram:810',
    });
  });

  it('is deleted by its age after a yes, with its metrics, and nothing of others', async () => {
    expect(await answerTo(OTHER, '/ss archive 1h')).toMatch(/^Moved 0 files/);
    expect(await answerTo(OTHER, '/ss purge 1')).toMatch(/^Usage: /);
    expect(await answerTo(OTHER, '/ss purge 1h')).toContain('No conversation file is without');
    expect(await answerTo(OTHER, '/ss purge 0h')).toMatch(
      /This deletes 1 file \(\d+ bytes\).* Send \/ss purge 0h yes to do it\.$/,
    );
    expect(await answerTo(OTHER, '/ss list')).toContain('telegram:811, this one');
    const ofOther = async () =>
      (await readFile(join(world.home.path, 'metrics.jsonl'), 'utf8'))
        .split('\n')
        .filter((line) => line.includes('telegram:811')).length;
    await expect.poll(ofOther).toBeGreaterThan(0);
    expect(await answerTo(OTHER, '/ss purge 0h yes')).toMatch(
      /^Deleted 1 file \(\d+ bytes\), \d+ lines? of metrics and traces\. The audit stays/,
    );
    expect(await ofOther()).toBe(0);
    expect(await answerTo(OTHER, '/ss search nonce-other')).toBe('Nothing was found.');
    expect(await answerTo(PERSON, '/ss search nonce-six')).toContain('telegram:810, user');
  });
});

describe('a command that is none', () => {
  it('is answered with the one that was meant, and a path goes to the model', async () => {
    expect(await answerTo(PERSON, '/contxt')).toContain('Did you mean /context?');
    expect(await answerTo(OTHER, '/bugdet 5')).not.toContain('/budget');
    expect(await answerTo(PERSON, '/tmp nonce-path')).toBe('nonce-path');
    expect(await answerTo(PERSON, '/help restore')).toMatch(/^\/restore \[list \| number\]/);
    expect(await answerTo(PERSON, '/help link')).toContain(
      'connect another channel to your account',
    );
    const help = await answerTo(PERSON, '/help');
    expect(help).toMatch(/This conversation: \/new .*\n+How I answer: \/model/s);
    expect(help.split('\n').length).toBeLessThan(12);
    expect(await answerTo(PERSON, '/help all')).toMatch(
      /This conversation\n+. \/new: .*How I answer\n/s,
    );
    expect(help).not.toContain('/allow');
    const hello = await answerTo(PERSON, '/start');
    expect(hello).toMatch(/^Hello!.*\/help/s);
    expect(hello.length).toBeLessThan(450);
  });
});
