// The feature of docs/develop/adding-a-feature.md, installed as the page says: its files are written into a copy of the
// sources, its line is added, and a person uses it over Telegram.

import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startBotApi } from '../support/bot-api.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { startLlmServer } from '../support/llm-server.ts';

const ROOT = join(import.meta.dirname, '../..');
const COPIED = [
  'src',
  'bin',
  'skills',
  'workspace',
  'config',
  'package.json',
  'tsconfig.json',
  'scripts/page.ts',
];
const ADA = 1001;
const DAY_MS = 86_400_000;

const FILE = /`(src\/features\/shopping\/[\w-]+\.ts)`\n\n```ts\n(.*?)```/gs;
const LINE = /In `src\/features\.ts`.*?```ts\n(.*?)```.*?```ts\n(.*?)```/s;

let root = '';

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'nanobot-feature-'));
  for (const name of COPIED) await cp(join(ROOT, name), join(root, name), { recursive: true });
  await mkdir(join(root, 'test/support'), { recursive: true });
  const start = 'test/support/nanobot';
  await cp(join(ROOT, start), join(root, start), { verbatimSymlinks: true });
  await symlink(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  const page = await readFile(join(ROOT, 'docs/develop/adding-a-feature.md'), 'utf8');
  const files = [...page.matchAll(FILE)];
  expect(files).toHaveLength(3);
  for (const [, path = '', text = ''] of files) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  const [, line = '', imported = ''] = LINE.exec(page) ?? [];
  const list = join(root, 'src/features.ts');
  const features = await readFile(list, 'utf8');
  await writeFile(list, `${imported}${features.replace(/\];\n$/, `${line}];\n`)}`);
});

afterAll(() => rm(root, { recursive: true, force: true }));

it('compiles', async () => {
  await promisify(execFile)(process.execPath, [join(ROOT, 'node_modules/.bin/tsc')], { cwd: root });
});

it('has a tool, a chat command, a background task and a setting', async () => {
  await using telegram = await startBotApi();
  await using model = await startLlmServer();
  const config = {
    agents: { defaults: { model: 'openai/sim-1' } },
    gateway: { port: 0 },
    coalesce: { quietMs: 0, continuationMs: 0 },
    providers: { openai: { apiKey: 'sk-feature', apiBase: model.openaiBase } },
    channels: {
      telegram: {
        ...{ enabled: true, token: telegram.token, apiRoot: telegram.apiRoot },
        allowFrom: [String(ADA)],
      },
    },
  };
  await using home = await makeTestHome(config, root);
  // Of sources that are gone afterwards nothing is kept.
  const start = () => home.start({ NODE_COMPILE_CACHE: join(root, 'compiled') });
  const replies = () => telegram.chat(ADA).messages.filter(({ from }) => from === 'bot');
  const answerTo = async (words: string) => {
    const before = replies().length;
    telegram.say(ADA, words);
    await expect.poll(() => replies().length).toBeGreaterThan(before);
    return replies().at(-1)?.text ?? '';
  };

  const first = await start();
  expect(await answerTo('/shopping milk')).toBe('On the list: milk');
  model.script(
    { toolCalls: [{ name: 'shopping_list', arguments: { item: 'bread' } }] },
    { chunks: ['Bread is on it.'] },
  );
  // A live preview may stand there before the answer.
  telegram.say(ADA, 'Put bread on my list');
  await expect.poll(() => replies().at(-1)?.text).toBe('Bread is on it.');
  expect(await answerTo('/shopping')).toBe('bread, milk');
  expect(await first.stop()).toBe(0);

  const store = new DatabaseSync(join(home.path, 'state.db'));
  store
    .prepare("UPDATE key_value SET written_at = ? WHERE scope = 'shopping' AND key LIKE '%milk'")
    .run(Date.now() - 3 * DAY_MS);
  store.close();
  await home.writeConfig({ ...config, shopping: { keepDays: 2 } });
  const second = await start();
  await expect.poll(() => answerTo('/shopping')).toBe('bread');
  await home.writeConfig({ ...config, shopping: { enabled: false } });
  await second.printed(/Start the gateway again for: shopping\.enabled/);
  expect(await second.stop()).toBe(0);

  await home.writeConfig({ ...config, shopping: { keepDays: 0 } });
  await expect(start()).rejects.toThrow(/shopping\.keepDays/);
  await home.writeConfig({ ...config, shopping: { enabled: false } });
  await start();
  const before = replies().length;
  model.script({ chunks: ['No such command.'] });
  telegram.say(ADA, '/shopping');
  await expect.poll(() => replies().length).toBeGreaterThan(before);
  expect(replies().at(-1)?.text).not.toContain('bread');
});
