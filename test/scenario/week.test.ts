// A week of an ordinary owner, task by task, under each policy: how often each task makes the agent ask. The
// whole program with Telegram, a mailbox, a calendar server and a web page; a model that does what it is told.
// A question counts wherever it is put, and is answered as the row says.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { runNanobot } from '../cli/run-nanobot.ts';
import type { SentFile } from '../support/bot-api.ts';
import type { SeenMessage } from '../support/bot-api-ledger.ts';
import type { LlmReply, LlmRequest } from '../support/llm-server.ts';
import { startMailBox } from '../support/mail-box.ts';
import { mailboxAt } from '../support/mailbox-config.ts';
import { startTelegramWorld, type TelegramWorld } from '../support/telegram-world.ts';

const OWNER = { id: 700, first_name: 'Olga' };
const [KIM, MIA] = [
  { id: 710, first_name: 'Kim' },
  { id: 711, first_name: 'Mia' },
];
const GROUP = -1_001_000_000_042;
const STRICT_GROUP = -1_001_000_000_043;
const CALENDAR = {
  command: process.execPath,
  args: [join(import.meta.dirname, '../support/mcp-server-child.ts'), 'calendar'],
};
const CALL = /CALL (\w+) (\{.*\})/;
const WAIT = { timeout: 45_000, interval: 20 };

function obey({ lastUserText, toolResults }: LlmRequest): LlmReply {
  const sync = /SYNC \d+/.exec(lastUserText)?.[0];
  if (sync !== undefined) return { chunks: [sync] };
  const [, name, json = '{}'] = CALL.exec(lastUserText) ?? [];
  const isOver = toolResults.length > 0 || lastUserText.startsWith('[');
  if (isOver || name === undefined) {
    return { chunks: [`Done: ${toolResults.at(-1)?.text ?? 'nothing.'}`] };
  }
  return { toolCalls: [{ name, arguments: JSON.parse(json) }] };
}

const page = createServer((_, response) => response.end('<p>Prices rose.</p>'));
await once(page.listen(0, '127.0.0.1'), 'listening');
const site = `127.0.0.1:${(page.address() as AddressInfo).port}`;
const mailBox = await startMailBox();
const photo = await sharp({ create: { width: 60, height: 40, channels: 3, background: '#f00' } })
  .jpeg()
  .toBuffer();
afterAll(async () => {
  await mailBox[Symbol.asyncDispose]();
  page.closeAllConnections();
  page.close();
});

type Approvals = NonNullable<NonNullable<ConfigInput['tools']>['approvals']>;
type Groups = readonly NonNullable<NonNullable<ConfigInput['tools']>['groups']>[number][];
type Exec = NonNullable<NonNullable<ConfigInput['tools']>['exec']>;

async function openWorld(approvals: Approvals, exec: Exec = {}, groups: Groups = []) {
  const world = await startTelegramWorld({
    respond: obey,
    channel: {
      streaming: false,
      groups: [`${GROUP}`, `${STRICT_GROUP}`],
      allowFrom: [`${OWNER.id}`],
    },
    config: {
      channels: {
        email: {
          ...mailboxAt(mailBox),
          allowFrom: ['anna@person.test'],
        },
      },
      mcpServers: {
        calendar: { ...CALENDAR, taints: false },
        tickets: CALENDAR,
        weather: { ...CALENDAR, taints: false, trust: 'read_only' },
      },
      tools: { web: { allowPrivateHosts: [site] }, approvals, exec, groups: [...groups] },
    },
    files: { 'notes.txt': 'buy milk', 'letters/ann.txt': 'Dear Ann' },
    pair: { [OWNER.id]: 'owner', [KIM.id]: 'trusted', [MIA.id]: 'trusted' },
  });
  for (const group of [GROUP, STRICT_GROUP]) world.telegram.group(group);
  await vi.waitFor(
    async () =>
      expect(await world.nanobot('mcp', 'list')).toMatch(
        /calendar +connected(?:.|\n)*tickets +connected(?:.|\n)*weather +connected/,
      ),
    WAIT,
  );
  await world.asks(MIA, 'Hello', /Done/);
  return world;
}

type Fields = Readonly<Record<string, unknown>>;
/** Says something in the world; in which chat it is answered. */
type Task = (world: TelegramWorld) => number;
/** Refused, and nobody is asked. */
const NEVER = 'never';
type Count = number | typeof NEVER;
/** How often the agent asks, and what is answered: else each question is denied. */
type Row<Counts extends readonly Count[]> = readonly [
  what: string,
  task: Task,
  ...Counts,
  answer?: string,
];

const words = (tool: string, input: object) => `CALL ${tool} ${JSON.stringify(input)}`;
const says =
  (text: string, extra: (world: TelegramWorld) => Fields = () => ({})): Task =>
  (world) => {
    world.telegram.say(OWNER, text, { extra: extra(world) });
    return OWNER.id;
  };
const call = (tool: string, input: object) => says(words(tool, input));
const by =
  (person: typeof KIM, tool: string, input: object): Task =>
  ({ telegram }) => {
    telegram.say(person, words(tool, input));
    return person.id;
  };
const inGroup =
  (tool: string, input: object, group = GROUP): Task =>
  ({ telegram }) => {
    telegram.say(OWNER, `@nano_sim_bot ${words(tool, input)}`, { chatId: group });
    return group;
  };
const sends =
  (file: SentFile, extra: Fields = {}): Task =>
  ({ telegram }) => {
    telegram.sendFile(OWNER, file, { extra });
    return OWNER.id;
  };
const OF_EVE = {
  forward_origin: {
    ...{ type: 'user', date: 1 },
    sender_user: { is_bot: false, id: 666, first_name: 'Eve' },
  },
};
function answeringTheAgent({ bot, telegram }: TelegramWorld): Fields {
  const { id, text } = bot(OWNER.id).findLast(({ text }) => text.startsWith('Done')) ?? {};
  const from = { id: telegram.bot.id, is_bot: true, first_name: 'Nano' };
  const chat = { id: OWNER.id, type: 'private' };
  return { reply_to_message: { message_id: id, date: 1, chat, from, text } };
}
const reminder = (text: string) =>
  call('cron', { action: 'add', kind: 'say', text, name: text, at: 'in 20m' });
const run = (...argv: readonly string[]) => call('exec', { argv });
const mail = (to: string, subject: string) => call('send_email', { to, subject, body: 'Hello.' });
const list = (name: string, text: string) => call('write_file', { path: name, content: text });
const photoOf = (extra: Fields = {}) =>
  sends({ field: 'photo', content: photo, caption: 'What is this?' }, extra);

/** Each day is a conversation of its own. The counts: `normal`, `strict`, `open`. */
const WEEK: Readonly<Record<string, readonly Row<[Count, Count, Count]>[]>> = {
  'Monday, files and notes': [
    ['remember something', call('remember', { fact: 'I like tea.' }), 0, 0, 0],
    ['recall it', call('recall', { query: 'tea' }), 0, 0, 0],
    ['list the files', call('list_dir', { path: '.' }), 0, 0, 0],
    ['read a file', call('read_file', { path: 'letters/ann.txt' }), 0, 0, 0],
    ['search the files', call('search_files', { query: 'milk' }), 0, 0, 0],
    ['write a file', list('list.txt', 'eggs'), 0, 0, 0],
    [
      'edit it',
      call('edit_file', { path: 'list.txt', old_text: 'eggs', new_text: 'figs' }),
      0,
      0,
      0,
    ],
    ['answer a message of the agent', says('Thank you.', answeringTheAgent), 0, 0, 0],
    ['remember more, after the files', call('remember', { fact: 'Ann is my aunt.' }), 0, 1, 0],
  ],
  'Tuesday, reminders and jobs': [
    ['set a reminder', reminder('tea'), 0, 1, 0],
    [
      'a repeated one',
      call('cron', { action: 'add', kind: 'say', text: 'water', every: '2h' }),
      0,
      1,
      0,
    ],
    [
      'a job each morning',
      call('cron', { action: 'add', text: 'Say the date.', cron: '0 8 * * *' }),
      0,
      1,
      0,
    ],
    ['list them', call('cron', { action: 'list' }), 0, 0, 0],
    ['send a photo', photoOf(), 0, 0, 0],
    [
      'send a document',
      sends({ field: 'document', content: Buffer.from('my list'), caption: 'Keep it.' }),
      0,
      0,
      0,
    ],
    ['a reminder after them', reminder('photo'), 0, 1, 0],
  ],
  'Wednesday, code': [
    ['run a program', run('wc', '-l', 'notes.txt'), 0, 1, 0, 'Allow'],
    ['a script', call('exec', { script: 'echo $((40+2))' }), 0, 1, 0],
    ['code', call('execute_code', { code: 'console.log(6*7)' }), 0, 1, 0],
    ['a program after them', run('ls', '-l'), 0, 1, 0],
  ],
  'Thursday, calendar and instructions': [
    ['look into the calendar', call('mcp_calendar_list_events', {}), 1, 1, 0, 'Allow'],
    ['again', call('mcp_calendar_list_events', {}), 0, 0, 0],
    ['delete an event', call('mcp_calendar_delete_event', { id: 1 }), 1, 1, 0, 'Allow'],
    ['another one', call('mcp_calendar_delete_event', { id: 2 }), 0, 0, 0],
    ['ask a server that only reads', call('mcp_weather_list_events', {}), 0, 1, 0],
    ['change the instructions', list('AGENTS.md', 'Be short.'), 1, 1, 0, 'Allow'],
  ],
  'Friday, mail': [
    ['write to a new address', mail('bob@example.org', 'Friday'), 1, 1, 1, 'Send'],
    ['write there again', mail('bob@example.org', 'Monday'), 0, 0, 0],
    [
      'write to somebody who writes to the agent',
      call('message', { to: 'Mia', content: 'Hi' }),
      0,
      0,
      0,
    ],
  ],
  'Saturday, content of others': [
    ['read a web page', call('web_fetch', { url: `http://${site}/` }), 0, 0, 0],
    ['write what it says down', list('prices.txt', 'Prices rose.'), 0, 0, 0],
    ['remember it', call('remember', { fact: 'Prices rose.' }), 0, 1, 0],
    ['a reminder of it', reminder('prices'), 1, 1, 1],
    ['once more', reminder('prices'), 1, 1, 1],
    ['a program', run('date'), 1, 1, 1],
    ['the calendar', call('mcp_calendar_list_events', {}), 1, 1, 1],
    ['the instructions', list('AGENTS.md', 'Prices rose.'), 1, 1, 1],
    ['a mail to a known address', mail('bob@example.org', 'Prices'), 1, 1, 1],
  ],
  'Saturday, later': [
    ['a forwarded photo', photoOf(OF_EVE), 0, 0, 0],
    ['a reminder of it', reminder('photo'), 1, 1, 1],
  ],
  'Saturday, tickets': [
    [
      'ask a server whose results are untrusted',
      call('mcp_tickets_list_events', {}),
      1,
      1,
      0,
      'Allow',
    ],
    ['ask it again', call('mcp_tickets_list_events', {}), 1, 1, 1],
  ],
  'Sunday, group and family': [
    ['read a file in the group', inGroup('read_file', { path: 'notes.txt' }), 0, 0, 0],
    ['run a program in the group', inGroup('exec', { argv: ['ls'] }), NEVER, NEVER, NEVER],
    ['a friend remembers something', by(KIM, 'remember', { fact: 'I like coffee.' }), 0, NEVER, 0],
    [
      'a friend sets a reminder',
      by(KIM, 'cron', { action: 'add', kind: 'say', text: 'call', at: 'in 20m' }),
      0,
      NEVER,
      0,
    ],
    ['a friend wants a program run', by(KIM, 'exec', { argv: ['ls'] }), NEVER, NEVER, NEVER],
  ],
};

/** Programs that could send something away. The counts: with network, and without a sandbox, under `normal`. */
const PROGRAMS: readonly Row<[Count, Count]>[] = [
  ['run a program', run('ls', 'letters'), 1, 1, 'Allow for 1 hour'],
  ['run it again', run('ls', 'letters'), 0, 0],
  ['run it on something else', run('ls', '-l'), 0, 1],
  ['run a script', call('exec', { script: 'echo 1' }), 1, 1],
];

const isQuestion = ({ buttons = [] }: SeenMessage) =>
  buttons.flat().some(({ text }) => /^(?:Allow|Send)/.test(text));
/** Also after a change that is no new message. */
const until = (holds: () => boolean) => expect.poll(holds, WAIT).toBe(true);

/** Asks how many questions a task takes. */
function countIn(world: TelegramWorld) {
  const { bot, telegram } = world;
  let syncs = 0;
  async function sync() {
    syncs += 1;
    await world.asks(OWNER, `SYNC ${syncs}`, new RegExp(`^SYNC ${syncs}$`));
  }
  return async (task: Task, answer = 'Deny'): Promise<Count> => {
    const before = new Map(
      [OWNER.id, KIM.id, GROUP, STRICT_GROUP].map((id) => [id, bot(id).length]),
    );
    const chat = task(world);
    const since = (id: number) => bot(id).slice(before.get(id));
    const asking = () => since(OWNER.id).filter(isQuestion);
    const done = () => since(chat).find(({ text }) => text.startsWith('Done'))?.text;
    let count = 0;
    let isSynced = false;
    for (;;) {
      await until(() => done() !== undefined || asking().length > 0);
      const open = asking();
      if (open.length === 0 && (isSynced || chat === OWNER.id)) break;
      if (open.length === 0) {
        // Another chat is no measure of what stands in this one.
        await sync();
        isSynced = true;
        continue;
      }
      count += open.length;
      const labels =
        open
          .at(-1)
          ?.buttons?.flat()
          .map(({ text }) => text) ?? [];
      const isMeant = (label: string) =>
        answer === 'Deny' ? /^(?:Deny|Drop)/.test(label) : label.startsWith(answer);
      telegram.press(OWNER, OWNER.id, labels.find(isMeant) ?? answer);
      await until(() => asking().length < open.length);
    }
    // What goes on after the decision is over too.
    if (count > 0) await sync();
    // What is not asked about is done or refused.
    else expect(done()).not.toMatch(/^Done: Error/);
    return done()?.startsWith('Done: Permission denied') ? NEVER : count;
  };
}

const anew = (world: TelegramWorld) => world.asks(OWNER, '/new', /New conversation/);

describe.each([
  ['normal', 0, 13],
  ['strict', 1, 24],
  ['open', 2, 9],
] as const)('a week under `%s`', (policy, column, total) => {
  let world: TelegramWorld;
  let asked = 0;
  beforeAll(async () => {
    world = await openWorld({ owner: policy, trusted: policy });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  it.each(Object.entries(WEEK))('%s', async (_, rows) => {
    await anew(world);
    const count = countIn(world);
    const counted: (readonly [string, Count])[] = [];
    for (const [what, task, , , , answer] of rows) counted.push([what, await count(task, answer)]);
    expect(counted).toEqual(rows.map((row) => [row[0], row[2 + column]]));
    for (const [, questions] of counted) asked += questions === NEVER ? 0 : questions;
  });

  it(`asks ${total} questions in all`, () => {
    expect(asked).toBe(total);
  });
});

describe.each([
  ['with the network', 0, { network: 'on' }],
  ['without a sandbox', 1, { sandbox: 'off' }],
] as const)('a program %s', (_, column, exec) => {
  it('is asked about, until a rule covers it', async () => {
    await using world = await openWorld({}, exec);
    const count = countIn(world);
    for (const [what, task, ...rest] of PROGRAMS) {
      await anew(world);
      expect([what, await count(task, rest[2])]).toEqual([what, rest[column]]);
    }
  });
});

describe('a policy apart', () => {
  it('is that of a group, of a person by the command line, and shown by doctor', async () => {
    const groups = [
      { who: `telegram:${GROUP}`, execute: 'free', approvals: 'normal' },
      { who: `telegram:${STRICT_GROUP}`, execute: 'free' },
    ] as const;
    await using world = await openWorld({}, {}, groups);
    const count = countIn(world);
    const program = ['exec', { argv: ['ls'] }] as const;
    expect(await count(inGroup(...program))).toBe(0);
    expect(await count(inGroup(...program, STRICT_GROUP))).toBe(1);
    const people = JSON.parse(await world.nanobot('people', 'list', '--json'));
    const { id } = people.find((one: { name: string }) => one.name === OWNER.first_name);
    expect(await count(run('ls'))).toBe(0);
    await world.nanobot('people', 'set', id, '--approvals', 'strict');
    expect(await count(run('ls'))).toBe(1);
    const { stdout } = await runNanobot(['doctor'], { home: world.home.path });
    expect(stdout).toMatch(
      /approvals +owners: normal, trusted people: normal; set apart for 2 people or groups/,
    );
    await world.nanobot('people', 'set', id, '--approvals', 'auto');
    expect(await count(run('ls'))).toBe(0);
  });
});
