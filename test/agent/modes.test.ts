// Who speaks before a model call: what a mode decides is recorded and runs like what the main model
// calls, and a turn that was killed goes on from there.

import { describe, expect, it } from 'vitest';
import type { Cue, TurnMode } from '../../src/features/modes/mode.ts';
import type { Modes } from '../../src/features/modes/modes.ts';
import type { Toolbox } from '../../src/tools/tool.ts';
import { calls, says } from '../support/scripted-model.ts';
import { createRig, SESSION, textOf } from './agent-rig.ts';

const by = { model: 'test/router', usage: { inputTokens: 7, outputTokens: 3, cachedTokens: 0 } };
const look = { name: 'look', arguments: '{"at":"x"}' };
const main: Cue = { kind: 'main', main: { tools: 'none', notes: ['[Only write.]'] } };

/** Says its cues in turn; `shown` counts how often it was asked. */
function modeOf(cues: readonly Cue[], more: Partial<TurnMode> = {}) {
  const left = [...cues];
  const opened: string[] = [];
  const modes: Modes = {
    async open(chosen, { toolbox }) {
      opened.push(chosen ?? 'configured');
      return {
        toolbox: withOwn(toolbox),
        // biome-ignore lint/correctness/useYield: it shows nothing of itself
        async *cue() {
          const next = left.shift();
          if (next === undefined) throw new Error('no cue is left');
          return next;
        },
        ...more,
      };
    },
  };
  return { modes, opened, left };
}

/** With a call that is no tool. */
function withOwn(toolbox: Toolbox): Toolbox {
  return {
    ...toolbox,
    bind(name, json) {
      if (name !== 'ask_own') return toolbox.bind(name, json);
      const bound = toolbox.bind('look', json);
      if (bound.kind === 'refused') return bound;
      const run = async () => ({ status: 'ok', text: 'of the mode itself' }) as const;
      return { ...bound, name, run };
    },
  };
}

const rigWith = (modes: Modes, ran: string[] = []) =>
  createRig({
    modes,
    tools: [
      { name: 'look', access: 'read', run: async () => `found ${ran.push('look')}` },
      { name: 'act', access: 'write', run: async () => `done ${ran.push('act')}` },
    ],
  });

describe('a mode', () => {
  it('has tools called by another model, and the main one write without tools', async () => {
    const { modes } = modeOf([{ kind: 'calls', by, calls: [look] }, main]);
    const rig = await rigWith(modes);
    rig.model.script(says('It is there.'));
    expect((await rig.ask(1, 'where?')).answers).toEqual(['It is there.']);
    const [request] = rig.model.requests;
    expect(request?.toolChoice).toBe('none');
    expect(request?.tools.map(({ name }) => name)).toEqual(['called_by_another_model']);
    expect(request?.messages.at(-1)).toMatchObject({ note: '[Only write.]' });
    expect(JSON.stringify(request?.messages)).toContain('found 1');
    const decided = (await rig.transcript()).find(({ role }) => role === 'assistant');
    expect(decided).toMatchObject({
      model: 'test/router',
      usage: by.usage,
      toolCalls: [{ id: 'cue_r1_1', name: 'look' }],
    });
    rig.model.assertDone();
  });

  it('answers by itself, and what is no tool by itself as well', async () => {
    const { modes } = modeOf([
      { kind: 'calls', by, calls: [{ name: 'ask_own', arguments: '{}' }] },
      { kind: 'answer', by, text: 'The whole answer.' },
    ]);
    const rig = await rigWith(modes);
    const { outcome, events } = await rig.run(rig.inputOf(1, ['say it']));
    expect(outcome).toMatchObject({ kind: 'answered', answers: ['The whole answer.'] });
    expect(textOf(events)).toBe('The whole answer.');
    const results = (await rig.transcript()).filter(({ role }) => role === 'tool');
    expect(results).toMatchObject([{ name: 'ask_own', status: 'ok', text: 'of the mode itself' }]);
    expect(rig.model.requests).toEqual([]);
  });

  it('is asked again after a kill only for what was not decided yet', async () => {
    const { modes, left } = modeOf([
      { kind: 'calls', by, calls: [{ name: 'act', arguments: '{}' }] },
      main,
    ]);
    const ran: string[] = [];
    const rig = await rigWith(modes, ran);
    const killed = new AbortController();
    await expect(
      rig.run(rig.inputOf(1, ['do it']), killed.signal, (event) => {
        if (event.type === 'tool_finished') killed.abort(new Error('killed'));
      }),
    ).rejects.toThrow('killed');
    await rig.restart();
    rig.model.script(says('Done once.'));
    expect((await rig.ask(1, 'do it')).answers).toEqual(['Done once.']);
    expect(ran).toEqual(['act']);
    expect(left).toEqual([]);
  });

  it('decides what the main model is shown of a result', async () => {
    const { modes } = modeOf([{ kind: 'calls', by, calls: [look] }, main], {
      shown: async (_call, report) => ({ ...report, text: 'short', whole: report.text }),
    });
    const rig = await rigWith(modes);
    rig.model.script(says('Fine.'));
    await rig.ask(1, 'look');
    expect(JSON.stringify(rig.model.requests)).toContain('short');
    expect(await rig.sessions.load(SESSION)).toContainEqual(
      expect.objectContaining({ role: 'tool', text: 'short' }),
    );
  });

  it('is left out of turns whose helper has its own terms', async () => {
    const { modes, opened } = modeOf([]);
    const rig = await rigWith(modes);
    rig.model.script(calls([{ name: 'look' }]), says('Inline.'));
    const turnLimits = { mayUse: () => true, maxTokens: 100_000, maxMs: 60_000 };
    const { outcome } = await rig.run(rig.inputOf(1, ['help'], { turnLimits }));
    expect(outcome.answers).toEqual(['Inline.']);
    expect(opened).toEqual([]);
  });
});
