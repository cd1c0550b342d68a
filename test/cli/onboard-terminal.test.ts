// The setup in a real terminal: what a person types and reads.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startBotApi } from '../support/bot-api.ts';
import { freePorts } from '../support/free-ports.ts';
import { say, startLlmServer } from '../support/llm-server.ts';
import { startSocksProxy } from '../support/proxy-programs.ts';
import { temporaryHome } from './run-nanobot.ts';

const ROOT = join(import.meta.dirname, '../..');
const absent = spawnSync('script', ['--version']).status === 0 ? undefined : 'no "script" command';
if (absent !== undefined) console.log(`skipped: the setup in a terminal (${absent})`);

const ENTER = '\r';
const DOWN = '\u001B[B';
const CTRL_C = '\u0003';
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are steered by them
const STEERING = /\u001B(?:\[[\d;?]*[A-Za-z]|[()][A-Z0-9])|\r/g;

/** A pseudo-terminal of 120 columns and 60 rows with the program in it. */
function openTerminal(home: string, flags = '') {
  const program = `stty cols 120 rows 60; exec "${process.execPath}" src/main.ts onboard ${flags}`;
  const child = spawn(
    'script',
    ['--quiet', '--return', '--flush', '--command', program, '/dev/null'],
    {
      cwd: ROOT,
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: home,
        NANOBOT_HOME: home,
        TERM: 'xterm',
        TZ: 'UTC',
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    },
  );
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  let printed = '';
  let read = 0;
  child.stdout.on('data', (part: Buffer) => {
    printed += part.toString().replace(STEERING, '');
  });
  return {
    exited,
    printed: () => printed,
    /** Types once this was printed, behind what was read before. */
    async at(pattern: RegExp, ...keys: readonly string[]) {
      await expect
        .poll(() => printed.slice(read).search(pattern), { message: `${pattern}`, timeout: 60_000 })
        .toBeGreaterThanOrEqual(0)
        .catch((error: unknown) => {
          throw new Error(`${pattern} was not printed, but:\n${printed.slice(read)}`, {
            cause: error,
          });
        });
      const found = pattern.exec(printed.slice(read));
      read += (found?.index ?? 0) + (found?.[0].length ?? 0);
      for (const key of keys) child.stdin.write(key);
    },
  };
}

test.skipIf(absent !== undefined)(
  'goes on with what is typed after a failure, skips a step, and says what is saved when it is ended',
  async () => {
    await using home = await temporaryHome();
    const [port = 0] = await freePorts(1);
    const terminal = openTerminal(home.path);
    await terminal.at(/Which model should answer/, DOWN, ENTER);
    await terminal.at(/Address of the server/, `http://127.0.0.1:${port}/v1`, ENTER);
    await terminal.at(/API key/, ENTER);
    await terminal.at(/The server lists no models[\s\S]*Model name/, 'mock', ENTER);
    await terminal.at(/does not answer\. Start it, then try again/);
    await using server = await startLlmServer({ models: ['mock', 'other'], port });
    server.respond(() => say('ready'));
    await terminal.at(/Model is not set up/, ENTER);
    await terminal.at(/Which model should answer/, ENTER);
    await terminal.at(/Address of the server/, ENTER);
    await terminal.at(/API key/, ENTER);
    await terminal.at(/The server has 2 models[\s\S]*Model/, ENTER);
    await terminal.at(/local\/mock answered in[\s\S]*Connect Telegram/, CTRL_C);
    await terminal.at(/Telegram is not set up/, DOWN, ENTER);
    await terminal.at(/Connect a mailbox/, CTRL_C);
    await terminal.at(/Email is not set up/, CTRL_C);
    expect(await terminal.exited).toBe(130);
    expect(terminal.printed()).toContain('Setup cancelled. Saved so far: model local/mock.');
    const config = await readFile(join(home.path, 'config.json'), 'utf8');
    expect(JSON.parse(config)).toMatchObject({ agents: { defaults: { model: 'local/mock' } } });
  },
);

test.skipIf(absent !== undefined)('asks in one line how much it should ask', async () => {
  await using home = await temporaryHome();
  await using server = await startLlmServer({ apiKey: 'the-right-key' });
  server.respond(() => say('ready'));
  const model = `--model openai/sim --api-key the-right-key --api-base ${server.openaiBase}`;
  const terminal = openTerminal(
    home.path,
    `${model} --no-telegram --no-email --no-lark --no-whatsapp`,
  );
  await terminal.at(
    /How much should it ask you\?[\s\S]*normal[\s\S]*strict[\s\S]*open/,
    DOWN,
    ENTER,
  );
  await terminal.at(/Start nanobot now\?/, CTRL_C);
  await terminal.exited;
  const config = await readFile(join(home.path, 'config.json'), 'utf8');
  expect(JSON.parse(config)).toMatchObject({ tools: { approvals: { owner: 'strict' } } });
});

test.skipIf(absent !== undefined)(
  'asks for a proxy when Telegram cannot be reached, and saves one that works',
  async () => {
    await using home = await temporaryHome();
    await using telegram = await startBotApi();
    await using proxy = await startSocksProxy();
    const apiRoot = telegram.apiRoot.replace('127.0.0.1', 'telegram.test');
    await writeFile(
      join(home.path, 'config.json'),
      JSON.stringify({ version: 1, channels: { telegram: { apiRoot } } }),
      { mode: 0o600 },
    );
    const terminal = openTerminal(home.path, `--telegram ${telegram.token}`);
    await terminal.at(/Which model should answer/, DOWN, DOWN, ENTER);
    await terminal.at(/Proxy for Telegram/, `${proxy.url}`, ENTER);
    await terminal.at(/Telegram accepted it[\s\S]*Waiting up to/, CTRL_C);
    await terminal.exited;
    const saved = JSON.parse(await readFile(join(home.path, 'config.json'), 'utf8'));
    expect(saved.channels.telegram).toMatchObject({ enabled: true, proxy: proxy.url });
  },
);
