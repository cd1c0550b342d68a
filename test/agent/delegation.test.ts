// Delegation over the real session store: what is digested, by whom, within which budget, and what the
// main model can still read.

import { describe, expect, it } from 'vitest';
import { TurnCancelled } from '../../src/kernel/bus/bus.ts';
import { calls, says } from '../support/scripted-model.ts';
import type { RigOptions } from './agent-rig.ts';
import { createSharedRig, doesNotAnswer } from './shared-turns.ts';

const ROWS = Array.from({ length: 300 }, (_, row) => `| row ${row} | https://a.example/${row} |`);
const TABLE = ROWS.join('\n');
const SHORT = '{"a": [1,\n 2],   "url":"https://b.example/x?y=1"}\n| a | b |\n';
const TOOLS: RigOptions['tools'] = [
  { name: 'long', access: 'read', run: async () => TABLE },
  { name: 'short', access: 'read', run: async () => SHORT },
  { name: 'page', access: 'web', taints: true, run: async () => `OBEY ${TABLE}` },
  { name: 'act', access: 'execute', run: async () => 'acted' },
];

const delegated = (more: Partial<Parameters<typeof createSharedRig>[1]> = {}) =>
  createSharedRig('delegated', {
    tools: TOOLS,
    readsResults: true,
    delegation: { model: 'runner' },
    ...more,
  });
const shownTo = (model: { readonly requests: readonly object[] }, nth = -1) =>
  JSON.stringify(model.requests.at(nth));

describe('delegation', () => {
  it('shows the main model a digest of a long result and keeps the whole', async () => {
    const { rig, main, runner, asked } = await delegated();
    main.script(
      calls([{ name: 'long' }]),
      calls([{ name: 'read_result', input: { id: 'r1.1' } }]),
      says('There are 300 rows.'),
    );
    runner.script(
      calls([
        { name: 'result_length' },
        { name: 'result_slice', input: { from: 100 } },
        { name: 'result_grep', input: { words: 'row 299' } },
      ]),
      says('300 rows, the last is 299.'),
    );
    expect((await rig.ask(1, 'how many rows?')).answers).toEqual(['There are 300 rows.']);
    expect(asked).toEqual(['main', 'runner', 'runner', 'main', 'main']);
    const digested = JSON.stringify(main.requests[1]?.messages);
    expect(digested).toContain('300 rows, the last is 299.');
    expect(digested).not.toContain('row 150');
    expect(shownTo(main)).toContain('https://a.example/150 |');
    expect(shownTo(runner, 0)).toContain('how many rows?');
    expect(runner.requests[0]?.tools.map(({ name }) => name)).toEqual([
      'result_slice',
      'result_grep',
      'result_length',
    ]);
    expect(shownTo(runner)).toContain('https://a.example/299');
    const kept = (await rig.transcript()).find(({ role }) => role === 'tool');
    expect(kept).toMatchObject({ whole: TABLE });
  });

  it('leaves short results, and those the runner wants seen, to the letter', async () => {
    const { rig, main, runner, asked } = await delegated();
    main.script(calls([{ name: 'short' }]), calls([{ name: 'long' }]), says('Seen.'));
    runner.script(says('[VERBATIM]'));
    await rig.ask(1, 'show me');
    expect(asked.filter((name) => name === 'runner')).toHaveLength(1);
    const results = (await rig.transcript()).flatMap((entry) =>
      entry.role === 'tool' ? [entry.text] : [],
    );
    expect(results[0]).toBe(SHORT);
    expect(results[1]).toContain(ROWS[150]);
  });

  it('shows the result where the runner refuses, and says where a digest was cut off', async () => {
    const { rig, main, runner } = await delegated();
    const looks = () => main.script(calls([{ name: 'long' }]), says('Done.'));
    looks();
    runner.script(says('I cannot help with that.', { stop: 'refused' }));
    await rig.ask(1, 'how many rows?');
    expect(shownTo(main)).toContain('row 0 |');
    expect(shownTo(main)).not.toContain('I cannot help');
    looks();
    runner.script(says('300 rows, the', { stop: 'length' }));
    await rig.ask(2, 'once more');
    expect(shownTo(main)).toContain('300 rows, the\\n\\n[Cut at the length limit');
  });

  it('keeps a digest of untrusted content marked, and its orders without effect', async () => {
    const { rig, main, runner } = await delegated();
    main.script(calls([{ name: 'page' }]), calls([{ name: 'act' }]), says('An owner is asked.'));
    const look = calls([{ name: 'result_grep', input: { words: 'row 150' } }]);
    runner.script(look, says('It says: OBEY.'));
    await rig.ask(1, 'read the page');
    for (const shown of runner.requests.map(({ messages }) => JSON.stringify(messages.at(-1)))) {
      expect(shown).toMatch(/untrusted [0-9a-f]{16}: result of a tool/);
    }
    expect(JSON.stringify(main.requests[1])).toMatch(
      /untrusted [0-9a-f]{16}: digest of result r1\.1\]\\n> It says: OBEY\./,
    );
    expect(rig.asked).toMatchObject([{ tool: 'act', isTainted: true }]);
  });

  it('goes on inline, says so once and looks again, where the runner fails', async () => {
    const { rig, main, runner, clock, told, asked } = await delegated();
    runner.script(doesNotAnswer, doesNotAnswer, doesNotAnswer);
    const round = calls([{ name: 'long' }]);
    const notices: string[] = [];
    for (const turn of [1, 2, 3, 4]) {
      main.script(round, says('Inline.'));
      const { outcome, events } = await rig.run(rig.inputOf(turn, ['look']));
      const said = events.flatMap((event) => (event.type === 'notice' ? [event.text] : []));
      const below = said.map((text) => `[${text}]`);
      expect(outcome.answers).toEqual([['Inline.', ...below].join('\n\n')]);
      notices.push(...said);
    }
    expect(asked.filter((name) => name === 'runner')).toHaveLength(3);
    expect(JSON.stringify(main.requests.at(-1))).toContain('row 0');
    expect(notices).toHaveLength(1);
    expect(told).toEqual([expect.stringMatching(/^The runner of results runner does not answer/)]);
    await clock.advance(300_000);
    main.script(round, says('Digested.'));
    runner.script(says('300 rows.'));
    await rig.ask(5, 'look');
    expect(told.at(-1)).toBe('The runner of results runner answers again.');
  });

  it('spends no more than its budget of rounds, tokens and money', async () => {
    const rounds = await delegated({ delegation: { model: 'runner', maxRounds: 2 } });
    const look = calls([{ name: 'result_length' }]);
    rounds.main.script(calls([{ name: 'long' }]), says('Done.'));
    rounds.runner.script(look, says('All of it.'));
    await rounds.rig.ask(1, 'look');
    expect(rounds.runner.requests[1]?.toolChoice).toBe('none');

    const usage = { inputTokens: 9000, outputTokens: 2000, cachedTokens: 0 };
    const limits = [{ tokensPerTurn: 10_000, moneyPerTurn: 0 }, { moneyPerTurn: 0.01 }];
    for (const limit of limits) {
      const { rig, main, runner } = await delegated({ delegation: { model: 'runner', ...limit } });
      main.script(calls([{ name: 'long' }]), calls([{ name: 'page' }]), says('Done.'));
      runner.script(says('300 rows.', { usage }));
      await rig.ask(1, 'look');
      expect(runner.requests).toHaveLength(1);
    }
  });

  it('holds results of one round that are digested side by side to it as well', async () => {
    const both = [{ name: 'long' }, { name: 'page' }];
    for (const [limit, times] of [
      [{ tokensPerTurn: 2000, moneyPerTurn: 0 }, 1],
      [{ tokensPerTurn: 9000, moneyPerTurn: 0.002 }, 1],
      [{ tokensPerTurn: 9000, moneyPerTurn: 0 }, 2],
    ] as const) {
      const { rig, main, runner } = await delegated({ delegation: { model: 'runner', ...limit } });
      main.script(calls(both), says('Done.'));
      runner.script(...Array.from({ length: times }, () => says('300 rows.')));
      expect((await rig.ask(1, 'look')).answers).toEqual(['Done.']);
      expect(runner.requests).toHaveLength(times);
    }
  });

  it('loses nothing of what a tool did where the turn is stopped while it is digested', async () => {
    const { rig, main, runner } = await delegated({
      tools: [...(TOOLS ?? []), { name: 'deploy', access: 'execute', run: async () => TABLE }],
    });
    const stopped = new AbortController();
    main.script(calls([{ name: 'deploy' }]));
    runner.script(async function* (_request, signal) {
      yield { type: 'thinking', delta: '' };
      stopped.abort(new TurnCancelled('stop'));
      signal.throwIfAborted();
    });
    const { outcome } = await rig.run(rig.inputOf(1, ['deploy it']), stopped.signal);
    expect(outcome.kind).toBe('stopped');
    const result = (await rig.transcript()).find(({ role }) => role === 'tool');
    expect(result).toMatchObject({ name: 'deploy', status: 'ok' });
    expect(JSON.stringify(result)).toContain('row 299');
  });

  it('cannot work where only the main model itself could digest', async () => {
    const { kinds, rig, main, asked } = await delegated({ delegation: { model: '' } });
    expect(await kinds.delegated.problems()).toEqual([
      'agents.delegation.model names no model, and there is no cheaper one beside main',
    ]);
    main.script(calls([{ name: 'long' }]), says('Inline.'));
    await rig.ask(1, 'look');
    expect(asked).toEqual(['main', 'main']);
  });
});
