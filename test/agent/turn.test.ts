// Turns as a person lives them: what is asked, shown, answered and kept.

import { describe, expect, it } from 'vitest';
import { ProviderError, type ProviderFailure } from '../../src/kernel/message/errors.ts';
import type { ModelEvent } from '../../src/providers/provider.ts';
import { breaksOff, calls, type ScriptedCall, says } from '../support/scripted-model.ts';
import { createRig, messageOf, textOf } from './agent-rig.ts';

const time = { name: 'time', access: 'read' as const, run: async () => 'half past ten' };
const failure = (failure: ProviderFailure) =>
  new ProviderError('scripted', {
    failure,
    provider: 'test',
    model: 'scripted',
    userText: `The model failed: ${failure.kind}.`,
  });

describe('a turn', () => {
  it('streams the text as it comes and answers with exactly what was shown', async () => {
    const rig = await createRig();
    rig.model.script(says('Good morning to you.'));
    const { outcome, events } = await rig.run(rig.inputOf(1, ['hello']));
    expect(outcome).toEqual({ kind: 'answered', answers: ['Good morning to you.'], throughSeq: 1 });
    expect(events.filter((event) => event.type === 'text_delta').length).toBeGreaterThan(1);
    expect(textOf(events)).toBe('Good morning to you.');
    // So that the chat shows at once that somebody is at work.
    expect(events[0]).toEqual({ type: 'thinking' });
    rig.model.assertDone();
  });

  it('remembers the conversation, also after a restart', async () => {
    const rig = await createRig();
    rig.model.script(says('Hello Ann.'), says('Ann.'));
    await rig.ask(1, 'I am Ann');
    await rig.restart();
    await rig.ask(2, 'who am I?');
    expect(rig.model.requests[1]?.messages.map(({ text }) => text)).toEqual([
      'I am Ann',
      'Hello Ann.',
      'who am I?',
    ]);
  });

  it('forgets it after a new start, and keeps it on disk', async () => {
    const rig = await createRig();
    rig.model.script(says('Hello Ann.'), says('I do not know.'));
    await rig.ask(1, 'I am Ann');
    await rig.agent.reset((await rig.agent.prepare(...rig.place)).session);
    await rig.ask(2, 'who am I?');
    expect(rig.model.requests[1]?.messages).toEqual([{ role: 'user', text: 'who am I?' }]);
    expect(JSON.stringify(await rig.transcript())).toContain('I am Ann');
  });

  it('sends the whole prompt, the tools and the thread', async () => {
    const rig = await createRig({ tools: [time] });
    await rig.write('AGENTS.md', 'Be kind.');
    await rig.write('CONTEXT.md', 'Lines are short here.');
    rig.state.memory = 'Ann has a cat.';
    rig.model.script(says('Yes.'));
    await rig.ask(1, 'do you know me?');
    const [request] = rig.model.requests;
    const system = request?.system.map(({ text }) => text).join('\n') ?? '';
    for (const part of ['You are nanobot', 'Be kind.', 'Lines are short', 'a cat', '(UTC)']) {
      expect(system).toContain(part);
    }
    expect(rig.model.sent[0]?.messages.at(-1)?.text).toMatch(
      /^\[Thu 2026-01-15 \d\d:\d\d\]\ndo you/,
    );
    expect(request?.tools.map(({ name }) => name)).toEqual(['time']);
    expect(request).toMatchObject({ maxTokens: 4096, temperature: 0.7 });
  });

  it('names the skills of the workspace, and follows no link to one', async () => {
    const rig = await createRig();
    await rig.write('skills/tea/SKILL.md', '---\nname: tea\ndescription: brews tea\n---\nBoil.');
    await rig.write('hidden/SKILL.md', '---\nname: hidden\ndescription: from elsewhere\n---\n');
    await rig.link('../hidden', 'skills/linked');
    rig.model.script(says('Yes.'));
    await rig.ask(1, 'what can you do?');
    const system = rig.model.requests[0]?.system.map(({ text }) => text).join('\n') ?? '';
    expect(system).toContain('- tea: brews tea');
    expect(system).not.toContain('from elsewhere');
    expect(system).not.toContain('Boil.');
  });

  it('takes changed prompt files at the next turn, and the channel’s own context first', async () => {
    const rig = await createRig();
    await rig.write('CONTEXT.md', 'for all');
    rig.model.script(says('a'), says('b'));
    await rig.ask(1, 'one');
    await rig.write('CONTEXT-terminal.md', 'for the terminal');
    await rig.ask(2, 'two');
    const [first, second] = rig.model.requests.map(({ system }) => system[0]?.text);
    expect(first).toContain('for all');
    expect(second).toContain('for the terminal');
    expect(second).not.toContain('for all');
  });

  it('holds changed settings from the next turn on', async () => {
    const rig = await createRig();
    rig.model.script(says('a'), says('b'));
    await rig.ask(1, 'one');
    rig.state.settings = { temperature: 0, maxTokens: 99 };
    await rig.ask(2, 'two');
    const asked = rig.model.requests.map(({ temperature, maxTokens }) => [temperature, maxTokens]);
    expect(asked).toEqual([
      [0.7, 4096],
      [0, 99],
    ]);
  });

  it('does not show the model a file from outside through a link', async () => {
    const rig = await createRig();
    await rig.write('../secret.txt', 'the key');
    await rig.link('../secret.txt', 'AGENTS.md');
    rig.model.script(says('a'));
    await rig.ask(1, 'one');
    expect(JSON.stringify(rig.model.requests)).not.toContain('the key');
  });

  it('reads rapid messages as one question with its pace', async () => {
    const rig = await createRig();
    rig.model.script(says('a'));
    const { outcome } = await rig.run(rig.inputOf(1, ['hi', 'are you there?']));
    expect(rig.model.requests[0]?.messages).toEqual([
      { role: 'user', text: 'hi\n\n[+100ms] are you there?' },
    ]);
    expect(outcome.throughSeq).toBe(2);
  });
});

describe('tools', () => {
  it('are run and their results shown to the model; the person sees all that was written', async () => {
    const rig = await createRig({ tools: [time] });
    rig.model.script(calls([{ name: 'time' }], 'Let me look.'), says('It is half past ten.'));
    const { outcome, events } = await rig.run(rig.inputOf(1, ['what time is it?']));
    expect(outcome.answers).toEqual(['Let me look.\n\nIt is half past ten.']);
    expect(rig.model.requests[1]?.messages.at(-1)).toMatchObject({
      role: 'tool',
      text: 'half past ten',
      failed: false,
    });
    expect(events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['tool_started', 'tool_finished', 'model_called']),
    );
    rig.model.assertDone();
  });

  it('that only read run side by side, the others in order; results keep the order of calls', async () => {
    const log: string[] = [];
    const second = Promise.withResolvers<void>();
    const read = {
      name: 'read',
      access: 'read' as const,
      // The first ends after the second.
      async run({ name }: Readonly<Record<string, unknown>>) {
        if (name === 'b') second.resolve();
        await second.promise;
        for (let turns = 0; name === 'a' && turns < 20; turns += 1) await Promise.resolve();
        log.push(`read ${name}`);
        return `read ${name}`;
      },
    };
    const write = {
      name: 'write',
      access: 'write' as const,
      async run({ name }: Readonly<Record<string, unknown>>) {
        log.push(`begin ${name}`);
        await Promise.resolve();
        log.push(`end ${name}`);
        return `wrote ${name}`;
      },
    };
    const rig = await createRig({ tools: [read, write] });
    rig.model.script(
      calls([
        { name: 'read', input: { name: 'a' } },
        { name: 'read', input: { name: 'b' } },
        { name: 'write', input: { name: 'a' } },
        { name: 'write', input: { name: 'b' } },
      ]),
      says('done'),
    );
    await rig.ask(1, 'go');
    expect(log).toEqual(['read b', 'read a', 'begin a', 'end a', 'begin b', 'end b']);
    const results = rig.model.requests[1]?.messages.filter(({ role }) => role === 'tool');
    expect(results?.map(({ text }) => text)).toEqual(['read a', 'read b', 'wrote a', 'wrote b']);
    rig.model.assertDone();
  });

  it('that fail or do not exist are explained to the model, and the turn goes on', async () => {
    const broken = {
      name: 'broken',
      access: 'read' as const,
      run: () => Promise.reject(new Error('no such file')),
    };
    const rig = await createRig({ tools: [broken] });
    rig.model.script(calls([{ name: 'broken' }, { name: 'imagined' }]), says('It failed.'));
    expect((await rig.ask(1, 'go')).answers).toEqual(['It failed.']);
    const results = rig.model.requests[1]?.messages.filter(({ role }) => role === 'tool');
    expect(results).toMatchObject([
      { failed: true },
      { text: expect.stringContaining('no tool with this name'), failed: true },
    ]);
  });

  it('whose result is too long show that it was cut', async () => {
    const long = { name: 'long', access: 'read' as const, run: async () => 'x'.repeat(50_000) };
    const rig = await createRig({ tools: [long], maxResultChars: 1000 });
    rig.model.script(calls([{ name: 'long' }]), says('ok'));
    await rig.ask(1, 'go');
    const result = rig.model.requests[1]?.messages.at(-1)?.text ?? '';
    expect(result).toMatch(/\[truncated, 49,\d{3} characters omitted/);
    expect(result.length).toBeLessThanOrEqual(1000);
  });

  it('that never end hold neither the turn nor the stop', async () => {
    const stuck = {
      name: 'stuck',
      access: 'execute' as const,
      run: () => new Promise<string>(() => undefined),
    };
    const rig = await createRig({ tools: [stuck] });
    rig.model.script(calls([{ name: 'stuck' }]), says('It hangs.'));
    const started = Promise.withResolvers<void>();
    const running = rig.run(rig.inputOf(1, ['go']), undefined, (event) => {
      if (event.type === 'tool_started') started.resolve();
    });
    await started.promise;
    await rig.clock.advance(70_000);
    expect((await running).outcome.answers).toEqual(['It hangs.']);
    expect(rig.model.requests[1]?.messages.at(-1)?.text).toContain('did not end within 60 s');
  });

  it('may have said it all: an empty answer after a sent message is no failure', async () => {
    const message = {
      name: 'message',
      access: 'say' as const,
      async run(_input: unknown, { say }: { say(text: string): Promise<void> }) {
        await say('first');
        await say('second');
        return 'sent';
      },
    };
    const rig = await createRig({ tools: [message] });
    rig.model.script(calls([{ name: 'message' }, { name: 'message', id: 'again' }]), says(''));
    expect(await rig.ask(1, 'go')).toMatchObject({ kind: 'answered', answers: [] });
    const ordinals = rig.said.map(({ ordinal }) => ordinal);
    expect(new Set(ordinals).size).toBe(4);
  });
});

describe('steering', () => {
  it('joins messages that come meanwhile before the next model call', async () => {
    const rig = await createRig({ tools: [time] });
    rig.model.script(calls([{ name: 'time' }]), says('In Rome it is later.'));
    const queue = [[], [messageOf(2, 'I mean in Rome')], []];
    const input = rig.inputOf(1, ['what time is it?'], { steer: async () => queue.shift() ?? [] });
    const { outcome } = await rig.run(input);
    expect(rig.model.requests[1]?.messages.at(-1)).toEqual({
      role: 'user',
      text: 'I mean in Rome',
    });
    expect(outcome.throughSeq).toBe(2);
    rig.model.assertDone();
  });
});

describe('limits', () => {
  it('on rounds: the model is told what remains, then asked to conclude without tools', async () => {
    const rig = await createRig({ tools: [time], settings: { maxToolIterations: 5 } });
    const looks = [1, 2, 3, 4, 5].map((zone) => calls([{ name: 'time', input: { zone } }]));
    rig.model.script(...looks, says('That is all I know.'));
    const outcome = await rig.ask(1, 'go');
    expect(outcome).toMatchObject({ kind: 'answered', answers: ['That is all I know.'] });
    expect(rig.model.requests[3]?.messages.at(-1)?.role).toBe('tool');
    expect(rig.model.requests[4]?.messages.at(-1)).toMatchObject({
      note: expect.stringContaining('1 of 5 rounds'),
    });
    expect(rig.model.requests[5]).toMatchObject({ toolChoice: 'none' });
    expect(JSON.stringify(await rig.transcript())).not.toContain('of 5 rounds');
    rig.model.assertDone();
  });

  it('on rounds hold for a model that goes on calling tools', async () => {
    const rig = await createRig({ tools: [time], settings: { maxToolIterations: 3 } });
    rig.model.script(...[1, 2, 3, 4].map((zone) => calls([{ name: 'time', input: { zone } }])));
    const outcome = await rig.ask(1, 'go');
    expect(outcome.answers.join()).toContain('3 rounds of tool use');
    rig.model.assertDone();
  });

  it('on tokens end the turn with a sentence', async () => {
    const rig = await createRig({ tools: [time], settings: { maxTurnTokens: 5000 } });
    const usage = { inputTokens: 6000, outputTokens: 10, cachedTokens: 0 };
    rig.model.script(calls([{ name: 'time' }], 'Looking.', { usage }));
    const outcome = await rig.ask(1, 'go');
    expect(outcome.answers.join()).toMatch(/^Looking\.\n\n\[Stopped at 5,000 tokens/);
  });

  it('on time end a model that says nothing more, with what was written', async () => {
    const rig = await createRig({ settings: { maxTurnMs: 30_000 } });
    rig.model.script(breaksOff('Once upon a time', 'hangs'));
    const shown = Promise.withResolvers<void>();
    const running = rig.run(rig.inputOf(1, ['a story']), undefined, (event) => {
      if (event.type === 'text_delta') shown.resolve();
    });
    await shown.promise;
    await rig.clock.advance(31_000);
    const { outcome } = await running;
    expect(outcome.answers.join()).toMatch(/^Once upon a time\n\n\[Stopped after 30 seconds/);
  });

  it('on the answer’s length are told to the person', async () => {
    const rig = await createRig();
    rig.model.script(says('A long list without an end', { stop: 'length' }));
    expect((await rig.ask(1, 'list')).answers.join()).toMatch(/\[Cut at the length limit/);
  });
});

describe('a model that fails', () => {
  it('to answer at all is asked once more, then admitted', async () => {
    const rig = await createRig();
    rig.model.script(says(''), says('<think>hm</think>'));
    const running = rig.ask(1, 'go');
    // The turn's deadline and the pause before the second try.
    while (rig.clock.pending < 2) await rig.clock.advance(0);
    await rig.clock.advance(2000);
    expect(await running).toMatchObject({ kind: 'failed' });
    rig.model.assertDone();
  });

  it('after its retries is a sentence to the person, and the next turn works', async () => {
    const rig = await createRig();
    rig.model.script(breaksOff('', failure({ kind: 'auth' })), says('Back again.'));
    expect(await rig.ask(1, 'one')).toMatchObject({
      kind: 'failed',
      answers: ['The model failed: auth.'],
    });
    expect(await rig.ask(2, 'two')).toMatchObject({ answers: ['Back again.'] });
    rig.model.assertDone();
  });

  it('in the middle of its text keeps what was shown and says that it broke off', async () => {
    const rig = await createRig();
    rig.model.script(breaksOff('The first half', failure({ kind: 'network' })));
    const outcome = await rig.ask(1, 'one');
    expect(outcome.answers.join()).toBe('The first half\n\nThe model failed: network.');
  });

  it('and starts again withdraws what was shown', async () => {
    const retried: ScriptedCall = async function* (): AsyncIterable<ModelEvent> {
      yield { type: 'text', delta: 'wrong start' };
      yield { type: 'retrying', reason: 'server', delayMs: 1000 };
      yield* says('Right.')({} as never, new AbortController().signal);
    };
    const rig = await createRig();
    rig.model.script(retried);
    const { outcome, events } = await rig.run(rig.inputOf(1, ['go']));
    expect(outcome.answers).toEqual(['Right.']);
    expect(events.map(({ type }) => type)).toContain('text_discarded');
  });

  it('that has not begun to answer after a while is named, once, and its answer is taken', async () => {
    const asked = Promise.withResolvers<void>();
    const answers = Promise.withResolvers<void>();
    const slow: ScriptedCall = async function* (request, signal): AsyncIterable<ModelEvent> {
      asked.resolve();
      await answers.promise;
      yield* says('Here.')(request, signal);
    };
    const rig = await createRig();
    rig.model.script(slow);
    const told: string[] = [];
    const heard = Promise.withResolvers<void>();
    const running = rig.run(rig.inputOf(1, ['go']), undefined, (event) => {
      if (event.type !== 'notice') return;
      told.push(event.text);
      heard.resolve();
    });
    await asked.promise;
    await rig.clock.advance(20_000);
    await heard.promise;
    await rig.clock.advance(20_000);
    answers.resolve();
    expect((await running).outcome.answers).toEqual(['Here.']);
    expect(told).toEqual([expect.stringMatching(/has not begun to answer yet\.$/)]);
  });

  it('by a fault of ours throws, so that the bus hands the turn out again', async () => {
    const rig = await createRig();
    rig.model.script(breaksOff('', new TypeError('a bug')));
    await expect(rig.ask(1, 'go')).rejects.toThrow('a bug');
  });

  it('thinks aloud: the thought reaches neither the chat nor the transcript', async () => {
    const rig = await createRig();
    rig.model.script(says('<think>the user is\n\nodd</think>\n\nHello!'));
    const { outcome, events } = await rig.run(rig.inputOf(1, ['hi']));
    expect(outcome.answers).toEqual(['Hello!']);
    expect(textOf(events)).toBe('Hello!');
    expect(JSON.stringify(await rig.transcript())).not.toContain('odd');
  });
});

describe('a long conversation', () => {
  it('is trimmed by whole turns with a visible marker, and stays within the window', async () => {
    const rig = await createRig({ contextTokens: 8000, settings: { maxTokens: 500 } });
    for (let turn = 1; turn <= 12; turn += 1) {
      rig.model.script(says(`answer ${turn}`));
      await rig.ask(turn, `question ${turn} ${'word '.repeat(800)}`);
    }
    const last = rig.model.requests.at(-1);
    expect(last?.messages[0]?.text).toMatch(/^\[\d+ earlier messages omitted/);
    expect(JSON.stringify(last).length / 4).toBeLessThan(8000 * 0.8);
    expect(last?.messages.at(-1)?.text).toContain('question 12');
    rig.model.assertDone();
  });

  it('that the provider finds too long is sent again, smaller, once', async () => {
    const rig = await createRig();
    rig.model.script(says('a'), says('b'));
    await rig.ask(1, 'x'.repeat(4000));
    await rig.ask(2, 'y'.repeat(4000));
    rig.model.script(breaksOff('', failure({ kind: 'context_overflow' })), says('There.'));
    expect((await rig.ask(3, 'z'.repeat(1000))).answers).toEqual(['There.']);
    const [tried, again] = rig.model.requests.slice(-2).map((each) => JSON.stringify(each).length);
    expect(again).toBeLessThan(tried ?? 0);
    rig.model.assertDone();
  });

  it('that the provider rejects is left out once, and the person is told', async () => {
    const rig = await createRig();
    rig.model.script(says('a'));
    await rig.ask(1, 'poison');
    rig.model.script(breaksOff('', failure({ kind: 'rejected', status: 400 })), says('Fine.'));
    const { outcome, events } = await rig.run(rig.inputOf(2, ['go on']));
    expect(outcome.answers).toEqual(['Fine.']);
    expect(events).toContainEqual(expect.objectContaining({ type: 'notice' }));
    expect(JSON.stringify(rig.model.requests.at(-1)?.messages)).not.toContain('poison');
  });

  it('costs the same per turn however old the session is', async () => {
    const rig = await createRig({ contextTokens: 8000, settings: { maxTokens: 500 } });
    const sizes: number[] = [];
    for (let turn = 1; turn <= 40; turn += 1) {
      rig.model.script(says('ok'));
      await rig.ask(turn, `question ${turn} ${'word '.repeat(400)}`);
      sizes.push(JSON.stringify(rig.model.requests.at(-1)).length);
    }
    expect(Math.max(...sizes.slice(30))).toBeLessThanOrEqual(Math.max(...sizes.slice(0, 20)));
  });

  it('learns from the provider’s count that its estimates are too low', async () => {
    const rig = await createRig({ contextTokens: 8000, settings: { maxTokens: 500 } });
    const usage = { inputTokens: 6200, outputTokens: 5, cachedTokens: 0 };
    rig.model.script(says('a', { usage }), says('b', { usage }), says('c', { usage }));
    await rig.ask(1, '\u6f22'.repeat(4000));
    await rig.ask(2, 'and?');
    await rig.ask(3, 'and now?');
    expect(rig.model.requests.at(-1)?.messages[0]?.text.slice(0, 60)).toMatch(/omitted to fit/);
  });
});
