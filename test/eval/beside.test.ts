// Evaluations and replays beside the running gateway of the same home: every call counts in the gateway's
// budgets and figures, and what could get in its way is refused.

import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { boot } from '../../src/boot.ts';
import { openHome } from '../../src/kernel/config/files/first-run.ts';
import { say } from '../support/llm-server.ts';
import { createEvalRig } from './eval-rig.ts';

it('evaluates and replays beside the gateway, in its budgets, and leaves local models to it', async () => {
  await using rig = await createEvalRig({
    limits: { budget: { totalTokensPerDay: 20_000 } },
  });
  const { home, server } = rig;
  const usage = { input: 1000, output: 10 };
  server.respond(() => ({ ...say('Noted.'), usage }));
  const env = { NANOBOT_HOME: home.root, HOME: home.root, PATH: process.env['PATH'] ?? '' };
  await using gateway = await boot((await openHome(home, env)).loaded, {
    ...{ home, env, channels: [], http: true, foreground: () => undefined },
  });
  const stopping = new AbortController();
  const running = gateway.run(stopping.signal);
  const { terminal } = gateway;
  await terminal.submit({ chat: 'diary', clientId: 'c1', text: 'Note the code 7' });
  for await (const event of terminal.events('diary', 0, stopping.signal)) {
    if (event.type === 'said' && event.from === 'agent') break;
  }

  const evaluated = await rig.cli('eval', 'hanoi', '--samples', '3', '--json');
  expect(evaluated.code, evaluated.stderr).toBe(0);
  const replayed = await rig.cli('replay', 'terminal:diary', '--model', 'openai/other');
  expect(replayed.code, replayed.stderr).toBe(0);
  expect(replayed.stdout).toContain('the same');
  const calls = async () =>
    (await readFile(home.metrics, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ role }) => role !== undefined)
      .map(({ role, model }) => [role, model]);
  await expect
    .poll(calls)
    .toEqual([
      ['turn', 'openai/sim'],
      ...[1, 2, 3].map(() => ['eval', 'openai/sim']),
      ['eval', 'openai/other'],
    ]);

  const beyond = await rig.cli('eval', 'hanoi', '--samples', '40', '--json');
  expect([beyond.code, JSON.parse(beyond.stdout).status]).toEqual([1, 'partial']);
  expect(beyond.stderr).toMatch(/partial: .*budget/i);
  // It is the gateway that has nothing left: its own people are told so.
  const { requests } = server;
  const before = requests.length;
  await terminal.submit({ chat: 'diary', clientId: 'c2', text: 'And 8' });
  const texts: string[] = [];
  for await (const event of terminal.events('diary', 0, stopping.signal)) {
    if (event.type !== 'said' || event.from !== 'agent' || event.ended !== undefined) continue;
    texts.push(event.text);
    if (texts.length === 2) break;
  }
  expect(texts.at(-1)).toMatch(/budget|used up/i);
  expect(requests.length).toBe(before);

  const local = await rig.cli('eval', 'hanoi', '--samples', '1', '--model', 'ollama/llama3');
  expect(local.code).not.toBe(0);
  expect(local.stderr).toContain('stop the gateway first');
  expect((await rig.cli('tune')).stderr).toContain('already uses');
  stopping.abort();
  await running;
});
