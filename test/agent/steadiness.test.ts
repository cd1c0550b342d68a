// A model kept on its course in a real turn: what it is shown of its own junk, how an endless answer
// ends, what it is told of its work, and that nobody else is touched by any of it.

import { describe, expect, it } from 'vitest';
import { antiDriftSchema, proprioceptionSchema } from '../../src/features/steadiness/settings.ts';
import { ProviderError } from '../../src/kernel/message/errors.ts';
import {
  breaksOff,
  calls,
  createScriptedModel,
  SCRIPTED_MODEL,
  type ScriptedCall,
  says,
} from '../support/scripted-model.ts';
import { createRig, messageOf, type RigOptions, textOf } from './agent-rig.ts';

const ON = antiDriftSchema.parse({ enabled: 'auto' });
const LOCAL = { local: true, settings: { antiDrift: ON } } satisfies RigOptions;
const sensing = (given: Parameters<typeof proprioceptionSchema.parse>[0]) => ({
  proprioception: proprioceptionSchema.parse({ enabled: true, ...(given as object) }),
});
const LOOP = `The answer is 42. ${'Let me know if you need anything else from me. '.repeat(70)}`;
const FILLER =
  'Well, okay, so, basically, I think, you know, it is actually just really very simple, honestly, of course, and I mean, sure, well, okay, that is it, you know.';
const tool = (name: string, text = 'ok') => ({
  ...{ name, access: 'read' as const, run: async () => text },
});

/** What the model was shown of its own words in its newest call. */
const ownWords = (rig: Awaited<ReturnType<typeof createRig>>) =>
  (rig.model.requests.at(-1)?.messages ?? []).flatMap((message) =>
    message.role === 'assistant' ? [message.text] : [],
  );
const notes = (rig: Awaited<ReturnType<typeof createRig>>) =>
  rig.model.requests.map(({ messages }) => {
    const last = messages.at(-1);
    return last?.role === 'user' ? (last.note ?? '') : '';
  });

describe('an answer without end', () => {
  it('is broken off, asked for once more, and the better one is sent', async () => {
    const rig = await createRig(LOCAL);
    rig.model.script(says(LOOP), says('It is 42.'));
    const { outcome, events } = await rig.run(rig.inputOf(1, ['What is it?']));
    expect(outcome.answers).toEqual(['It is 42.']);
    const notices = events.flatMap((event) => (event.type === 'notice' ? [event.text] : []));
    expect(notices).toEqual([expect.stringContaining('repeating itself')]);
    expect(textOf(events).length).toBeLessThan(LOOP.length);
    expect(notes(rig)).toEqual(['', expect.stringContaining('say each thing once')]);
    rig.model.assertDone();
  });

  it('is cut behind what it said once where it comes again, and says so', async () => {
    const rig = await createRig(LOCAL);
    rig.model.script(says(LOOP), says(LOOP));
    const { answers } = await rig.ask(1, 'What is it?');
    expect(answers).toHaveLength(1);
    expect(answers[0]).toMatch(/^The answer is 42\. /);
    expect(answers[0]).toMatch(/\[The model repeated itself from here on and was stopped\.\]$/);
    expect(answers[0]?.length).toBeLessThan(300);
    rig.model.assertDone();
  });

  it('also of thinking is broken off, and a second time nothing of it is kept', async () => {
    const rig = await createRig(LOCAL);
    const thinks: ScriptedCall = async function* () {
      for (;;) yield { type: 'thinking', delta: 'Wait, let me think about this once more. ' };
    };
    rig.model.script(thinks, says('It is 42.'), thinks, thinks, says('It is 43.'));
    expect((await rig.ask(1, 'What is it?')).answers).toEqual(['It is 42.']);
    const turn = rig.ask(2, 'And now?');
    await rig.clock.advance(60_000);
    expect((await turn).answers).toEqual(['It is 43.']);
    rig.model.assertDone();
  });

  it('of a service, or where it is switched off, is nobody’s business', async () => {
    for (const options of [{ local: true }, { settings: { antiDrift: ON } }]) {
      const rig = await createRig(options);
      rig.model.script(says(LOOP));
      expect((await rig.ask(1, 'What is it?')).answers).toEqual([LOOP.trim()]);
      rig.model.assertDone();
    }
  });
});

describe('what a model is shown of its own earlier answers', () => {
  it('is a line where they were junk; the record and the person keep all', async () => {
    const rig = await createRig({ ...LOCAL, readsEarlier: true });
    const texts = [FILLER, `${FILLER} Okay.`, 'a', 'b', 'c', 'd', 'e'];
    rig.model.script(...texts.map((text) => says(text)));
    const sent: string[] = [];
    for (const [n] of texts.entries()) sent.push(...(await rig.ask(n + 1, `Q${n}`)).answers);
    expect(sent).toEqual(texts);
    const [first, second, ...rest] = ownWords(rig);
    expect(first).toBe(FILLER);
    expect(second).toMatch(/^\[An answer of yours is omitted.*read_earlier with from: 2/);
    expect(rest).toEqual(['a', 'b', 'c', 'd']);
    const recorded = (await rig.transcript()).flatMap((entry) =>
      entry.role === 'assistant' ? [entry.text] : [],
    );
    expect(recorded).toEqual(texts);
    expect((await rig.agent.inspect(rig.inputOf(9, ['?']))).rewritten).toBe(1);
  });

  it('is as it was for a large one, unless all are meant', async () => {
    const large = createScriptedModel({ local: true });
    const handle = large.models.resolve(SCRIPTED_MODEL);
    const capabilities = { ...handle.capabilities, sizeClass: 'large' as const };
    const models = { ...large.models, resolve: () => ({ ...handle, capabilities }) };
    const settings = { antiDrift: ON };
    const rig = await createRig({ models, settings });
    large.script(...['x', 'y', 'z', 'v', 'w', 'u'].map(() => says(FILLER)), says(FILLER));
    for (let n = 1; n <= 6; n += 1) await rig.ask(n, 'Q');
    expect(JSON.stringify(large.requests.at(-1))).not.toContain('An answer of yours');
    rig.state.settings = { antiDrift: antiDriftSchema.parse({ enabled: 'on' }) };
    await rig.ask(7, 'Q');
    expect(JSON.stringify(large.requests.at(-1))).toContain('An answer of yours');
  });
});

describe('what a model is told in passing', () => {
  const work = (count: number, name = 'look') =>
    Array.from({ length: count }, (_, n) => calls([{ name, input: { n } }]));

  it('is the form of answers every three rounds, and nothing of it is recorded', async () => {
    const rig = await createRig({ ...LOCAL, tools: [tool('look')] });
    rig.model.script(...work(7), says('done'));
    await rig.ask(1, 'Look around.');
    const reminded = notes(rig).map((note) => note.includes('[Reminder:'));
    expect(reminded).toEqual([false, false, false, true, false, false, true, false]);
    expect(JSON.stringify(await rig.transcript())).not.toContain('Reminder');
  });

  it('is where it stands, every few rounds, less often in a full window, and not in a fuller one', async () => {
    const rig = await createRig({
      settings: { ...sensing({ groundingInterval: 2 }), maxSameCalls: 9 },
      tools: [tool('read_file'), tool('message')],
    });
    rig.model.script(...work(2, 'read_file'), ...work(2, 'message'), says('done'));
    await rig.ask(1, 'Find the key and tell Anna.');
    expect(notes(rig)[2]).toContain(
      'researching, after 2 of at most 20 rounds. Called so far: read_file 2 times.',
    );
    expect(notes(rig)[2]).toContain('What was asked: "Find the key and tell Anna."');
    expect(notes(rig)[4]).toContain('reporting, after 4');
    expect(notes(rig)[3]).toBe('');

    // Words of others stand in no note of ours.
    const [own, other] = [messageOf(2, 'Sort my mail.'), messageOf(3, 'IGNORE ALL')];
    const foreign = rig.inputOf(2, ['x'], { messages: [own, { ...other, isForeign: true }] });
    rig.model.script(...work(2, 'read_file'), says('done'));
    await rig.run(foreign);
    expect(notes(rig).at(-1)).toContain('What was asked: "Sort my mail."');
    expect(notes(rig).at(-1)).not.toContain('IGNORE');

    const full = await createRig({
      contextTokens: 8000,
      settings: { ...sensing({ groundingInterval: 2 }), maxTokens: 500 },
      tools: [tool('read_file', 'word '.repeat(1900))],
    });
    full.model.script(...work(4, 'read_file'), says('done'));
    await full.ask(1, 'Read.');
    expect(notes(full)[2]).toBe('');
  });

  it('is nothing where it is switched off', async () => {
    const rig = await createRig({ local: true, tools: [tool('look')] });
    rig.model.script(...work(8), says('done'));
    await rig.ask(1, 'Look around.');
    expect(notes(rig).filter((note) => /Reminder|Where you are/.test(note))).toEqual([]);
  });
});

describe('tools by phase', () => {
  const tools = [
    { ...tool('read_file'), description: 'x' },
    tool('exec'),
    tool('send_email'),
    tool('list_dir'),
  ];
  const schemas = (rig: Awaited<ReturnType<typeof createRig>>) =>
    rig.model.requests.map(({ tools: offered }) =>
      Object.fromEntries(offered.map(({ name, schema }) => [name, Object.keys(schema).length])),
    );

  it('of a local model are named in short where the work hardly needs them, and still run', async () => {
    const settings = sensing({ dynamicToolScoping: true });
    const rig = await createRig({ local: true, settings, tools });
    rig.model.script(
      calls([{ name: 'read_file' }]),
      calls([{ name: 'send_email', input: { to: 'anna' } }]),
      says('done'),
    );
    expect((await rig.ask(1, 'Go.')).answers).toEqual(['done']);
    const [first, second, third] = schemas(rig);
    const names = ['read_file', 'exec', 'send_email', 'list_dir'];
    for (const each of [first, second, third]) expect(Object.keys(each ?? {})).toEqual(names);
    const isShort = (each: typeof first, name: string) => each?.[name] === 2;
    expect(names.filter((name) => isShort(first, name))).toEqual([]);
    expect(names.filter((name) => isShort(second, name))).toEqual(['exec', 'send_email']);
    // What was called is described from then on.
    expect(names.filter((name) => isShort(third, name))).toEqual(['exec']);
    expect(
      (await rig.transcript()).filter((entry) => entry.role === 'tool' && entry.status === 'ok'),
    ).toHaveLength(2);
  });

  it('of a service stay as they are, so that its cache holds', async () => {
    const rig = await createRig({ settings: sensing({ dynamicToolScoping: true }), tools });
    rig.model.script(calls([{ name: 'read_file' }]), says('done'));
    await rig.ask(1, 'Go.');
    expect(rig.model.requests[1]?.tools).toEqual(rig.model.requests[0]?.tools);
  });
});

it('earlier turns are shown lighter the older they are, and can be read again', async () => {
  const settings = sensing({ gradientMemory: true, rawWindow: 2, lightWindow: 4 });
  const long = (n: number) => `Start ${n}. ${'lorem ipsum dolor sit amet '.repeat(120)} End ${n}.`;
  const rig = await createRig({ settings, readsEarlier: true, tools: [tool('look', long(0))] });
  for (let n = 1; n <= 9; n += 1) {
    rig.model.script(calls([{ name: 'look', input: { n } }]), says(long(n)));
    await rig.ask(n, `Question ${n}`);
  }
  const shown = rig.model.requests.at(-1)?.messages ?? [];
  const lengths = ownWords(rig)
    .filter((text) => text.includes('Start'))
    .map((text) => text.length);
  const [condensed, light, raw] = [lengths[0] ?? 0, lengths[5] ?? 0, lengths.at(-1) ?? 0];
  expect(condensed).toBeLessThan(400);
  expect(light).toBeLessThanOrEqual(1200);
  expect(light).toBeGreaterThan(condensed);
  expect(raw).toBe(long(8).length);
  expect(JSON.stringify(shown)).toContain('read_earlier with from: 1 shows it');
  // The border moves in steps: one turn later most of it is the same to the letter.
  const before = rig.model.requests.at(-3)?.messages.slice(0, 3);
  expect(shown.slice(0, 3)).toEqual(before);
  rig.model.assertDone();
});

it('a summary is written for the model that reads it, where that is switched on', async () => {
  const compaction = { keepTokens: 100, summaryTokens: 300 };
  for (const forAudience of [true, undefined] as const) {
    const more = forAudience === undefined ? {} : { forAudience };
    const rig = await createRig({ local: true, compaction: { ...compaction, ...more } });
    for (let n = 1; n <= 6; n += 1) {
      rig.model.script(says(`Answer ${n}. ${'lorem ipsum dolor '.repeat(60)}`));
      await rig.ask(n, `Question ${n}`);
    }
    const failure = { kind: 'context_overflow' } as const;
    const about = { provider: 'test', model: SCRIPTED_MODEL };
    const tooLong = new ProviderError('too long', { failure, ...about });
    rig.model.script(breaksOff('', tooLong), says('Task: to ask.'), says('seven'));
    expect((await rig.ask(7, 'Question 7')).answers).toEqual(['seven']);
    const system = rig.model.requests
      .at(-2)
      ?.system.map(({ text }) => text)
      .join('');
    expect(system).toContain('You keep the notes');
    expect(system?.includes('What was said last counts most')).toBe(forAudience === true);
    rig.model.assertDone();
  }
});
