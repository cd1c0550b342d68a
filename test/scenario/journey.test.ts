// How much of the source a person's message runs through: counted by V8 in the whole program, between a
// Telegram update and its reply in a gateway that has answered before. A stranger has to open these files.

import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { startBotApi } from '../support/bot-api.ts';
import type { Coverage } from '../support/coverage-preload.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { startLlmServer } from '../support/llm-server.ts';

const ADA = 1001;
/** Run instead of the package: its bundle does not tell which source a function is from. */
const SOURCES = join(import.meta.dirname, '../..');
const PRELOAD = join(import.meta.dirname, '../support/coverage-preload.ts');
/**
 * Of a gateway with Telegram alone and defaults otherwise. Four of them are loaded by work in the
 * background within the first minute, on a slow machine before the files are counted.
 */
const MAX_LOADED = 359;
const MAX_RUN = 172;

it(`loads at most ${MAX_LOADED} source files, and runs at most ${MAX_RUN} between a message and its reply`, async () => {
  await using telegram = await startBotApi();
  await using model = await startLlmServer();
  await using home = await makeTestHome(
    {
      agents: { defaults: { model: 'openai/sim-1' } },
      gateway: { port: 0 },
      coalesce: { quietMs: 0, continuationMs: 0 },
      providers: { openai: { apiKey: 'sk-journey', apiBase: model.openaiBase } },
      channels: {
        telegram: {
          ...{ enabled: true, token: telegram.token, apiRoot: telegram.apiRoot },
          allowFrom: [String(ADA)],
        },
      },
    },
    SOURCES,
  );
  const file = join(home.path, 'coverage.json');
  const gateway = await home.start({
    NODE_OPTIONS: `--import ${pathToFileURL(PRELOAD)}`,
    NANOBOT_TEST_COVERAGE: file,
  });
  const replies = () => telegram.chat(ADA).messages.filter(({ from }) => from === 'bot').length;
  const answered = async (words: string) => {
    const before = replies();
    telegram.say(ADA, words);
    await expect.poll(replies).toBeGreaterThan(before);
  };
  const covered = async (): Promise<Coverage> => {
    process.kill(gateway.pid, 'SIGUSR2');
    await expect.poll(() => readFile(file, 'utf8').catch(() => '')).not.toBe('');
    const coverage: Coverage = JSON.parse(await readFile(file, 'utf8'));
    await rm(file);
    return coverage;
  };
  await answered('Hello');
  await answered('Hello again');
  await covered();
  await answered('What is the way of a message?');
  const { ran: first, loaded } = await covered();
  await answered('And of the next one?');
  // What only one of two messages met is work in the background, which happened to fall into its time.
  const also = new Set((await covered()).ran);
  const ran = first.filter((file) => also.has(file));
  console.info(
    `${loaded.length} source files are loaded; these ${ran.length} run:\n${ran.join('\n')}`,
  );
  expect(ran).toContain('kernel/turns/dispatcher.ts');
  // What nobody uses is not loaded.
  expect(loaded).not.toContain('features/workflows/work.ts');
  expect(loaded).not.toContain('features/workflows/rules/liquid.ts');
  expect(loaded).not.toContain('kernel/bus/store/postgres/store.ts');
  expect(ran.length).toBeLessThanOrEqual(MAX_RUN);
  expect(loaded.length).toBeLessThanOrEqual(MAX_LOADED);
});
