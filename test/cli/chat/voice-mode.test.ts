// Speaking at the terminal, with programs that stand in for the microphone and the loudspeaker.

import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { LocalEvent } from '../../../src/channels/local-channel.ts';
import type { Conversation } from '../../../src/channels/terminal/conversation.ts';
import { talk } from '../../../src/channels/terminal/repl.ts';
import type { Terminal } from '../../../src/cli/terminal.ts';
import { homeOf } from '../../../src/kernel/config/files/home.ts';
import { messageId } from '../../../src/kernel/message/ids.ts';
import { systemClock } from '../../../src/lib/time/clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startVoiceServer, VOICE_KEY, type VoiceServer } from '../../support/voice-server.ts';

const never = new AbortController().signal;

let server: VoiceServer;
let folder: string;
let input: PassThrough;
let shown: string;

beforeAll(async () => {
  server = await startVoiceServer();
});
afterAll(() => server[Symbol.asyncDispose]());

beforeEach(async () => {
  folder = await temporaryFolder();
  input = new PassThrough();
  shown = '';
});

/** It begins its file at once and ends with the words when it is stopped, as recorders do. */
const RECORDER = `trap 'printf "%47sTell me more" "" > "$1"; exit 0' INT
touch $FOLDER/recording; while :; do sleep 0.05; done`;

async function script(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, `#!/bin/sh\n${text.replaceAll('$FOLDER', folder)}\n`);
  await chmod(path, 0o700);
  return path;
}

async function terminalWith(voice: object): Promise<Terminal> {
  const config = { version: 1, voice };
  await writeFile(join(folder, 'config.json'), JSON.stringify(config), { mode: 0o600 });
  const env = { PATH: '/usr/bin:/bin', HOME: folder, NANOBOT_HOME: folder };
  const output = new PassThrough();
  output.on('data', (part: Buffer) => {
    shown += part.toString();
  });
  const print = (line: string) => void output.write(`${line}\n`);
  return {
    ...{ env, home: homeOf(env), clock: systemClock, interactive: true },
    input: Object.assign(input, { setRawMode: () => input }) as unknown as NodeJS.ReadStream,
    output: output as unknown as NodeJS.WriteStream,
    ...{ print, note: print, tell: print },
    printJson: () => undefined,
    typed: (text) => text,
    style: (_style, text) => text,
  };
}

/** Answers every question, and remembers what it was asked. */
function conversation(asked: string[]): Conversation {
  const events: LocalEvent[] = [];
  const event = (id: string, from: 'person' | 'agent', text: string): LocalEvent => ({
    ...{ type: 'said', seq: events.length + 1, id: messageId(id), from, text, at: 0 },
    ...(from === 'agent' ? { replyTo: messageId(id.replace('/reply', '')) } : {}),
  });
  return {
    async submit(clientId, text) {
      asked.push(text);
      events.push(event(`terminal:x:${clientId}`, 'person', text));
      events.push(event(`terminal:x:${clientId}/reply`, 'agent', '**Certainly.**'));
    },
    async *events(after) {
      yield* events.slice(after);
    },
    stop: async () => undefined,
  };
}

const until = (text: string) => expect.poll(() => shown, { timeout: 45_000 }).toContain(text);
const engine = () => ({ engine: 'openai', apiBase: server.base, apiKey: VOICE_KEY });

it('a question is recorded until Enter, and its answer is played', async () => {
  const recorder = await script('record', RECORDER);
  const player = await script('play', 'cat "$1" > $FOLDER/played');
  const terminal = await terminalWith({
    transcription: engine(),
    speech: engine(),
    terminal: { record: [recorder, '{file}'], play: [player, '{file}'] },
  });
  const asked: string[] = [];
  const talking = talk(terminal, conversation(asked), never, true);
  await until('recording, press Enter to stop');
  await expect.poll(() => readFile(join(folder, 'recording')).catch(() => undefined)).toBeDefined();
  input.write('\r');
  await expect
    .poll(() => readFile(join(folder, 'played'), 'utf8').catch(() => ''), { timeout: 45_000 })
    .toContain('Certainly.');
  expect(asked).toEqual(['[voice message, en]: Tell me more']);
  expect(server.heard.at(-1)).toMatchObject({ name: 'sound.wav', type: 'audio/wav' });
  expect(server.spoken.at(-1)).toMatchObject({ input: 'Certainly.', format: 'wav' });
  // While the answer is played, a key stops it and is no question.
  await expect
    .poll(() => shown.lastIndexOf('> ') > shown.lastIndexOf('Certainly.'), { timeout: 45_000 })
    .toBe(true);
  input.write('/exit\r');
  await talking;
});

it.each([
  ['no engine', { transcription: { engine: 'off' } }, 'no transcription engine'],
  [
    'no recorder',
    {
      transcription: { engine: 'command', command: ['true', '{file}'] },
      terminal: { record: ['/nowhere/record', '{file}'] },
    },
    '/nowhere/record of voice.terminal.record is not installed',
  ],
])('with %s it says so, and goes on in writing', async (_what, voice, words) => {
  const asked: string[] = [];
  const talking = talk(await terminalWith(voice), conversation(asked), never, true);
  await until(words);
  input.write('In writing\r');
  await expect.poll(() => asked).toEqual(['In writing']);
  await until('Certainly.');
  input.write('/exit\r');
  await talking;
});
