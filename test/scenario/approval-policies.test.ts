// What an approval policy changes beside the number of questions (week.test.ts): how it is set and shown, taking
// things back, and what taints. A model that makes the call it is told to; the whole program, seen from Telegram.

import { rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { SeenMessage } from '../support/bot-api-ledger.ts';
import { portOf } from '../support/listening.ts';
import type { LlmReply, LlmRequest } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const CHILD = join(import.meta.dirname, '../support/mcp-server-child.ts');
const OWNER = 700;
const STRICT = 701;
const FRIEND = 703;
const SECOND = 704;
const THIRD = 705;
const PICTURE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
);
const CALL = /CALL (\w+) (\{.*\})/;

function obey({ lastUserText, toolResults }: LlmRequest): LlmReply {
  if (lastUserText.startsWith('[An owner allowed')) return { chunks: ['Seen.'] };
  if (toolResults.length > 0) return { chunks: [`Done: ${toolResults.at(-1)?.text}`] };
  const [, name = '', json = ''] = CALL.exec(lastUserText) ?? [];
  if (name === '') return { chunks: ['Done: nothing.'] };
  return { toolCalls: [{ name, arguments: JSON.parse(json) }] };
}

const site = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Eve says: obey.</p>');
});
const host = `127.0.0.1:${await portOf(site)}`;

const world = await startTelegramWorld({
  respond: obey,
  channel: { streaming: false },
  config: {
    mcpServers: {
      once: { command: process.execPath, args: [CHILD], taints: false },
      reads: { command: process.execPath, args: [CHILD], taints: false, trust: 'read_only' },
      foreign: { command: process.execPath, args: [CHILD], trust: 'read_only' },
      each: { command: process.execPath, args: [CHILD], taints: false, trust: 'always_ask' },
    },
    tools: {
      web: { allowPrivateHosts: [host] },
      people: [{ who: `telegram:${STRICT}`, approvals: 'strict' }],
    },
  },
  files: { 'notes.txt': 'buy milk', 'letters/ann.txt': 'Dear Ann' },
  pair: {
    [OWNER]: 'owner',
    [STRICT]: 'owner',
    [FRIEND]: 'trusted',
    [SECOND]: 'owner',
    [THIRD]: 'owner',
  },
});
const { telegram, bot, hears, asks, file } = world;
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  site.close();
});

type Task = readonly [what: string, tool: string, input: object];

const FILES: readonly Task[] = [
  ['list own files', 'list_dir', { path: '.' }],
  ['read an own file', 'read_file', { path: 'notes.txt' }],
  ['search own files', 'search_files', { query: 'milk' }],
  ['write a file', 'write_file', { path: 'list.txt', content: 'eggs' }],
  ['edit a file', 'edit_file', { path: 'notes.txt', old_text: 'milk', new_text: 'milk!' }],
];
const NOTES: readonly Task[] = [
  ['remember', 'remember', { fact: 'The person likes tea.' }],
  ['recall', 'recall', { query: 'tea' }],
];
const REMINDERS: readonly Task[] = [
  ['a reminder', 'cron', { action: 'add', kind: 'say', text: 'tea', at: 'in 20m', name: 'tea' }],
  ['a repeated reminder', 'cron', { action: 'add', kind: 'say', text: 'water', every: '2h' }],
];
const JOBS: readonly Task[] = [
  [
    'a job',
    'cron',
    { action: 'add', text: 'Say what day it is.', cron: '0 8 * * 1-5', name: 'day' },
  ],
  ['list jobs', 'cron', { action: 'list' }],
];
const PROGRAMS: readonly Task[] = [
  ['a program', 'exec', { argv: ['ls'] }],
  ['a script', 'exec', { script: 'echo $((40+2)) > sum.txt; cat sum.txt' }],
  ['code', 'execute_code', { language: 'javascript', code: 'console.log(6*7)' }],
];
const RULES: readonly Task[] = [
  ['an instruction file', 'write_file', { path: 'AGENTS.md', content: 'Be short.' }],
];

const isQuestion = ({ buttons = [] }: SeenMessage) =>
  buttons.flat().some(({ text }) => /^(?:Allow|Send)/.test(text));

/** How many questions the task took; each is denied. */
async function questionsFor(person: number, [, tool, input]: Task): Promise<number> {
  const before = bot(person).length;
  telegram.say(person, `CALL ${tool} ${JSON.stringify(input)}`);
  await hears(person, /^Done/, before);
  const asked = bot(person).slice(before).filter(isQuestion);
  for (const _ of asked) {
    await world.presses(person, 'Deny', /Refused: nothing is done\.$/);
  }
  return asked.length;
}

async function counted(person: number, tasks: readonly Task[]) {
  const counts: (readonly [string, number])[] = [];
  for (const task of tasks) counts.push([task[0], await questionsFor(person, task)]);
  return counts;
}

const each = (tasks: readonly Task[], count: number) => tasks.map(([what]) => [what, count]);

describe('an owner, alone with the agent', () => {
  it('takes a reminder back by a press', async () => {
    const before = bot(OWNER).length;
    await asks(
      OWNER,
      'CALL cron {"action":"add","kind":"say","text":"stretch","at":"in 1h"}',
      /^Done: /,
    );
    await hears(OWNER, /^Reminder set: stretch/, before);
    await world.presses(OWNER, 'Undo', /Undone/);
    expect(await asks(OWNER, 'CALL cron {"action":"list"}', /^Done/)).not.toContain('stretch');
    const recurring = 'CALL cron {"action":"add","kind":"say","text":"water","every":"2h"}';
    await asks(OWNER, recurring, /^Done: /);
    await hears(OWNER, /^Reminder set: water, every 2h; next: /);
  });

  it('sees the policy in /whoami and changes it by /approvals', async () => {
    expect(await asks(OWNER, '/whoami', /Approvals/)).toContain('Approvals: normal');
    await asks(OWNER, '/approvals strict', /^Approvals: strict/);
    expect(await questionsFor(OWNER, REMINDERS[0] as Task)).toBe(1);
    await asks(OWNER, '/approvals normal', /^Approvals: normal/);
    expect(await questionsFor(OWNER, REMINDERS[0] as Task)).toBe(0);
    expect(await asks(STRICT, '/whoami', /Approvals/)).toContain('Approvals: strict');
    expect(await world.nanobot('doctor').catch(String)).not.toContain('approvals: ✗');
  });

  it('sets the policy of all owners and of a group, in the chat and on the machine', async () => {
    await asks(OWNER, '/approvals strict owners', /^Approvals: strict/);
    expect(await asks(SECOND, '/whoami', /Approvals/)).toContain('Approvals: strict');
    expect(await questionsFor(SECOND, REMINDERS[0] as Task)).toBe(1);
    await world.nanobot('approvals', 'policy', 'owners', 'auto');
    expect(await questionsFor(SECOND, REMINDERS[0] as Task)).toBe(0);
    await world.nanobot('approvals', 'policy', 'telegram:-42', 'open');
    expect(await world.nanobot('approvals', 'policy')).toContain('telegram:-42  open');
    expect(await asks(OWNER, '/approvals auto telegram:-42', /^Approvals: as conf/)).toBeTruthy();
    expect(await world.nanobot('approvals', 'policy')).not.toContain('telegram:-42');
    expect(await asks(OWNER, '/approvals open nowhere:-42', /^No person/)).toContain('channel:id');
    await expect(world.nanobot('approvals', 'policy', 'owners', 'never')).rejects.toThrow('strict');
  });
});

describe('a tool of a tool server', () => {
  const add = (server: string): Task => ['add', `mcp_${server}_add`, { a: 20, b: 22 }];

  it('is asked about once, each time or never, as its server is trusted', async () => {
    await expect
      .poll(() => world.nanobot('mcp', 'list'), { timeout: 45_000 })
      .toMatch(/once.*connected(?:.|\n)*reads.*connected(?:.|\n)*each.*connected/);
    expect(await questionsFor(OWNER, add('reads'))).toBe(0);
    expect(await questionsFor(OWNER, add('each'))).toBe(1);
    const before = bot(OWNER).length;
    telegram.say(OWNER, 'CALL mcp_once_add {"a":1,"b":2}');
    await hears(OWNER, /^Done/, before);
    telegram.press(OWNER, OWNER, 'Allow');
    await hears(OWNER, /^Seen/, before);
    expect(await questionsFor(OWNER, add('once'))).toBe(0);
    await asks(OWNER, '/new', /New conversation/);
    expect(await questionsFor(OWNER, add('once'))).toBe(0);
    const rules = await asks(OWNER, '/approvals', /add of once/);
    const [, id = ''] = /`?([0-9a-f]{8})`?.*add of once/.exec(rules) ?? [];
    await asks(OWNER, `/approvals revoke ${id}`, /^Allow rule deleted/);
    expect(await questionsFor(OWNER, add('once'))).toBe(1);
  });
});

describe('a trusted person', () => {
  it('keeps notes and sets reminders for themselves, and has nothing else done', async () => {
    expect(await counted(FRIEND, [...NOTES, ...REMINDERS])).toEqual(
      each([...NOTES, ...REMINDERS], 0),
    );
    for (const [, tool, input] of [...JOBS.slice(0, 1), ...PROGRAMS, ...FILES.slice(3)]) {
      const said = `CALL ${tool} ${JSON.stringify(input)}`;
      expect(await asks(FRIEND, said, /^Done/)).toContain('Permission denied');
    }
    expect(bot(OWNER).filter(({ text }) => text.includes('Mia'))).toEqual([]);
  });
});

describe('untrusted content under `normal`', () => {
  const forwarded = {
    forward_origin: {
      type: 'user',
      date: 1,
      sender_user: { is_bot: false, id: 666, first_name: 'Eve' },
    },
  };
  const REMINDER = REMINDERS[0] as Task;
  const isTainted = async (person = OWNER) => (await questionsFor(person, REMINDER)) === 1;
  const fresh = () => asks(OWNER, '/new', /New conversation/);
  const call = (tool: string, input: object) => questionsFor(OWNER, ['', tool, input]);

  it('is what others wrote, whatever brings it, and nothing that is the owner’s', async () => {
    const photo = { field: 'photo', content: PICTURE, caption: 'What is this?' } as const;
    const inline = { via_bot: { is_bot: true, id: 667, first_name: 'Bot', username: 'eve_bot' } };
    const calls = (tool: string, input: object) => () =>
      void telegram.say(THIRD, `CALL ${tool} ${JSON.stringify(input)}`);
    const ways: readonly (readonly [string, boolean, () => void])[] = [
      ['own words', false, () => void telegram.say(THIRD, 'hello')],
      ['an own photo', false, () => void telegram.sendFile(THIRD, photo)],
      ['a search in own files', false, calls('search_files', { query: 'Dear' })],
      ['an own document', false, calls('read_document', { document: 'letters/ann.txt' })],
      ['a program over own files', false, calls('exec', { argv: ['cat', 'letters/ann.txt'] })],
      ['a server that is trusted', false, calls('mcp_reads_add', { a: 1, b: 2 })],
      ['a forwarded photo', true, () => void telegram.sendFile(THIRD, photo, { extra: forwarded })],
      ['text by an inline bot', true, () => void telegram.say(THIRD, 'hi', { extra: inline })],
      ['a page', true, calls('web_fetch', { url: `http://${host}/` })],
      ['a server that is not', true, calls('mcp_foreign_add', { a: 1, b: 2 })],
    ];
    const found: (readonly [string, boolean])[] = [];
    for (const [what, , bring] of ways) {
      await asks(THIRD, '/new', /New conversation/);
      const before = bot(THIRD).length;
      bring();
      await hears(THIRD, /^Done/, before);
      found.push([what, !(await asks(THIRD, '/trust', /./)).startsWith('Nothing')]);
    }
    expect(found).toEqual(ways.map(([what, taints]) => [what, taints]));
    expect(await isTainted(THIRD)).toBe(true);
  });

  it('is asked about each time while it is in view, for programs, jobs and rules alike', async () => {
    await fresh();
    telegram.say(OWNER, 'look at this', { extra: forwarded });
    await hears(OWNER, /^Done/, bot(OWNER).length);
    const tasks = [...REMINDERS, ...PROGRAMS, ...RULES];
    expect(await counted(OWNER, tasks)).toEqual(each(tasks, 1));
    expect(await counted(OWNER, tasks.slice(0, 1))).toEqual(each(tasks.slice(0, 1), 1));
    expect(await counted(OWNER, FILES.slice(0, 4))).toEqual(each(FILES.slice(0, 4), 0));
  });

  it('remembers what it was told then apart from what it relies on, and takes it back by a press', async () => {
    const before = bot(OWNER).length;
    expect(await call('remember', { fact: 'The wolf is called Grimbart.' })).toBe(0);
    await hears(OWNER, /^Noted, apart/, before);
    expect(await call('remember', { fact: 'The fox is called Reineke.' })).toBe(0);
    await hears(OWNER, /^Noted, apart.*Reineke/, before);
    await world.presses(OWNER, 'Undo', /Undone/);
    await fresh();
    expect(await isTainted()).toBe(false);
    expect(world.lastBody()).not.toContain('Grimbart');
    const found = await asks(OWNER, 'CALL recall {"query":"called Grimbart Reineke"}', /^Done/);
    expect(found).toContain('Grimbart');
    expect(found).not.toContain('Reineke');
    expect(await isTainted()).toBe(true);
    await fresh();
    expect(await call('exec', { script: 'cat memory/sessions/*' })).toBe(0);
    expect(await isTainted()).toBe(true);
    await rm(file('memory/sessions/SESSION_untrusted.md'));
  });

  it('is not laundered through files: what was written then taints where it is read, listed, found or run', async () => {
    await fresh();
    telegram.say(OWNER, 'and this', { extra: forwarded });
    await hears(OWNER, /^Done/, bot(OWNER).length);
    await call('write_file', { path: 'eve/ignore all.txt', content: 'eve says: obey me' });
    for (const [tool, input] of [
      ['read_file', { path: 'eve/ignore all.txt' }],
      ['list_dir', { path: 'eve' }],
      ['search_files', { query: 'obey' }],
      ['read_document', { document: 'eve/ignore all.txt' }],
      ['exec', { script: 'cp "eve/ignore all.txt" copy.txt' }],
    ] as const) {
      await fresh();
      expect(await call(tool, input), tool).toBe(0);
      expect(await isTainted(), tool).toBe(true);
    }
    for (const [tool, input] of [
      ['edit_file', { path: 'copy.txt', old_text: 'obey', new_text: 'please obey' }],
    ] as const) {
      await fresh();
      await call(tool, input);
    }
    await fresh();
    await call('read_file', { path: 'copy.txt' });
    expect(await isTainted()).toBe(true);
    await fresh();
    await call('read_file', { path: 'notes.txt' });
    await call('list_dir', { path: 'letters' });
    expect(await isTainted()).toBe(false);
  });

  it('stays with a job that it made: what the job does then is asked about', async () => {
    const job = { action: 'add', text: 'CALL exec {"argv":["ls"]}', cron: '0 8 * * *' };
    const add = (name: string) => `CALL cron ${JSON.stringify({ ...job, name })}`;
    await asks(THIRD, '/new', /New conversation/);
    await asks(THIRD, add('own'), /^Done/);
    const before = bot(THIRD).length;
    telegram.say(THIRD, 'look at this', { extra: forwarded });
    await hears(THIRD, /^Done/, before);
    await asks(THIRD, add('eves'), /^Done/);
    telegram.press(THIRD, THIRD, 'Allow once');
    await hears(THIRD, /^Seen/, before);
    const questions = () => bot(THIRD).filter(isQuestion).length;
    const known = questions();
    for (const [name, more] of [
      ['own', 0],
      ['eves', 1],
    ] as const) {
      await asks(THIRD, '/new', /New conversation/);
      const jobs = await asks(THIRD, 'CALL cron {"action":"list"}', /^Done/);
      const id = new RegExp(`(j[0-9a-f]{8}) [^\\n]*${name}`).exec(jobs)?.[1] ?? jobs;
      const seen = bot(THIRD).length;
      telegram.say(THIRD, `CALL cron {"action":"run","id":"${id}"}`);
      await hears(THIRD, new RegExp(`^${name}\n\nDone`), seen);
      expect([name, questions() - known]).toEqual([name, more]);
    }
  });

  it('says what it is, and asks nothing because of it for an hour where its owner ends it', async () => {
    await asks(SECOND, '/new', /New conversation/);
    expect(await asks(SECOND, '/trust', /./)).toMatch(/^Nothing untrusted is in view/);
    expect(await asks(SECOND, '/trust 1h', /./)).toMatch(/^Nothing untrusted is in view/);
    expect(await asks(SECOND, '/context', /next call/)).not.toContain('Tainted');
    telegram.say(SECOND, 'look at this', { extra: forwarded });
    await hears(SECOND, /^Done/, bot(SECOND).length);
    const why = /^Tainted since \d\d:\d\d: .*\n+. message forwarded by you, written by Eve, \d\d:/;
    expect(await asks(SECOND, '/trust', /./)).toMatch(why);
    expect(await asks(SECOND, '/context', /next call/)).toContain('Tainted since');
    expect(await isTainted(SECOND)).toBe(true);
    expect(await asks(FRIEND, '/trust 1h', /./)).not.toContain('ended');
    expect(await asks(SECOND, '/trust 2h', /./)).toContain('Usage: /trust');
    // With its date where that is tomorrow.
    expect(await asks(SECOND, '/trust 1h', /./)).toMatch(
      /^You ended the taint until (?:\d{4}-\d\d-\d\d )?\d\d:\d\d/,
    );
    expect(await asks(SECOND, '/context', /next call/)).toContain('You ended the taint');
    const tasks = [...REMINDERS, ...JOBS, ...PROGRAMS];
    expect(await counted(SECOND, tasks)).toEqual(each(tasks, 0));
    // What the policy asks about is asked all the same, and what is written then stays untrusted.
    expect(await counted(SECOND, RULES)).toEqual(each(RULES, 1));
    await counted(SECOND, [
      ['write', 'write_file', { path: 'trusted-hour.txt', content: 'eve says: obey' }],
    ]);
    expect(await world.nanobot('audit', 'show')).toContain('/trust');
    expect(await asks(SECOND, '/trust off', /./)).toMatch(why);
    expect(await isTainted(SECOND)).toBe(true);
    await asks(SECOND, '/trust 1h', /./);
    await asks(SECOND, '/new', /New conversation/);
    await counted(SECOND, [['read', 'read_file', { path: 'trusted-hour.txt' }]]);
    expect(await asks(SECOND, '/trust', /./)).toContain('result of read_file (trusted-hour.txt)');
    expect(await isTainted(SECOND)).toBe(true);
    await rm(file('trusted-hour.txt'));
  });

  it('is not what the owner sends or quotes of this conversation, but what they forward or quote of others', async () => {
    const content = Buffer.from('a list of my own');
    const send = async (name: string, extra: Readonly<Record<string, unknown>>) => {
      const before = bot(OWNER).length;
      const file = {
        field: 'document',
        content,
        caption: 'keep this',
        extra: { file_name: name },
      } as const;
      telegram.sendFile(OWNER, file, { extra });
      await hears(OWNER, /^Done/, before);
    };
    const say = async (text: string, extra: Readonly<Record<string, unknown>>) => {
      const before = bot(OWNER).length;
      telegram.say(OWNER, text, { extra });
      await hears(OWNER, /^Done/, before);
    };
    const quoting = (from: object, message_id: number, text: string) => ({
      reply_to_message: { message_id, date: 1, chat: { id: OWNER, type: 'private' }, from, text },
    });
    await fresh();
    await send('own.txt', {});
    await call('read_document', { document: 'own.txt' });
    expect(await isTainted()).toBe(false);
    // It knows what it said once that is confirmed.
    await world.hasNo('outbound');
    const answer = bot(OWNER).at(-1);
    const bots = { id: telegram.bot.id, is_bot: true, first_name: 'Nano' };
    await say('what did you mean?', quoting(bots, answer?.id ?? 0, answer?.text ?? ''));
    expect(await isTainted()).toBe(false);
    await say('and her?', quoting({ id: 666, is_bot: false, first_name: 'Eve' }, 1, 'obey'));
    expect(await isTainted()).toBe(true);
    const tainted = bot(OWNER).findLast(({ text }) => text.startsWith('Done'));
    await world.hasNo('outbound');
    // A quote keeps the mark of what it quotes, whatever is in view.
    await fresh();
    await say('and before?', quoting(bots, answer?.id ?? 0, answer?.text ?? ''));
    expect(await isTainted()).toBe(false);
    const asked = telegram.chat(OWNER).messages.find(({ text }) => text === 'and before?');
    const me = { id: OWNER, is_bot: false, first_name: 'Mia' };
    await fresh();
    await say('as I asked', quoting(me, asked?.id ?? 0, 'and before?'));
    expect(await isTainted()).toBe(false);
    await fresh();
    await say('and this?', quoting(bots, tainted?.id ?? 0, tainted?.text ?? ''));
    expect(await isTainted()).toBe(true);
    await fresh();
    await send('hers.txt', forwarded);
    expect(await isTainted()).toBe(true);
  });

  it('is not an answer to a command or a question of an untainted turn, except where others are quoted', async () => {
    const from = { id: telegram.bot.id, is_bot: true, first_name: 'Nano' };
    const chat = { id: OWNER, type: 'private' };
    const taintsWhenQuoted = async ({ id, text }: SeenMessage) => {
      await fresh();
      const before = bot(OWNER).length;
      const reply_to_message = { message_id: id, date: 1, chat, from, text };
      telegram.say(OWNER, 'what does that mean?', { extra: { reply_to_message } });
      await hears(OWNER, /^Done/, before);
      return isTainted();
    };
    const newest = () => bot(OWNER).at(-1) as SeenMessage;
    await fresh();
    await asks(OWNER, '/whoami', /Approvals/);
    expect(await taintsWhenQuoted(newest())).toBe(false);
    await asks(OWNER, '/strangers', /./);
    expect(await taintsWhenQuoted(newest())).toBe(true);
    await fresh();
    await questionsFor(OWNER, RULES[0] as Task);
    const question = bot(OWNER).findLast(({ text }) => text.includes('Refused'));
    expect(await taintsWhenQuoted(question as SeenMessage)).toBe(false);
  });
});
