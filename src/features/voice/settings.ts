// The voice part of the configuration: what listens to voice messages, what speaks answers, and the
// programs by which the terminal records and plays.

import { z } from 'zod';
import { isWebAddress, type Problems, unless } from '../../kernel/config/problems.ts';
import {
  choice,
  count,
  seconds,
  secret,
  section,
  text,
} from '../../kernel/config/settings-fields.ts';

const command = () => z.array(z.string()).max(50).default([]);
const MOST_MONEY = 1_000_000;
const price = () => z.number().min(0).max(MOST_MONEY).optional();
const own = 'empty: that of the provider of the engine’s name';

const transcription = z.strictObject({
  engine: choice(['auto', 'openai', 'groq', 'command', 'off'], 'auto').describe(
    'What listens to voice messages. auto: Groq or OpenAI where a key of theirs is known; openai: ' +
      'also any server that speaks like it, see apiBase; command: a program of this machine.',
  ),
  model: text().describe('Empty: whisper-large-v3-turbo at Groq, else whisper-1.'),
  apiBase: text().describe(`Base URL, like https://stt.example.org/v1; ${own}.`),
  apiKey: secret().default('').describe(`Empty: that of the provider, unless apiBase is set.`),
  command: command().describe(
    'For the engine command: a program and its arguments, {file} for the sound, {language} for the ' +
      'language or auto. It prints the words, or JSON with text and language.',
  ),
  language: z
    .string()
    .regex(/^(?:[a-z]{2,3})?$/)
    .default('')
    .describe('What is spoken, like de; empty: found out.'),
  maxBytes: count(1000, 100_000_000, 25_000_000).describe('Largest sound listened to.'),
  maxSecs: seconds(1, 36_000, 1200).describe('Longest sound listened to.'),
  timeoutSecs: seconds(1, 600, 120).describe('Longest wait for the words.'),
  pricePerMinute: price().describe(
    'Money for a minute of sound, where it is not known or is another; in limits.budget.currency.',
  ),
});

const speech = z.strictObject({
  engine: choice(['auto', 'openai', 'command', 'off'], 'off').describe(
    'What speaks answers. auto: OpenAI where its key is known; the others as above.',
  ),
  model: text('gpt-4o-mini-tts'),
  voice: text('alloy').describe('As the engine calls it.'),
  format: choice(['opus', 'mp3'], 'opus').describe(
    'opus becomes a voice message everywhere, mp3 an audio file.',
  ),
  apiBase: text().describe(`Base URL; ${own}.`),
  apiKey: secret().default('').describe(`Empty: that of the provider, unless apiBase is set.`),
  command: command().describe(
    'For the engine command: a program that gets the text on stdin and writes sound to {file}, or ' +
      'to stdout where no argument has {file}.',
  ),
  timeoutSecs: seconds(1, 300, 30).describe('Longest wait before the text goes alone.'),
  pricePerMillionChars: price().describe('Money for a million characters, as above.'),
});

const terminal = z.strictObject({
  record: command().describe('Program that records into {file} until it is stopped; empty: found.'),
  play: command().describe('Program that plays {file}; empty: found.'),
});

export const voiceSchema = section({
  transcription: transcription.prefault({}),
  speech: speech.prefault({}),
  reply: choice(['mirror', 'always', 'never'], 'mirror').describe(
    'Answers spoken besides their text, where speech has an engine: to spoken questions, all, none.',
  ),
  terminal: terminal.prefault({}),
});

export type VoiceConfig = z.infer<typeof voiceSchema>;

// What may be wrong with it: engines without what they need, settings of engines that are not in use.

export function voiceConflicts(voice: VoiceConfig): Problems {
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
      'no engine speaks the answers',
      'Set voice.speech.engine, or voice.reply to "never".',
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
      'the engine is a command, but none',
      'Write the program and its arguments, like ["whisper-cli", "-f", "{file}"].',
    ),
    ...unless(
      isCommand || command.length === 0,
      `${path}.command`,
      'no engine runs the command',
      `Set ${path}.engine to "command", or remove the command.`,
    ),
    ...unless(
      apiBase === '' || isWebAddress(apiBase),
      `${path}.apiBase`,
      `"${apiBase}" is no http or https address`,
      'Write it like https://api.example.org/v1.',
    ),
    ...unless(
      apiBase === '' || (!isCommand && engine !== 'off'),
      `${path}.apiBase`,
      'no engine is asked there',
      `Set ${path}.engine to "openai", or remove the address.`,
    ),
  ];
}

/** Without the file a program has nothing to listen to. */
const fileProblems = (path: string, argv: readonly string[]): Problems =>
  unless(
    argv.length === 0 || argv.some((part) => part.includes('{file}')),
    path,
    'no argument has {file}',
    'Put {file} where the program takes the name of the sound file.',
  );
