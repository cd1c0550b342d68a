// The voice part of the configuration: what listens to voice messages, what speaks answers, and the
// programs by which the terminal records and plays.

import { z } from 'zod';
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
