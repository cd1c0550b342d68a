// Jobs with a check before each run, through the whole program: a program in the sandbox, a file, a page
// and a mailbox. The model hears only of what opened the gate, untrusted content marked as such.

import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { afterAll, expect, it } from 'vitest';
import { portOf } from '../support/listening.ts';
import { startMailBox } from '../support/mail-box.ts';
import { AGENT, mailboxAt } from '../support/mailbox-config.ts';
import { laterBy } from '../support/shifted-clock.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = 700;

let page = '<p>Sold out.</p>';
let visits = 0;
const site = createServer((_request, response) => {
  visits += 1;
  response.setHeader('content-type', 'text/html').end(page);
});
const host = `127.0.0.1:${await portOf(site)}`;
const box = await startMailBox();
const mail = (subject: string, text: string) =>
  box.drop(
    `From: Carl <carl@shop.test>\r\nTo: ${AGENT}\r\nSubject: ${subject}\r\nMessage-ID: <${subject}@shop.test>\r\n\r\n${text}\r\n`,
  );
mail('old', 'an old invoice');

const program = (lines: string) => `#!/bin/sh\n${lines}\n`;
const world = await startTelegramWorld({
  respond: ({ lastUserText }) => {
    const task = /JOB (\w+)/.exec(lastUserText)?.[1];
    return { chunks: [task === undefined ? 'Hello.' : `Report of ${task}.`] };
  },
  channel: { streaming: false },
  config: {
    models: { prices: [{ model: 'openai/sim-1', input: 1000, cached: 1000, output: 2000 }] },
    tools: { web: { allowPrivateHosts: [host] } },
    channels: {
      email: {
        ...mailboxAt(box),
        pollSecs: 5,
        ...{ allowFrom: [], strangers: 'closed' },
      },
    },
  },
  files: {
    'open.sh': program('echo the shop is open'),
    'closed.sh': program('echo nothing new; exit 1'),
    'changed.sh': program('exit 1'),
  },
  pair: { [OWNER]: 'owner' },
  env: laterBy(0),
});
const { telegram, model } = world;
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await box[Symbol.asyncDispose]();
  site.closeAllConnections();
  site.close();
});

/** After the changes below, on a busy machine too. */
const SOON_S = 60;
const WAIT = { timeout: 45_000 };
const reports = () => world.texts(OWNER).flatMap((text) => /Report of (\w+)/.exec(text)?.[1] ?? []);
const askedOf = (task: string) =>
  model.requests.filter(({ lastUserText }) => lastUserText.includes(`JOB ${task}`));

it('starts only jobs whose check found something, and tells the model what', async () => {
  const checks = {
    program: 'program sh open.sh',
    closed: 'program sh closed.sh',
    changed: 'program sh changed.sh',
    file: 'file notes.md',
    url: `url http://${host}/shop`,
    mail: 'mail invoice',
    idle: 'mail contract',
  };
  await box.followed;
  for (const [task, check] of Object.entries(checks)) {
    telegram.say(OWNER, `/cron add in ${SOON_S}s when ${check}: JOB ${task}`);
    await world.hears(OWNER, new RegExp(`^Created: .*JOB ${task}`));
  }
  // What changes from the first look on counts.
  const looked = async () => (await world.nanobot('cron', 'list')).match(/; checked 0 times/g);
  await expect.poll(looked, WAIT).toHaveLength(Object.keys(checks).length);
  expect([visits, box.searches.length]).toEqual([1, 2]);
  await writeFile(world.file('notes.md'), 'Buy milk');
  await writeFile(world.file('changed.sh'), program('echo exchanged'));
  page = '<p>Back in stock.</p>';
  mail('new', 'a new invoice');
  await world.gateway.skip(SOON_S * 1000);
  await telegram.waitFor(() => reports().length === 4);
  await world.hears(OWNER, /JOB changed[\s\S]*Its check failed: .*changed after/);
  expect(reports().toSorted()).toEqual(['file', 'mail', 'program', 'url']);

  const text = (task: string) => askedOf(task)[0]?.lastUserText ?? '';
  expect(text('file')).toContain('[The check before this run found: notes.md was created]');
  expect(text('url')).toMatch(
    /\[untrusted \w+: [^\]]* a page changed\]\n> Address: \S+\/shop\n>\n> Back in stock\./,
  );
  expect(text('mail')).toMatch(/: new mails[^\]]*\]\n> - [^>]*>[^>]*>\s+id: email\/7\.2\n\[end/);
  expect(text('program')).toContain('the shop is open');
  for (const idle of ['closed', 'changed', 'idle']) expect(askedOf(idle)).toEqual([]);
});

it('shows the runs of a job with outcome, cost and text, in the chat and at the machine', async () => {
  telegram.say(OWNER, '/cron add every 1h: JOB history');
  const { text } = await world.hears(OWNER, /^Created: .*JOB history/);
  const id = /j[0-9a-f]{8}/.exec(text)?.[0] ?? '';
  telegram.say(OWNER, `/cron run ${id}`);
  await world.hears(OWNER, /Report of history/);
  telegram.say(OWNER, `/cron runs ${id}`);
  await world.hears(
    OWNER,
    /done in \d+ seconds?, [\d,]+ tokens, about [\d.]+ USD: Report of history\./,
  );
  expect(JSON.parse(await world.nanobot('cron', 'runs', id, '--json'))).toMatchObject([
    { how: 'done', calls: 1, text: 'Report of history.' },
  ]);
  expect(await world.nanobot('cron', 'runs', id)).toMatch(/done in .*Report of history/);
  await world.nanobot('cron', 'add', 'Look', '--every', '1h', '--when', 'file notes.md');
  expect(await world.nanobot('cron', 'list')).toMatch(/Look: every 1h when file notes\.md; next/);
});
