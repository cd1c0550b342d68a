// Engines over the net and on this machine, as the rest of the program calls them.

import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type {
  SpeechEngine,
  TranscriptionEngine,
} from '../../src/features/voice/rules/voice-engine.ts';
import { createSpeaker } from '../../src/features/voice/speak.ts';
import { createTranscriber } from '../../src/features/voice/transcribe.ts';
import { VoiceError } from '../../src/features/voice/voice.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import {
  startVoiceServer,
  VOICE_KEY,
  type VoiceServer,
  voiceNote,
} from '../support/voice-server.ts';

const never = new AbortController().signal;
const deps = {
  clock: systemClock,
  env: { PATH: process.env['PATH'], SECRET_TOKEN: 'must-not-be-seen', HOME: '/nowhere' },
};
const ogg = (words: string) => ({ content: voiceNote(words), mimeType: 'audio/ogg' });

let server: VoiceServer;
let folder: string;

beforeAll(async () => {
  server = await startVoiceServer();
  folder = await mkdtemp(join(tmpdir(), 'nanobot-engine-test-'));
});
afterEach(() => {
  server.faults = [];
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const server1 = (more: Partial<Extract<TranscriptionEngine, { kind: 'server' }>> = {}) =>
  createTranscriber(
    {
      ...{ kind: 'server', name: 'openai', apiBase: server.base, apiKey: VOICE_KEY },
      ...{ model: 'whisper-1', language: '', timeoutMs: 45_000, ...more },
    },
    deps,
  );
const speaker = (more: Partial<Extract<SpeechEngine, { kind: 'server' }>> = {}) =>
  createSpeaker(
    {
      ...{ kind: 'server', name: 'openai', apiBase: server.base, apiKey: VOICE_KEY },
      ...{ model: 'tts-1', voice: 'alloy', format: 'opus', timeoutMs: 45_000, ...more },
    },
    deps,
  );

async function script(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, `#!/bin/sh\n${text}\n`);
  await chmod(path, 0o700);
  return path;
}

const program = (argv: readonly [string, ...string[]], timeoutMs = 45_000, language = '') =>
  createTranscriber({ kind: 'command', argv, language, timeoutMs }, deps);

const failureOf = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof VoiceError)) throw new Error(`no VoiceError: ${error}`);
  expect(`${error.message} ${error.stack} ${error.cause}`).not.toContain(VOICE_KEY);
  return error.code;
};

describe('a transcription server', () => {
  it('gives the words and the code of the language it names', async () => {
    expect(await server1().transcribe(ogg('Hello there'), never)).toEqual({
      text: 'Hello there',
      language: 'en',
      durationMs: 12_000,
    });
    expect(await server1().transcribe(ogg('Привет'), never)).toMatchObject({ language: 'ru' });
  });

  it('is told the language that is set, and asked plainly where the model tells none', async () => {
    const german = server1({ model: 'gpt-4o-mini-transcribe', language: 'de' });
    expect(await german.transcribe(ogg('Hallo'), never)).toEqual({ text: 'Hallo', language: 'de' });
    expect(server.heard.at(-1)?.language).toBe('de');
  });

  it.each([
    [401, 'voice_key_refused', 1],
    [400, 'voice_rejected', 1],
    [413, 'voice_too_large', 1],
    [429, 'voice_busy', 2],
    [500, 'voice_engine_failed', 2],
    ['redirect' as const, 'voice_unreachable', 2],
  ])('that answers %s fails by name %s after %i tries', async (fault, code, tries) => {
    const before = server.requestCount();
    server.faults = [fault, fault, fault];
    expect(await failureOf(server1().transcribe(ogg('x'), never))).toBe(code);
    expect(server.requestCount() - before).toBe(tries);
  });

  it('is asked once more where that helps', async () => {
    server.faults = [503];
    expect((await server1().transcribe(ogg('again'), never)).text).toBe('again');
  });

  it('refuses a wrong key without a word of it in the error', async () => {
    const wrong = server1({ apiKey: `${VOICE_KEY}-wrong` });
    expect(await failureOf(wrong.transcribe(ogg('x'), never))).toBe('voice_key_refused');
  });

  it('that does not answer is given up in time, or at once when nobody waits', async () => {
    server.faults = ['hang'];
    expect(await failureOf(server1({ timeoutMs: 50 }).transcribe(ogg('x'), never))).toBe(
      'voice_timeout',
    );
    server.faults = ['hang'];
    const stop = new AbortController();
    const work = server1().transcribe(ogg('x'), stop.signal);
    stop.abort(new Error('nobody waits'));
    await expect(work).rejects.toThrow('nobody waits');
  });

  it('that is not there is unreachable', async () => {
    const gone = server1({ apiBase: 'http://127.0.0.1:1/v1' });
    expect(await failureOf(gone.transcribe(ogg('x'), never))).toBe('voice_unreachable');
  });

  it('has another identity for another model, and none that tells the key', () => {
    expect(server1().id).not.toBe(server1({ model: 'other' }).id);
    expect(server1().id).not.toContain(VOICE_KEY);
  });
});

describe('a transcription program', () => {
  it('gets the sound in a folder of its own, which is gone afterwards', async () => {
    const path = await script(
      'hear',
      `pwd > ${folder}/where; ls -l "$1" | cut -c1-10 > ${folder}/mode
      printf ' Heard %s in %s\\n' "$(tail -c +48 "$1")" "$2"`,
    );
    const heard = await program([path, '{file}', '{language}']).transcribe(
      ogg('words; $(id)'),
      never,
    );
    expect(heard).toEqual({ text: 'Heard words; $(id) in auto' });
    const where = (await readFile(join(folder, 'where'), 'utf8')).trim();
    await expect(readdir(where)).rejects.toThrow('ENOENT');
    expect(await readFile(join(folder, 'mode'), 'utf8')).toBe('-rw-------\n');
  });

  it('may print JSON with the language', async () => {
    const path = await script('json', `echo '{"text": " Hallo ", "language": "German"}'`);
    expect(await program([path, '{file}']).transcribe(ogg('x'), never)).toEqual({
      text: 'Hallo',
      language: 'de',
    });
  });

  it('sees nothing of our secrets', async () => {
    const path = await script('env', 'env');
    const { text } = await program([path, '{file}']).transcribe(ogg('x'), never);
    expect(text).toContain('PATH=');
    expect(text).not.toContain('must-not-be-seen');
  });

  it('is stopped with all it started when it takes too long', async () => {
    const path = await script('slow', `sleep 60 & echo $! > ${folder}/child; wait`);
    const slow = program([path, '{file}'], 2000).transcribe(ogg('x'), never);
    expect(await failureOf(slow)).toBe('voice_timeout');
    const child = Number(await readFile(join(folder, 'child'), 'utf8'));
    await expect.poll(() => isAlive(child)).toBe(false);
  });

  it('ends with what it prints even where it leaves something running', async () => {
    const path = await script('leaves', 'sleep 60 & echo done');
    expect((await program([path, '{file}']).transcribe(ogg('x'), never)).text).toBe('done');
  });

  it('that is missing or fails says so', async () => {
    const missing = program(['/nowhere/whisper', '{file}']).transcribe(ogg('x'), never);
    expect(await failureOf(missing)).toBe('voice_command_missing');
    const path = await script('fails', 'exit 3');
    const failing = program([path, '{file}']).transcribe(ogg('x'), never);
    expect(await failureOf(failing)).toBe('voice_command_failed');
  });
});

/** A process that has ended but that nobody has asked about counts as ended. */
async function isAlive(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return status !== '' && !/^State:\s+Z/m.test(status);
}

describe('an engine that speaks', () => {
  it('is asked for OGG/Opus and gives the sound', async () => {
    const sound = await speaker().speak('Good morning', never);
    expect(Buffer.from(sound).subarray(0, 4).toString()).toBe('OggS');
    expect(server.spoken.at(-1)).toEqual({ input: 'Good morning', format: 'opus', voice: 'alloy' });
  });

  it('may be a program that reads the text and writes a file or its stdout', async () => {
    const toFile = await script('say', 'cat > "$1"');
    const toStdout = await script('print', 'cat');
    const say = async (...argv: readonly [string, ...string[]]) => {
      const made = createSpeaker({ kind: 'command', argv, timeoutMs: 45_000 }, deps);
      return Buffer.from(await made.speak('-rf $(id)', never)).toString();
    };
    expect(await say(toFile, '{file}')).toBe('-rf $(id)\n');
    expect(await say(toStdout)).toBe('-rf $(id)\n');
  });

  it('that gives nothing has failed', async () => {
    const path = await script('mute', 'exit 0');
    const mute = createSpeaker({ kind: 'command', argv: [path], timeoutMs: 45_000 }, deps);
    expect(await failureOf(mute.speak('x', never))).toBe('voice_malformed');
    expect(await failureOf(speaker({ apiKey: 'wrong' }).speak('x', never))).toBe(
      'voice_key_refused',
    );
  });
});
