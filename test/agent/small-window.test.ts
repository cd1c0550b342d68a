// A model with a small window of context: which tools it is described, and that a conversation still
// fits beside them.

import { describe, expect, it } from 'vitest';
import type { CompactionPolicy } from '../../src/agent/rules/compaction.ts';
import { textTokens, toolsWithRoom } from '../../src/agent/rules/tokens.ts';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import { campaign } from '../support/campaign.ts';
import { calls, type ScriptedCall, type ScriptedRequest, says } from '../support/scripted-model.ts';
import { createWorkspace } from '../tools/workspace-fixture.ts';
import { createRig } from './agent-rig.ts';

it('describes what is needed most of all our tools where not all have room', async () => {
  const { toolbox } = await createWorkspace();
  const { specs } = toolbox.offered(ALL_RIGHTS);
  expect(toolsWithRoom(specs, 32_000)).toBe(specs);
  const few = toolsWithRoom(specs, 2048);
  const names = few.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['read_file', 'write_file', 'recall', 'message']));
  const told = few.map(({ jsonChars: _, ...spec }) => spec);
  expect(textTokens(JSON.stringify(told))).toBeLessThan(8192 / 4);
  expect(specs.filter(({ name }) => names.includes(name))).toEqual(few);
});

it('leaves room for the conversation beside any number of tools', async () => {
  const tools = Array.from({ length: 300 }, (_, n) => ({
    name: `tool_number_${n}`,
    access: 'read' as const,
    run: async () => 'done',
  }));
  const rig = await createRig({ contextTokens: 8192, local: true, tools });
  rig.model.script(says('noted'), says('blue'));
  const rest = 'and so on and so forth '.repeat(40);
  await rig.ask(1, `my door is blue ${rest} and that was all`);
  await rig.ask(2, 'what colour is my door?');
  const request = rig.model.requests[1];
  expect(JSON.stringify(request?.messages)).toContain(`blue ${rest} and that`);
  expect(request?.tools.length).toBeGreaterThan(10);
  expect(JSON.stringify(request).length / 4).toBeLessThan(8192);
});

const TURNS = campaign({ short: 100, full: 300 });
const SHORT = 'we saw a heron by the canal and it rained. '.repeat(5);
const isForSummary = ({ system }: ScriptedRequest) =>
  system[0]?.text.startsWith('You keep the notes') === true;
const shown = ({ messages }: ScriptedRequest) => messages.map(({ text }) => text).join('\n');

/** Sums up what the record says: every fact of it, each on a line. */
function summing(request: ScriptedRequest): string {
  const facts = shown(request).match(/locker \d+ is [A-Z]+-\d+/g) ?? [];
  return `Facts:\n${[...new Set(facts)].join('\n')}\nTask: talk about the canal.`;
}

/** As many tools as leave room for no more, and long files for the prompt. */
async function crowded(contextTokens: number, compaction: Partial<CompactionPolicy>) {
  const tools = Array.from({ length: 60 }, (_, n) => ({
    name: `tool_number_${n}_${'with_a_long_name_'.repeat(8)}`,
    access: 'read' as const,
    run: async () => 'done',
  }));
  const page = { name: 'read_page', access: 'read' as const, run: async () => 'x'.repeat(9000) };
  const rig = await createRig({
    contextTokens,
    tools: [page, ...tools],
    readsResults: true,
    compaction,
  });
  await rig.write('AGENTS.md', 'Always be kind to herons and to people.\n'.repeat(400));
  return rig;
}

describe.each(['summary', 'lossless'] as const)('the engine %s', (engine) => {
  it.each([
    { contextTokens: 8000, readsPages: false, calls: 60 },
    { contextTokens: 16_000, readsPages: false, calls: 30 },
    { contextTokens: 16_000, readsPages: true, calls: 100 },
  ])('sums up in steps of many turns: %o', async ({ contextTokens, readsPages, calls: most }) => {
    const rig = await crowded(contextTokens, { engine });
    let inTurn = 0;
    const answer: ScriptedCall = (request, signal) => {
      if (isForSummary(request)) return says(summing(request))(request, signal);
      inTurn += 1;
      const reads = readsPages && inTurn === 1;
      const call = reads ? calls([{ name: 'read_page' }]) : says(`Noted: ${SHORT}`);
      return call(request, signal);
    };
    const missing: number[] = [];
    for (let turn = 1; turn <= TURNS; turn += 1) {
      inTurn = 0;
      rig.model.script(...Array.from({ length: 12 }, () => answer));
      const fact = turn <= 30 ? `locker ${turn} is AB-${turn}00` : 'nothing new';
      await rig.ask(turn, `turn ${turn}: ${fact}. ${SHORT}`);
      const request = rig.model.requests.findLast((one) => !isForSummary(one));
      if (request === undefined) throw new Error('not asked');
      expect(JSON.stringify(request).length / 4).toBeLessThan(contextTokens);
      if (turn > 1 && !shown(request).includes(`turn ${turn - 1}: `)) missing.push(turn);
    }
    const summaries = rig.model.requests.filter(isForSummary).length;
    expect(missing).toEqual([]);
    expect(summaries).toBeGreaterThan(1);
    expect(summaries).toBeLessThan(most);
    const known = rig.model.requests.findLast((one) => !isForSummary(one));
    const facts = new Set(shown(known as ScriptedRequest).match(/locker \d+ is AB-\d+/g));
    if (engine === 'summary') expect(facts.size).toBe(30);
  });
});

it('refuses a window that does not hold the prompt and the last exchange, with the remedy', async () => {
  const rig = await createRig({ contextTokens: 300 });
  rig.model.script(says('hello'));
  const { kind, answers } = await rig.ask(1, 'a question of some length. '.repeat(20));
  expect(kind).toBe('failed');
  expect(answers.join()).toMatch(/test\/scripted \(300 tokens\) is too small.*maxContextTokens/s);
  expect(rig.model.requests).toEqual([]);
});

it('names no tool in the summary that the call does not offer', async () => {
  const rig = await createRig({ compaction: { keepTokens: 0, summaryTokens: 300 } });
  rig.model.script(
    says(`one ${SHORT.repeat(9)}`),
    says('two'),
    says('Task: the canal.'),
    says('three'),
  );
  await rig.ask(1, `first ${SHORT.repeat(9)}`);
  await rig.ask(2, 'second');
  const { message } = rig.inputOf(9, ['?']).messages[0];
  expect(await rig.agent.compact(rig.place[0], message, {})).toMatchObject({
    kind: 'compacted',
  });
  await rig.ask(3, 'third');
  const last = rig.model.requests.at(-1);
  expect(last === undefined ? '' : shown(last)).toContain('Summary of the earlier conversation');
  expect(JSON.stringify(last)).not.toContain('read_earlier');
});
