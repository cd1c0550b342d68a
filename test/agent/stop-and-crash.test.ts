// What a stop, a shutdown or a kill leaves behind at every point of a turn: one answer, one effect,
// and a thread the provider still takes.

import { describe, expect, it } from 'vitest';
import { TurnCancelled } from '../../src/kernel/bus/bus.ts';
import type { AgentEvent } from '../../src/kernel/message/message.ts';
import { breaksOff, calls, says } from '../support/scripted-model.ts';
import { createRig, messageOf } from './agent-rig.ts';
import { notingTools } from './wire-models.ts';

class ShuttingDown extends Error {
  override readonly name = 'ShuttingDown';
}

/** Kills the process at the first event for which `when` holds: nothing after it happens. */
async function runUntil(
  rig: Awaited<ReturnType<typeof createRig>>,
  texts: readonly string[],
  when: (event: AgentEvent) => boolean,
): Promise<void> {
  const context = await rig.agent.prepare(...rig.place);
  const turn = rig.agent.run(rig.inputOf(1, texts), context, new AbortController().signal);
  for (;;) {
    const step = await turn.next();
    if (step.done === true) throw new Error('the turn ended before the kill');
    if (when(step.value)) break;
  }
  await rig.restart();
}

it('a call with effects is on the disk before it begins, and its result before anything follows', async () => {
  const { tools } = notingTools();
  const rig = await createRig({ tools });
  const { sessions } = rig;
  const append = sessions.append.bind(sessions);
  const written: string[] = [];
  const seen: typeof append = (session, entries, options) => {
    for (const { role } of entries) written.push(`${role} ${options.durable}`);
    return append(session, entries, options);
  };
  Object.assign(sessions, { append: seen });
  rig.model.script(calls([{ name: 'look' }]), calls([{ name: 'pay' }]), says('Paid.'));
  await rig.ask(1, 'pay');
  expect(written).toEqual([
    ...['user false', 'assistant false', 'tool false'],
    ...['assistant true', 'tool true', 'assistant false', 'turn_end true'],
  ]);
});

describe('a turn that runs again after a kill', () => {
  it('whose end is recorded gives its answer without asking the model', async () => {
    const rig = await createRig();
    rig.model.script(says('Once.'));
    const first = await rig.ask(1, 'go');
    await rig.restart();
    expect(await rig.ask(1, 'go')).toEqual(first);
    rig.model.assertDone();
  });

  it('while the model wrote asks again, with the question recorded once', async () => {
    const rig = await createRig();
    rig.model.script(says('lost'), says('Kept.'));
    await runUntil(rig, ['go'], ({ type }) => type === 'text_delta');
    expect((await rig.ask(1, 'go')).answers).toEqual(['Kept.']);
    expect(rig.model.requests[1]?.messages).toEqual([{ role: 'user', text: 'go' }]);
    rig.model.assertDone();
  });

  it('after a tool had its effect does not run it again', async () => {
    const { ran, tools } = notingTools();
    const rig = await createRig({ tools });
    rig.model.script(calls([{ name: 'pay' }], 'Paying.'), says('Paid.'));
    await runUntil(rig, ['pay'], ({ type }) => type === 'tool_finished');
    expect((await rig.ask(1, 'pay')).answers).toEqual(['Paying.\n\nPaid.']);
    expect(ran).toEqual(['pay']);
    rig.model.assertDone();
  });

  it('while a tool with effects ran tells the model that the outcome is unknown', async () => {
    const { ran, tools } = notingTools();
    const pay = {
      name: 'pay',
      access: 'write' as const,
      run: () => {
        ran.push('pay');
        return new Promise<string>(() => undefined);
      },
    };
    const rig = await createRig({ tools: [pay, ...tools.filter(({ name }) => name !== 'pay')] });
    const begun = Promise.withResolvers<void>();
    rig.model.script(
      calls([{ name: 'look' }, { name: 'pay' }, { name: 'post' }]),
      says('I have to check.'),
    );
    const context = await rig.agent.prepare(...rig.place);
    const turn = rig.agent.run(rig.inputOf(1, ['pay']), context, new AbortController().signal);
    void (async () => {
      for (;;) {
        const { value } = await turn.next();
        if (value && 'type' in value && value.type === 'tool_started' && value.name === 'pay') {
          begun.resolve();
        }
      }
    })();
    await begun.promise;
    while (!ran.includes('pay')) await rig.clock.advance(0);
    await rig.restart();
    expect((await rig.ask(1, 'pay')).answers).toEqual(['I have to check.']);
    expect(ran).toEqual(['look', 'pay']);
    const results = rig.model.requests[1]?.messages.filter(({ role }) => role === 'tool');
    expect(results?.map(({ text }) => text)).toEqual([
      'look done',
      '[outcome unknown: the process stopped while this ran]',
      '[not run: the process stopped before this call began]',
    ]);
    rig.model.assertDone();
  });

  it('while a tool ran that is not there any more says that the outcome is unknown', async () => {
    let isThere = true;
    const begun = Promise.withResolvers<void>();
    const run = () => {
      begun.resolve();
      return new Promise<string>(() => undefined);
    };
    const isAvailable = () => isThere;
    const rig = await createRig({
      tools: [{ name: 'order', access: 'execute', isAvailable, run }],
    });
    rig.model.script(calls([{ name: 'order' }]), says('I have to check.'));
    const stop = new AbortController();
    const running = rig.run(rig.inputOf(1, ['order']), stop.signal).catch(() => undefined);
    await begun.promise;
    isThere = false;
    await rig.restart();
    expect((await rig.ask(1, 'order')).answers).toEqual(['I have to check.']);
    const entries = await rig.transcript();
    expect(entries.find(({ role }) => role === 'tool')).toMatchObject({ status: 'unknown' });
    stop.abort();
    await running;
  });

  it('before a read began simply reads', async () => {
    const { ran, tools } = notingTools();
    const rig = await createRig({ tools });
    rig.model.script(calls([{ name: 'look' }]), says('Seen.'));
    await runUntil(rig, ['look'], ({ type }) => type === 'model_called');
    expect((await rig.ask(1, 'look')).answers).toEqual(['Seen.']);
    expect(ran).toEqual(['look']);
    rig.model.assertDone();
  });

  it('after the answer but before its end was recorded gives that answer', async () => {
    const rig = await createRig();
    rig.model.script(says('Once.'));
    await runUntil(rig, ['go'], ({ type }) => type === 'model_called');
    expect(await rig.ask(1, 'go')).toEqual({
      kind: 'answered',
      answers: ['Once.'],
      throughSeq: 1,
    });
    rig.model.assertDone();
  });

  it('with a follower that came meanwhile answers both', async () => {
    const { ran, tools } = notingTools();
    const rig = await createRig({ tools });
    rig.model.script(calls([{ name: 'pay' }]), says('Both.'));
    await runUntil(rig, ['pay'], ({ type }) => type === 'tool_finished');
    const { outcome } = await rig.run(rig.inputOf(1, ['pay', 'and hurry']));
    expect(outcome).toEqual({ kind: 'answered', answers: ['Both.'], throughSeq: 2 });
    expect(rig.model.requests[1]?.messages.at(-1)?.text).toContain('and hurry');
    expect(ran).toEqual(['pay']);
  });

  it('with its first message alone keeps the answer that was given to its followers too', async () => {
    const rig = await createRig();
    rig.model.script(says('To both.'));
    await runUntil(rig, ['one', 'two'], ({ type }) => type === 'model_called');
    const both = { kind: 'answered', answers: ['To both.'], throughSeq: 2 };
    expect(await rig.ask(1, 'one')).toEqual(both);
    await rig.restart();
    expect(await rig.ask(1, 'one')).toEqual(both);
    rig.model.assertDone();
  });

  it('with its first message alone goes on with the tools its followers led to', async () => {
    const { ran, tools } = notingTools();
    const rig = await createRig({ tools });
    rig.model.script(calls([{ name: 'pay' }]), says('To both.'));
    await runUntil(rig, ['one', 'pay two'], ({ type }) => type === 'tool_finished');
    expect(await rig.ask(1, 'one')).toEqual({
      kind: 'answered',
      answers: ['To both.'],
      throughSeq: 2,
    });
    const asked = rig.model.requests[1]?.messages.map(({ role, text }) => [role, text]);
    expect(asked).toEqual([
      ['user', expect.stringMatching(/one.*pay two/s)],
      ['assistant', ''],
      ['tool', 'pay done'],
    ]);
    expect(ran).toEqual(['pay']);
    rig.model.assertDone();
  });

  it('with its first message alone does nothing more of what its followers might have had done', async () => {
    const { ran, tools } = notingTools();
    const rig = await createRig({ tools });
    rig.model.script(calls([{ name: 'pay' }]), calls([{ name: 'post' }]), says('To both.'));
    await runUntil(rig, ['one', 'pay two'], ({ type }) => type === 'tool_finished');
    expect((await rig.ask(1, 'one')).answers).toEqual(['To both.']);
    expect(ran).toEqual(['pay']);
    expect(rig.model.requests.at(-1)?.messages.at(-1)?.text).toContain('Permission denied');
  });

  it('leaves a follower that no answer was given to, recorded or not, to its own turn', async () => {
    const rig = await createRig();
    rig.model.script(says('lost'), says('To one.'), says('To two.'));
    await runUntil(rig, ['one', 'two'], ({ type }) => type === 'text_delta');
    await runUntil(rig, ['one'], ({ type }) => type === 'model_called');
    expect(await rig.ask(1, 'one')).toMatchObject({ answers: ['To one.'], throughSeq: 1 });
    expect(await rig.ask(2, 'two')).toMatchObject({ answers: ['To two.'], throughSeq: 2 });
    const texts = rig.model.requests.map(({ messages }) => messages.map(({ text }) => text));
    expect(texts.slice(1)).toEqual([['one'], ['one', 'To one.', 'two']]);
    rig.model.assertDone();
  });

  it('with a text already sent to the chat sends it under the same number', async () => {
    const say = {
      name: 'message',
      access: 'read' as const,
      async run(_input: unknown, context: { say(text: string): Promise<void> }) {
        await context.say('one moment');
        return 'sent';
      },
    };
    const rig = await createRig({ tools: [say] });
    rig.model.script(calls([{ name: 'message' }]), says('Done.'));
    await runUntil(rig, ['go'], ({ type }) => type === 'tool_started');
    await rig.ask(1, 'go');
    expect(new Set(rig.said.map(({ ordinal }) => ordinal)).size).toBe(1);
  });

  it('counts the rounds it had used before', async () => {
    const { tools } = notingTools();
    const rig = await createRig({ tools, settings: { maxToolIterations: 2 } });
    const look = calls([{ name: 'look' }]);
    rig.model.script(look, look, says('Enough.'));
    let finished = 0;
    await runUntil(rig, ['go'], ({ type }) => {
      finished += type === 'tool_finished' ? 1 : 0;
      return finished === 2;
    });
    expect((await rig.ask(1, 'go')).answers).toEqual(['Enough.']);
    expect(rig.model.requests[2]).toMatchObject({ toolChoice: 'none' });
    rig.model.assertDone();
  });
});

describe('a stop', () => {
  const stop = () => {
    const controller = new AbortController();
    return { signal: controller.signal, now: () => controller.abort(new TurnCancelled('stop')) };
  };

  it('before anything was written leaves nothing to say, and the chat goes on', async () => {
    const rig = await createRig();
    const { signal, now } = stop();
    now();
    const { outcome } = await rig.run(rig.inputOf(1, ['go']), signal);
    expect(outcome).toMatchObject({ kind: 'stopped', answers: [] });
    rig.model.script(says('Here.'));
    expect((await rig.ask(2, 'hello?')).answers).toEqual(['Here.']);
    rig.model.assertDone();
  });

  it('while the model writes keeps what was shown and tells the model later', async () => {
    const rig = await createRig();
    const { signal, now } = stop();
    rig.model.script(breaksOff('Once upon a time', 'hangs'), says('Sure.'));
    const { outcome } = await rig.run(rig.inputOf(1, ['a story']), signal, (event) => {
      if (event.type === 'text_delta') now();
    });
    expect(outcome).toEqual({ kind: 'stopped', answers: ['Once upon a time'], throughSeq: 1 });
    await rig.ask(2, 'shorter please');
    expect(rig.model.requests[1]?.messages.map(({ text }) => text)).toEqual([
      'a story',
      'Once upon a time',
      '[The person stopped the previous answer.]\n\nshorter please',
    ]);
    rig.model.assertDone();
  });

  it('while a model ignores it ends the turn all the same', async () => {
    const rig = await createRig();
    const { signal, now } = stop();
    rig.model.script(async function* () {
      yield { type: 'text', delta: 'I go on' };
      await new Promise(() => undefined);
    });
    const { outcome } = await rig.run(rig.inputOf(1, ['go']), signal, (event) => {
      if (event.type === 'text_delta') now();
    });
    expect(outcome.kind).toBe('stopped');
  });

  it('while a tool runs lets no further tool begin', async () => {
    const { ran, tools } = notingTools();
    const rig = await createRig({ tools });
    const { signal, now } = stop();
    rig.model.script(calls([{ name: 'pay' }, { name: 'post' }]), says('Hm.'));
    const { outcome } = await rig.run(rig.inputOf(1, ['go']), signal, (event) => {
      if (event.type === 'tool_finished') now();
    });
    expect(outcome.kind).toBe('stopped');
    expect(ran).toEqual(['pay']);
    await rig.ask(2, 'what happened?');
    const results = rig.model.requests[1]?.messages.filter(({ role }) => role === 'tool');
    expect(results?.map(({ text }) => text)).toEqual([
      'pay done',
      '[not run: the turn was stopped before this call began]',
    ]);
    rig.model.assertDone();
  });

  it('between two rounds asks the model no more', async () => {
    const { tools } = notingTools();
    const rig = await createRig({ tools });
    const { signal, now } = stop();
    rig.model.script(calls([{ name: 'look' }]));
    let asked = 0;
    const steer = async () => {
      asked += 1;
      if (asked === 2) now();
      return [];
    };
    const { outcome } = await rig.run(rig.inputOf(1, ['go'], { steer }), signal);
    expect(outcome.kind).toBe('stopped');
    rig.model.assertDone();
  });
});

describe('a shutdown', () => {
  it('throws its reason, and the turn is answered after the restart', async () => {
    const rig = await createRig();
    const controller = new AbortController();
    rig.model.script(breaksOff('half', 'hangs'), says('Whole.'));
    const running = rig.run(rig.inputOf(1, ['go']), controller.signal, (event) => {
      if (event.type === 'text_delta') controller.abort(new ShuttingDown());
    });
    await expect(running).rejects.toThrow(ShuttingDown);
    await rig.restart();
    expect((await rig.ask(1, 'go')).answers).toEqual(['Whole.']);
  });

  it('during a tool that can be told to stop leaves its outcome unknown', async () => {
    const rig = await createRig({
      tools: [
        {
          name: 'pay',
          access: 'write',
          run: (_input, { signal }) =>
            new Promise((_resolve, reject) => {
              signal.addEventListener('abort', () => reject(new Error('cancelled')));
            }),
        },
      ],
    });
    const controller = new AbortController();
    rig.model.script(calls([{ name: 'pay' }]), says('I will check.'));
    const running = rig.run(rig.inputOf(1, ['pay']), controller.signal, (event) => {
      if (event.type === 'tool_started') setImmediate(() => controller.abort(new ShuttingDown()));
    });
    await expect(running).rejects.toThrow(ShuttingDown);
    await rig.restart();
    expect((await rig.ask(1, 'pay')).answers).toEqual(['I will check.']);
    expect(rig.model.requests[1]?.messages.at(-1)?.text).toContain('outcome unknown');
  });

  it('after steering loses no message', async () => {
    const { tools } = notingTools();
    const rig = await createRig({ tools });
    const controller = new AbortController();
    rig.model.script(calls([{ name: 'look' }]), breaksOff('half', 'hangs'), says('All.'));
    const queue = [[], [messageOf(2, 'more')]];
    const input = rig.inputOf(1, ['go'], { steer: async () => queue.shift() ?? [] });
    const running = rig.run(input, controller.signal, (event) => {
      if (event.type === 'text_delta') controller.abort(new ShuttingDown());
    });
    await expect(running).rejects.toThrow(ShuttingDown);
    await rig.restart();
    const { outcome } = await rig.run(rig.inputOf(1, ['go', 'more']));
    expect(outcome).toMatchObject({ answers: ['All.'], throughSeq: 2 });
    const texts = rig.model.requests[2]?.messages.map(({ text }) => text).join('\n') ?? '';
    expect(texts.match(/more/g)).toHaveLength(1);
    rig.model.assertDone();
  });
});
