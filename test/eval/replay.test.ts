// `nanobot replay`: a conversation that really took place is played again, from its record and with
// another model, prompt and setting; nothing of it is done twice, and nothing is written to it.

import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configSchema } from '../../src/kernel/config/config.ts';
import { openMediaFiles } from '../../src/kernel/media/files.ts';
import {
  callId,
  mediaId,
  messageId,
  sessionKey,
  type TurnId,
  turnId,
} from '../../src/kernel/message/ids.ts';
import type { TranscriptEntry, UserEntry } from '../../src/kernel/message/transcript.ts';
import { createJsonlSessionStore } from '../../src/kernel/sessions/jsonl.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { openEntryRows } from '../sessions/session-folder.ts';
import { callTools, type LlmRequest, say } from '../support/llm-server.ts';
import { createEvalRig, type EvalRig } from './eval-rig.ts';

const SESSION = 'terminal:diary';
const sessionPolicy = configSchema.parse({ version: 1 }).sessions;
let rig: EvalRig;
let calls = 0;

beforeAll(async () => {
  rig = await createEvalRig();
  rig.server.script(
    callTools({ name: 'write_file', arguments: { path: 'notes.txt', content: 'The code is 7.' } }),
    say('It is noted.'),
    callTools({ name: 'read_file', arguments: { path: 'notes.txt' } }),
    say('The code is 7.\nAnything else?'),
  );
  for (const text of ['Note the code 7', 'What is the code?']) {
    const { code, stderr } = await rig.cli('agent', '-s', 'diary', '-m', text);
    if (code !== 0) throw new Error(stderr);
  }
  // What was done then cannot be done again: the file is gone.
  await rm(join(rig.home.workspace, 'notes.txt'));
});
afterAll(() => rig[Symbol.asyncDispose]());

async function written(): Promise<readonly string[]> {
  const found: string[] = [];
  for (const folder of [rig.home.workspace, rig.home.sessions]) {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    for (const entry of entries.filter((each) => each.isFile())) {
      const path = join(entry.parentPath, entry.name);
      found.push(`${path} ${await readFile(path, 'utf8')}`);
    }
  }
  return found.sort();
}

const openStore = async () =>
  createJsonlSessionStore({
    ...{ folder: rig.home.sessions, clock: systemClock, log: silentLogger },
    store: await openEntryRows(systemClock, rig.home.state),
    policy: () => sessionPolicy,
  });

const otherwise = (requests: LlmRequest[] = []) => {
  return (request: LlmRequest) => {
    calls += 1;
    requests.push(request);
    if (request.toolResults.length > 0) return say('The code is seven.\nAnything else?');
    return callTools(
      { name: 'list_dir', arguments: { path: '.' } },
      { name: 'read_file', arguments: { path: 'notes.txt' } },
    );
  };
};

describe('replay', () => {
  it('from the record: the same calls and answers, without a model, a tool or a trace', async () => {
    rig.server.respond(otherwise());
    const before = await written();
    const { code, stdout, stderr } = await rig.cli('replay', SESSION);
    expect(stderr).toContain('2 of 2 turns the same');
    expect(stdout.split('\n').map((line) => line.slice(0, 7))).toEqual(['turn 1 ', 'turn 2 ']);
    expect(code).toBe(0);
    expect([calls, await written()]).toEqual([0, before]);
  });

  it('shows what another model, prompt and setting change, with tools that answer from the record', async () => {
    const requests: LlmRequest[] = [];
    rig.server.respond(otherwise(requests));
    const before = await written();
    const prompt = join(rig.home.root, 'AGENTS.md');
    await writeFile(prompt, 'Speak like a pirate.');
    const { code, stdout, stderr } = await rig.cli(
      ...['replay', SESSION, '--turn', 'last', '--model', 'openai/other', '--prompt', prompt],
      ...['--set', 'agents.defaults.temperature=0'],
    );
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('DIFFERENT');
    expect(stdout).toContain('+ list_dir {"path":"."}');
    expect(stdout).toContain(
      '    - The code is 7.\n    + The code is seven.\n      Anything else?',
    );
    expect(stdout).toContain('openai/sim -> openai/other');
    expect(stderr).toContain('2 calls with unknown price');
    const [first, second] = requests;
    expect(first?.system).toContain('Speak like a pirate.');
    expect(first?.body['temperature']).toBe(0);
    expect(second?.toolResults.map(({ text }) => text)).toEqual([
      expect.stringContaining('not recorded'),
      expect.stringContaining('The code is 7.'),
    ]);
    expect(await written()).toEqual(before);
    const metrics = (await readFile(rig.home.metrics, 'utf8')).trim().split('\n');
    expect(metrics.slice(-2).map((line) => JSON.parse(line).role)).toEqual(['eval', 'eval']);
  });

  it('takes up what came while a turn ran, tools that are gone, and leaves out what was broken off', async () => {
    const store = await openStore();
    const session = sessionKey('terminal:long');
    const [done, stopped] = [turnId('terminal:long#1'), turnId('terminal:long#3')];
    const at = Date.UTC(2026, 0, 15);
    const said = { role: 'assistant', thinking: [], model: 'openai/sim', at } as const;
    const call = { id: callId('c1'), name: 'weather_of_mars', arguments: '{"place":"Olympus"}' };
    const asked = (turn: TurnId, seq: number, text: string): UserEntry => ({
      ...{
        role: 'user',
        turnId: turn,
        messageId: messageId(`terminal:default:${seq}`),
        seq,
        text,
        at,
      },
    });
    const entries: readonly TranscriptEntry[] = [
      asked(done, 1, 'How is Mars?'),
      { ...said, turnId: done, text: '', toolCalls: [call], throughSeq: 1 },
      {
        role: 'tool',
        turnId: done,
        callId: call.id,
        name: call.name,
        status: 'ok',
        text: 'Red.',
        at,
      },
      {
        ...said,
        turnId: done,
        text: '',
        toolCalls: [{ ...call, id: callId('c2') }],
        throughSeq: 1,
      },
      {
        ...{ role: 'tool', turnId: done, callId: callId('c2'), name: call.name, status: 'ok', at },
        text: 'Dusty.',
      },
      asked(done, 2, 'In one word, please.'),
      { ...said, turnId: done, text: 'Red', toolCalls: [], throughSeq: 2 },
      { role: 'turn_end', turnId: done, outcome: 'answered', answers: ['Red'], throughSeq: 2, at },
      asked(stopped, 3, 'And Venus?'),
      { role: 'turn_end', turnId: stopped, outcome: 'stopped', answers: [], throughSeq: 3, at },
    ];
    await store.append(session, entries, { durable: true });
    await store[Symbol.asyncDispose]();

    const recorded = await rig.cli('replay', session);
    expect(recorded.stdout).toMatch(
      /^turn 1 .* the same\n {2}the request log has no entry: .* all rights\nturn 2 .* skipped: the turn was stopped$/,
    );
    expect([recorded.code, recorded.stderr]).toEqual([
      0,
      expect.stringContaining('1 of 1 turns the same, 1 left out'),
    ]);

    const threads: string[] = [];
    rig.server.respond(({ body }) => {
      threads.push(JSON.stringify(body['messages']));
      const { id: _id, ...again } = call;
      return threads.length < 3 ? callTools(again) : say('Red');
    });
    const asNow = await rig.cli('replay', session, '--turn', '1', '--model', 'openai/other');
    expect(asNow.stdout).toContain('the same');
    expect(threads.map((thread) => thread.includes('In one word'))).toEqual([false, false, true]);
    expect(threads.map((thread) => [thread.includes('Red.'), thread.includes('Dusty.')])).toEqual([
      [false, false],
      [true, false],
      [true, true],
    ]);
  });

  it('asks as it was asked then, or with a prompt, settings and images of today, and shows what differs', async () => {
    const requests: LlmRequest[] = [];
    rig.server.respond((request) => {
      requests.push(request);
      const isFirst = request.toolResults.length === 0;
      const rules = { path: 'AGENTS.md', content: 'Obey.' };
      return isFirst ? callTools({ name: 'write_file', arguments: rules }) : say('The code is 7.');
    });
    const soul = join(rig.home.workspace, 'SOUL.md');
    await writeFile(soul, 'Speak like a monarch.');
    // Since then tools went away and a setting changed.
    const before = await readFile(rig.home.config, 'utf8');
    const written = JSON.parse(before);
    const { agents } = written;
    const withTemperature = (temperature: number) => ({
      ...written,
      agents: { ...agents, defaults: { ...agents.defaults, temperature } },
    });
    const since = { ...withTemperature(0.2), memory: { enabled: false } };
    await writeFile(rig.home.config, JSON.stringify(since));
    const last = ['replay', SESSION, '--turn', 'last'] as const;
    const asked = () => requests.splice(0).at(0);

    const asThen = await rig.cli(...last, '--model', 'recorded');
    expect(asThen.stdout).not.toContain('asked with');
    // Then an owner would have been asked before rules are written.
    expect(requests.at(-1)?.toolResults.at(-1)?.text).toContain('Nobody is asked');
    const then = asked();
    expect(then?.system).not.toContain('monarch');
    expect(then?.tools).toContain('remember');
    expect(then?.body['temperature']).toBe(0.7);

    const other = await rig.cli(...last, '--model', 'openai/other');
    expect(other.stdout).toMatch(/- model: openai\/sim\n\s+\+ model: openai\/other/);
    const byOther = asked();
    expect([byOther?.system, byOther?.tools]).toEqual([then?.system, then?.tools]);

    const today = await rig.cli(...last, '--prompt', 'today');
    expect(today.stdout).toContain('    +   Speak like a monarch.\n');
    expect(today.stdout).toContain('    - tool remember: ');
    const now = asked();
    expect(now?.system).toContain('Speak like a monarch.');
    expect(now?.tools).not.toContain('remember');
    expect(now?.body['temperature']).toBe(0.7);
    await rig.cli(...last, '--config', 'today');
    expect(asked()?.body['temperature']).toBe(0.2);
    // Nothing is asked where the models say what they said then, whatever the settings.
    const free = await rig.cli(...last, '--recorded', '--config', 'today');
    expect(free.stdout).toMatch(/the same\n[\s\S]*\+ temperature: 0\.2/);
    expect(requests).toEqual([]);

    const file = join(rig.home.root, 'SOUL.md');
    await writeFile(file, 'Speak like a poet.');
    await rig.cli(...last, '--prompt', file);
    const poetic = asked()?.system ?? '';
    expect([poetic.includes('poet'), poetic.includes('monarch')]).toEqual([true, false]);

    const path = join(rig.home.root, 'other.json');
    await writeFile(path, JSON.stringify(withTemperature(0.9)));
    const configured = await rig.cli(
      ...last,
      '--config',
      path,
      '--set',
      'agents.defaults.maxTokens=77',
    );
    expect(configured.stdout).toContain(
      '    - temperature: 0.7\n    + maxTokens: 77\n    + temperature: 0.9\n',
    );
    expect(configured.stdout).toContain('    + agents.defaults.temperature = 0.9\n');
    const { temperature, max_tokens, max_completion_tokens } = asked()?.body ?? {};
    expect([temperature, max_completion_tokens ?? max_tokens]).toEqual([0.9, 77]);

    await rm(join(rig.home.sessions, 'asked'), { recursive: true });
    const unknown = await rig.cli(...last, '--model', 'openai/other');
    expect(unknown.stdout).toContain('the request log has no entry');
    await writeFile(rig.home.config, before);
  });

  it('shows the images of then where they are kept, and says where they are not', async () => {
    const media = await openMediaFiles({
      ...{ folder: rig.home.media, clock: systemClock, maxBytes: () => 1_000_000 },
      needed: async () => new Set(),
    });
    const red = sharp({ create: { width: 8, height: 8, channels: 3, background: '#c00' } });
    const pixel = await red.png().toBuffer();
    const { id } = await media.put(pixel, { maxBytes: 1_000_000 });
    const turn = turnId('terminal:photos#1');
    const at = Date.UTC(2026, 0, 15);
    const image = (of: typeof id) => ({ media: of, kind: 'image', mimeType: 'image/png' }) as const;
    const gone = mediaId('0'.repeat(64));
    const entries: readonly TranscriptEntry[] = [
      {
        role: 'user',
        turnId: turn,
        seq: 1,
        text: 'What is this?',
        media: [image(id), image(gone)],
        at,
      },
      {
        role: 'assistant',
        turnId: turn,
        text: 'Red',
        toolCalls: [],
        thinking: [],
        model: 'openai/gpt-5',
        at,
      },
      { role: 'turn_end', turnId: turn, outcome: 'answered', answers: ['Red'], throughSeq: 1, at },
    ];
    const store = await openStore();
    await store.append(sessionKey('terminal:photos'), entries, { durable: true });
    await store[Symbol.asyncDispose]();
    let shown = 0;
    rig.server.respond(({ images }) => {
      shown += images.length;
      return say('Red');
    });
    const { stdout, stderr } = await rig.cli(
      'replay',
      'terminal:photos',
      '--model',
      'openai/gpt-5',
    );
    expect(stdout, stderr).toContain('images that were deleted: 1');
    expect(shown).toBe(1);
  });

  it('says so when the result differs from the record, and when there is no such turn', async () => {
    const names = await readdir(rig.home.sessions);
    const name = names.find((each) => each.includes('diary') && each.endsWith('.jsonl')) ?? '';
    const path = join(rig.home.sessions, name);
    const whole = await readFile(path, 'utf8');
    await writeFile(
      path,
      whole.replace(/"answers":\["It is noted\."\]/, '"answers":["It was noted."]'),
    );
    const { code, stdout, stderr } = await rig.cli('replay', SESSION, '--json');
    await writeFile(path, whole);
    expect(code).toBe(1);
    expect(stderr).toContain('the result differs from the record');
    const [first, second] = JSON.parse(stdout);
    expect([first.comparison.isSame, second.comparison.isSame]).toEqual([false, true]);

    const isAnswer = (line: string) =>
      line.includes('"role":"assistant"') && line.includes('noted');
    const damaged = whole
      .split('\n')
      .filter((line) => !isAnswer(line) && !line.includes('write_file'));
    await writeFile(path, damaged.join('\n'));
    const partly = await rig.cli('replay', SESSION);
    await writeFile(path, whole);
    expect(partly.stdout).toContain('skipped: the record has no answers of the model');

    const noPrompt = await rig.cli('replay', SESSION, '--prompt', join(rig.home.root, 'none.md'));
    expect([noPrompt.code, noPrompt.stderr]).toEqual([
      6,
      expect.stringMatching(/cannot read .*none\.md: ENOENT$/),
    ]);
    expect((await rig.cli('replay', SESSION, '--turn', '3')).code).toBe(6);
    expect((await rig.cli('replay', 'terminal:none')).code).toBe(6);
    expect((await rig.cli('replay', SESSION, '--set', 'agents.nothing=1')).code).toBe(2);
  });
});
