// Configuration of voice: the engines of transcription and speech, and the programs with which the
// terminal records and plays.

import { z } from 'zod';
import {
  choice,
  count,
  type Problems,
  seconds,
  secret,
  section,
  text,
  unless,
  unlessWebAddress,
} from '../../kernel/config/settings-fields.ts';
import { t } from '../../lib/texts.ts';

const command = () => z.array(z.string()).max(50).default([]);
const MOST_MONEY = 1_000_000;
const price = () => z.number().min(0).max(MOST_MONEY).optional();
const own = t`empty: the provider with the name of the engine`;

const transcription = z.strictObject({
  engine: choice(['auto', 'openai', 'groq', 'command', 'off'], 'auto').describe(
    'Engine that transcribes voice messages. auto: Groq or OpenAI if a key is set; openai: also any ' +
      'compatible server, see apiBase; command: a program on this machine.',
  ),
  model: text().describe('Model. Empty: whisper-large-v3-turbo at Groq, else whisper-1.'),
  apiBase: text().describe(`Base URL, e.g. https://stt.example.org/v1; ${own}.`),
  apiKey: secret()
    .default('')
    .describe(`API key. Empty: the key of the provider, unless apiBase is set.`),
  command: command().describe(
    'For the engine command: a program and its arguments, {file} for the audio, {language} for the ' +
      'language or auto. It prints the text, or JSON with text and language.',
  ),
  language: z
    .string()
    .regex(/^(?:[a-z]{2,3})?$/, 'Write its code of two or three letters, e.g. de')
    .default('')
    .describe('Spoken language, e.g. de. Empty: detected.'),
  maxBytes: count(1000, 100_000_000, 25_000_000).describe('Largest audio file in bytes.'),
  maxSecs: seconds(1, 36_000, 1200).describe('Longest audio in seconds.'),
  timeoutSecs: seconds(1, 600, 120).describe('Longest wait for the transcription.'),
  pricePerMinute: price().describe(
    'Price of a minute of audio in limits.budget.currency, if it is unknown or different.',
  ),
});

const speech = z.strictObject({
  engine: choice(['auto', 'openai', 'command', 'off'], 'off').describe(
    'Engine that speaks answers. auto: OpenAI if a key is set; the others as above.',
  ),
  model: text('gpt-4o-mini-tts').describe('Model that speaks, by its name at the engine.'),
  voice: text('alloy').describe('Voice, by its name at the engine.'),
  format: choice(['opus', 'mp3'], 'opus').describe(
    'opus: sent as voice message; mp3: sent as audio file.',
  ),
  apiBase: text().describe(`Base URL; ${own}.`),
  apiKey: secret()
    .default('')
    .describe(`API key. Empty: the key of the provider, unless apiBase is set.`),
  command: command().describe(
    'For the engine command: a program that gets the text on stdin and writes audio to {file}, or ' +
      'to stdout if no argument has {file}.',
  ),
  timeoutSecs: seconds(1, 300, 30).describe('Longest wait before the answer is sent only as text.'),
  pricePerMillionChars: price().describe('Price of a million characters, as above.'),
});

const terminal = z.strictObject({
  record: command().describe(
    'Program that records to {file} until it is stopped. Empty: detected.',
  ),
  play: command().describe('Program that plays {file}. Empty: detected.'),
});

export const voiceSchema = section({
  transcription: transcription.prefault({}),
  speech: speech.prefault({}),
  reply: choice(['mirror', 'always', 'never'], 'mirror').describe(
    'Which answers are also spoken, if speech has an engine: answers to voice messages, all or none.',
  ),
  terminal: terminal.prefault({}),
});

export type VoiceConfig = z.infer<typeof voiceSchema>;

// Checks: engines without what they need, settings of engines that are not in use.

export function voiceConflicts({ voice }: { readonly voice: VoiceConfig }): Problems {
  const { transcription: listening, speech: speaking, terminal: programs, reply } = voice;
  return [
    ...engineProblems('voice.transcription', listening),
    ...engineProblems('voice.speech', speaking),
    ...fileProblems('voice.transcription.command', listening.command),
    ...fileProblems('voice.terminal.record', programs.record),
    ...fileProblems('voice.terminal.play', programs.play),
    ...unless(
      reply !== 'always' || speaking.engine !== 'off',
      'voice.reply',
      t`no speech engine is set`,
      t`Set voice.speech.engine, or voice.reply to "never".`,
    ),
  ];
}

type Engine = {
  readonly engine: string;
  readonly apiBase: string;
  readonly command: readonly string[];
};

function engineProblems(path: string, { engine, apiBase, command }: Engine): Problems {
  const isCommand = engine === 'command';
  return [
    ...unless(
      !isCommand || (command[0] ?? '') !== '',
      `${path}.command`,
      t`the engine is "command", but no command is set`,
      t`Set the program and its arguments, e.g. ["whisper-cli", "-f", "{file}"].`,
    ),
    ...unless(
      isCommand || command.length === 0,
      `${path}.command`,
      t`a command is set, but the engine is not "command"`,
      t`Set ${path}.engine to "command", or remove the command.`,
    ),
    ...unlessWebAddress(`${path}.apiBase`, apiBase, 'https://api.example.org/v1'),
    ...unless(
      apiBase === '' || (!isCommand && engine !== 'off'),
      `${path}.apiBase`,
      t`the engine does not use an address`,
      t`Set ${path}.engine to "openai", or remove apiBase.`,
    ),
  ];
}

/** Without the file a program has no input. */
const fileProblems = (path: string, argv: readonly string[]): Problems =>
  unless(
    argv.length === 0 || argv.some((part) => part.includes('{file}')),
    path,
    t`no argument has {file}`,
    t`Add {file} where the program expects the name of the audio file.`,
  );
