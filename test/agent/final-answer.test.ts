// `agents.defaults.finalAnswer: separate`: what is said while working is never the answer, and a kill
// between the work and the answer costs neither of them.

import { describe, expect, it } from 'vitest';
import { ProviderError } from '../../src/kernel/message/errors.ts';
import { breaksOff, calls, says } from '../support/scripted-model.ts';
import { createRig, messageOf, textOf } from './agent-rig.ts';

const looks = () => ({
  name: 'look',
  access: 'read' as const,
  run: async () => 'the door is open',
});
const create = () => createRig({ tools: [looks()], settings: { finalAnswer: 'separate' } });

describe('a separate final answer', () => {
  it('is written without tools over all results, and is all that the person is shown', async () => {
    const rig = await create();
    const usage = { inputTokens: 10, outputTokens: 1, cachedTokens: 0 };
    rig.model.script(
      calls([{ name: 'look' }], 'Let me look.', { usage }),
      says('I have all I need.', { usage }),
      says('The door is open.', { usage }),
    );
    const { outcome, events } = await rig.run(rig.inputOf(1, ['how is the door?']));
    expect(outcome.answers).toEqual(['The door is open.']);
    const [final, before] = [rig.model.requests.at(-1), rig.model.requests.at(-2)];
    expect(final?.toolChoice).toBe('none');
    expect(JSON.stringify(final?.messages)).toContain('the door is open');
    expect(before?.toolChoice).toBeUndefined();
    const discarded = events.findIndex(({ type }) => type === 'text_discarded');
    expect(textOf(events.slice(discarded))).toBe('The door is open.');
    expect(events.filter(({ type }) => type === 'model_called')).toHaveLength(3);
    rig.model.script(says('You are welcome.'));
    await rig.ask(2, 'thanks');
    const thread = JSON.stringify(rig.model.requests.at(-1)?.messages);
    expect(thread).toContain('The door is open.');
    expect(thread).not.toContain('all I need');
    rig.model.assertDone();
  });

  it('is the first one where no tool was needed', async () => {
    const rig = await create();
    rig.model.script(says('Hello.'));
    const { outcome, events } = await rig.run(rig.inputOf(1, ['hi']));
    expect(outcome.answers).toEqual(['Hello.']);
    expect(textOf(events)).toBe('Hello.');
    rig.model.assertDone();
  });

  it('is all that is done after a kill behind the work; the tool is not run again', async () => {
    const rig = await create();
    rig.model.script(calls([{ name: 'look' }]), says('Done looking.'), breaksOff('The', 'hangs'));
    const context = await rig.agent.prepare(...rig.place);
    const turn = rig.agent.run(rig.inputOf(1, ['look']), context, new AbortController().signal);
    for (let step = await turn.next(); step.done !== true; step = await turn.next()) {
      if (step.value.type === 'text_delta' && step.value.text === 'The') break;
    }
    await rig.restart();
    rig.model.script(says('The door is open.'));
    expect((await rig.ask(1, 'look')).answers).toEqual(['The door is open.']);
    expect(rig.model.requests).toHaveLength(4);
    rig.model.assertDone();
  });

  it('that cannot be had leaves the person what was written while working', async () => {
    const rig = await create();
    const down = new ProviderError('down', {
      failure: { kind: 'server', status: 500 },
      provider: 'test',
      model: 'test/scripted',
      userText: 'The model is down.',
    });
    rig.model.script(calls([{ name: 'look' }]), says('It is open.'), breaksOff('', down));
    expect((await rig.ask(1, 'look')).answers).toEqual(['It is open.\n\nThe model is down.']);
    rig.model.script(calls([{ name: 'look' }]), says('It is open.'), says('  '));
    expect((await rig.ask(2, 'look')).answers).toEqual(['It is open.']);
    rig.model.assertDone();
  });

  it('waits for what the person adds when the work seems done', async () => {
    const rig = await create();
    rig.model.script(
      calls([{ name: 'look' }]),
      says('Seen.'),
      calls([{ name: 'look' }]),
      says('Seen twice.'),
      says('Both are open.'),
    );
    let asked = 0;
    const steer = async () => (++asked === 3 ? [messageOf(2, 'and the window?')] : []);
    const { outcome } = await rig.run(rig.inputOf(1, ['look'], { steer }));
    expect(outcome).toMatchObject({ answers: ['Both are open.'], throughSeq: 2 });
    rig.model.assertDone();
  });
});
