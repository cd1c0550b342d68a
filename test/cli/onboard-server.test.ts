// Onboarding of a model server with an address of its own, as the person at the keyboard answers it.

import { expect, test } from 'vitest';
import { settle } from '../../src/cli/onboard/asker.ts';

import { createTerminal } from '../../src/cli/terminal.ts';
import type { Asker } from '../../src/features/setup/asker.ts';
import { setUpModel } from '../../src/features/setup/model-step.ts';
import { loadConfig } from '../../src/kernel/config/files/config-file.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { say, startLlmServer } from '../support/llm-server.ts';
import { temporaryHome } from './run-nanobot.ts';

test('is proved with its address, model and key before it is saved', async () => {
  await using server = await startLlmServer({ apiKey: 'right', models: ['qwen3'] });
  await using home = await temporaryHome();
  await home.writeConfig({ version: 1 });
  server.respond(() => say('ready'));
  const keys = ['wrong', 'right'];
  const warnings: string[] = [];
  const asker: Asker = {
    interactive: true,
    text: async ({ flag }) => (flag === '--api-base' ? server.openaiBase : 'qwen3'),
    secret: async () => keys.shift() ?? '',
    choose: async (_message, choices, otherwise) =>
      choices.find(({ value }) => value === 'server')?.value ?? otherwise,
    confirm: async (_message, otherwise) => otherwise,
    during: (_message, work) => work(),
    say: () => {},
    warn: (text) => void warnings.push(text),
    link: () => {},
    logIn: () => Promise.reject(new Error('no account is linked here')),
    untilStopped: (work) => work(new AbortController().signal),
    later: '',
  };
  const homeFiles = homeOf({ NANOBOT_HOME: home.path });
  const terminal = { ...createTerminal(process), env: {}, home: homeFiles };
  await settle(asker, 'The model', () => setUpModel(terminal, asker, {}));
  expect(warnings).toHaveLength(1);
  const { agents, providers } = (await loadConfig(homeFiles, {})).config;
  expect(agents.defaults.model).toBe('local/qwen3');
  expect(providers.local).toMatchObject({ apiKey: 'right', apiBase: server.openaiBase });
});
