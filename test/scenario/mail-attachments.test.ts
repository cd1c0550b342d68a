// Files of the workspace that leave with a mail: the owner sees their names and sizes first, what arrives
// is what they saw, byte for byte, and nothing outside of the workspace leaves.

import { randomBytes } from 'node:crypto';
import { link, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { startMailBox } from '../support/mail-box.ts';
import { mailboxAt } from '../support/mailbox-config.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = 700;
const ADDRESS = 'carl@shop.test';
const REPORT = randomBytes(60_000);

const box = await startMailBox();
const world = await startTelegramWorld({
  respond({ lastUserText, toolResults }) {
    const paths = /ATTACH (\S+)/.exec(lastUserText)?.[1]?.split(',');
    const result = toolResults.at(-1)?.text;
    if (result !== undefined) return { chunks: [`Told: ${result}`] };
    if (paths === undefined) return { chunks: ['Done.'] };
    const mail = { to: ADDRESS, subject: 'The report', body: 'Here it is.', attachments: paths };
    return { toolCalls: [{ name: 'send_email', arguments: mail }] };
  },
  channel: { streaming: false },
  config: {
    tools: { send: { email: 'first_contact' } },
    channels: {
      email: {
        ...mailboxAt(box),
        ...{ allowFrom: [], strangers: 'closed' },
      },
    },
  },
  files: { 'notes.txt': 'Buy milk\n', 'empty.txt': '' },
  pair: { [OWNER]: 'owner' },
});
const { telegram } = world;
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await box[Symbol.asyncDispose]();
});

const said = () => world.texts(OWNER).length;
async function asks(paths: string, like: RegExp): Promise<string> {
  const before = said();
  telegram.say(OWNER, `ATTACH ${paths}`);
  return (await world.hears(OWNER, like, before)).text;
}

function attachmentsOf(mail: string): ReadonlyMap<string, Buffer> {
  const [, boundary = ''] = /boundary="([^"]+)"/.exec(mail) ?? [];
  const parts = mail.split(`--${boundary}`).flatMap((part) => {
    const name = /filename="?([\w.]+)"?/.exec(part)?.[1];
    const [head = '', body = ''] = part.split(/\r\n\r\n/);
    const encoding = /Transfer-Encoding: base64/i.test(head) ? 'base64' : 'utf8';
    return name === undefined ? [] : [[name, Buffer.from(body, encoding)] as const];
  });
  return new Map(parts);
}

it('shows names and sizes to the owner, and sends exactly what they saw', async () => {
  await box.followed;
  await writeFile(world.file('report.bin'), REPORT);
  const question = await asks('report.bin,notes.txt', /Send this mail to/);
  expect(question).toContain('Files: report.bin (60 kB), notes.txt (9 bytes)');
  expect(box.sent).toEqual([]);
  await writeFile(world.file('report.bin'), 'exchanged after the question');
  telegram.press(OWNER, OWNER, 'Send');
  await expect.poll(() => box.sent.length, { interval: 20, timeout: 20_000 }).toBe(1);
  const files = attachmentsOf(box.sent[0] ?? '');
  expect([...files.keys()]).toEqual(['report.bin', 'notes.txt']);
  expect(files.get('report.bin')?.equals(REPORT)).toBe(true);
  expect(files.get('notes.txt')?.toString().trim()).toBe('Buy milk');
  // The address is known now: words alone would go without a question, files do not.
  const again = await asks('notes.txt', /Send this mail to/);
  expect(again).toContain('Files: notes.txt (9 bytes)');
  const before = said();
  telegram.press(OWNER, OWNER, 'Drop');
  await world.hears(OWNER, /^Done\.$/, before);
});

it('refuses what is not a plain file of the workspace', async () => {
  const outside = join(world.home.path, 'outside.json');
  await writeFile(outside, '{}');
  await symlink(outside, world.file('link.json'));
  await link(outside, world.file('second-name.json'));
  const refusals = {
    '../outside.json': /Told: .*(?:outside|leads out|not allowed|denied)/i,
    [outside]: /Told: .*(?:outside|leads out|not allowed|denied)/i,
    'link.json': /Told: .*link/i,
    'second-name.json': /Told: .*hard link/i,
    'empty.txt': /Told: .*is empty/,
    'missing.txt': /Told: .*(?:no such|not_found)/,
  };
  for (const [path, like] of Object.entries(refusals)) await asks(path, like);
  expect(box.sent).toHaveLength(1);
});
