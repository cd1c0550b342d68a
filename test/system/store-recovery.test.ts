// The whole gateway is killed and its state.db damaged, again and again, with answered and waiting
// messages in it: it starts, answers nothing twice, goes on answering, and reports what it did. A kill
// while it rebuilds the file changes nothing of that.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, watch } from 'node:fs';
import { open, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { MAIN, runNanobot } from '../cli/run-nanobot.ts';
import { startBotApi } from '../support/bot-api.ts';
import { campaign } from '../support/campaign.ts';
import { type GatewayProcess, makeTestHome } from '../support/gateway-process.ts';
import { echo, startLlmServer } from '../support/llm-server.ts';
import { laterBy } from '../support/shifted-clock.ts';

const CHATS = [501, 502, 503];
/** Messages in each chat before the first damage. */
const BEFORE = campaign({ short: 4, full: 100 });
/** Of damage: the others are tried by test/store/recovery.test.ts too. */
const KINDS = campaign({ short: 3, full: 6 });
const KILLS = campaign({ short: 1, full: 20 });
const ROUNDS = campaign({ short: 1, full: 10 });
const PAGE_BYTES = 4096;
const ANSWER_TIMEOUT_MS = 60_000;

async function overwrite(path: string, page: number): Promise<void> {
  const file = await open(path, 'r+');
  await file.write(Buffer.alloc(PAGE_BYTES, 0x55), 0, PAGE_BYTES, page * PAGE_BYTES);
  await file.close();
}

/** The page under which all messages are found. */
async function overwriteMessages(path: string): Promise<void> {
  const database = new DatabaseSync(path, { readOnly: true });
  const sql = `SELECT rootpage AS page FROM sqlite_schema WHERE name = 'inbound'`;
  const page = Number(database.prepare(sql).get()?.['page']);
  database.close();
  await overwrite(path, page - 1);
}

type Damage = {
  readonly what: string;
  /** Before the gateway ended: what is in the log hides damage of the file. */
  readonly isKilled: boolean;
  do(path: string): Promise<void>;
};
const DAMAGES: readonly Damage[] = [
  { what: 'the page of the messages', isKilled: false, do: overwriteMessages },
  { what: 'all of it', isKilled: false, do: (path) => truncate(path, 0) },
  { what: 'its log', isKilled: true, do: (path) => rm(`${path}-wal`) },
  { what: 'the header', isKilled: false, do: (path) => overwrite(path, 0) },
  {
    what: 'half of the file',
    isKilled: false,
    do: async (path) =>
      truncate(path, Math.floor((await stat(path)).size / PAGE_BYTES / 2) * PAGE_BYTES),
  },
  {
    what: 'its log, which is garbage',
    isKilled: true,
    do: (path) => writeFile(`${path}-wal`, Buffer.alloc(100_000, 0x37)),
  },
];

it('a damaged store is rebuilt at the start: nothing is answered twice, and the chats go on', async () => {
  await using telegram = await startBotApi();
  await using model = await startLlmServer({ respond: echo });
  await using home = await makeTestHome({
    agents: { defaults: { model: 'openai/sim-1' } },
    providers: { openai: { apiKey: 'crash-test-key', apiBase: model.openaiBase } },
    channels: {
      telegram: {
        ...{ enabled: true, token: telegram.token, apiRoot: telegram.apiRoot },
        allowFrom: ['*'],
      },
    },
    gateway: { port: 0 },
    coalesce: { quietMs: 0 },
    limits: { messages: { perMinute: 0, perDay: 0 } },
  });
  const state = join(home.path, 'state.db');
  let turns = 0;
  const nonceOf = (chat: number, turn: number) => `nonce-${chat}x${String(turn).padStart(4, '0')}`;
  const answers = (chat: number, turn: number) =>
    telegram
      .chat(chat)
      .messages.filter(({ from, text }) => from === 'bot' && text === nonceOf(chat, turn)).length;
  async function talk(count: number): Promise<void> {
    for (let each = 0; each < count; each += 1) {
      turns += 1;
      const turn = turns;
      for (const chat of CHATS) telegram.say(chat, `repeat ${nonceOf(chat, turn)}`);
      for (const chat of CHATS) {
        await telegram.waitFor(() => answers(chat, turn) > 0, ANSWER_TIMEOUT_MS);
      }
    }
  }
  const twice = () =>
    CHATS.flatMap((chat) =>
      Array.from({ length: turns }, (_, index) => index + 1)
        .filter((turn) => answers(chat, turn) > 1)
        .map((turn) => nonceOf(chat, turn)),
    );
  const reports = async () =>
    (await readdir(home.path)).filter((name) => /^state\.db\.damaged-.*\.txt$/.test(name));

  let gateway: GatewayProcess = await home.start(laterBy(0));
  await talk(BEFORE);
  await gateway.skipUntil(() => existsSync(`${state}.snapshot`));
  await talk(2);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const { what, isKilled, do: damage } of DAMAGES.slice(0, KINDS)) {
      const before = (await reports()).length;
      await journalEmpty(
        home.path,
        CHATS.map((chat) => nonceOf(chat, turns)),
      );
      await (isKilled ? gateway.kill() : gateway.stop());
      await damage(state);
      gateway = await home.start(laterBy(0));
      await talk(1);
      expect([what, twice()]).toEqual([what, []]);
      expect([what, (await reports()).length]).toEqual([what, before + 1]);
    }
  }
  const { stdout } = await runNanobot(['status'], { home: home.path });
  expect(stdout.match(/^Recovery +state\.db was damaged .*$/gm)).toHaveLength(
    (await reports()).length,
  );
  // The owners get each report once, here in the notices of the web page.
  await expect.poll(() => noticesIn(state), { timeout: ANSWER_TIMEOUT_MS }).toBeGreaterThan(0);

  await journalEmpty(
    home.path,
    CHATS.map((chat) => nonceOf(chat, turns)),
  );
  await gateway.stop();
  await overwriteMessages(state);
  const damaged = await readFile(state);
  for (let kill = 1; kill <= KILLS; kill += 1) await killAtChange(home.path, kill);
  gateway = await home.start();
  await talk(1);
  expect(twice()).toEqual([]);
  const kept = await Promise.all(
    (await readdir(home.path))
      .filter((name) => /^state\.db\.damaged-[\dT-]+$/.test(name))
      .map((name) => readFile(join(home.path, name))),
  );
  expect(kept.some((bytes) => bytes.equals(damaged))).toBe(true);
  expect(telegram.violations).toEqual([]);
});

function noticesIn(path: string): number {
  const database = new DatabaseSync(path, { readOnly: true });
  const sql = `SELECT count(*) AS n FROM outbound WHERE body LIKE '%has been rebuilt%'`;
  const found = database.prepare(sql).get()?.['n'];
  database.close();
  return Number(found);
}

/** The session files have all of these texts. */
async function journalEmpty(home: string, texts: readonly string[]): Promise<void> {
  const folder = join(home, 'sessions');
  await expect
    .poll(
      async () => {
        const names = (await readdir(folder)).filter((name) => name.endsWith('.jsonl'));
        const files = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
        const ended = files
          .join('')
          .split('\n')
          .filter((line) => line.includes('"turn_end"'));
        return texts.every((text) => ended.some((line) => line.includes(text)));
      },
      { timeout: ANSWER_TIMEOUT_MS },
    )
    .toBe(true);
}

/** Starts a gateway and kills it at the n-th change of a file of the recovery. */
async function killAtChange(home: string, nth: number): Promise<void> {
  let seen = 0;
  const child = spawn(process.execPath, [MAIN, 'gateway'], {
    env: { PATH: process.env['PATH'] ?? '', HOME: home, NANOBOT_HOME: home, TZ: 'UTC' },
    stdio: 'ignore',
  });
  const watcher = watch(home, (_, name) => {
    if (!/\.(?:recovering|recovered|damaged)/.test(name ?? '')) return;
    seen += 1;
    if (seen >= nth) child.kill('SIGKILL');
  });
  await once(child, 'exit');
  watcher.close();
}
