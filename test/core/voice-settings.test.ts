// Which engine the settings mean, and what is wrong with them.

import { describe, expect, it } from 'vitest';
import {
  listeningCost,
  longestMs,
  speakingCost,
  speechEngine,
  transcriptionEngine,
} from '../../src/features/voice/rules/voice-engine.ts';
import { checkConfig } from '../../src/kernel/config/check.ts';
import { ConfigError } from '../../src/kernel/message/errors.ts';

const configOf = (voice: object) =>
  checkConfig(JSON.stringify({ version: 1, voice }), {}).config.voice;

const KNOWN = {
  groq: { apiBase: 'https://groq.test/v1', apiKey: 'gsk' },
  openai: { apiBase: 'https://openai.test/v1', apiKey: 'sk' },
};
const transcription = (settings: object, known: Partial<typeof KNOWN> = KNOWN) =>
  transcriptionEngine(
    configOf({ transcription: settings }),
    { to: (vendor) => known[vendor], proxy: '' },
    'USD',
  );
const speech = (settings: object, known: Partial<typeof KNOWN> = KNOWN) =>
  speechEngine(configOf({ speech: settings }), { to: (vendor) => known[vendor], proxy: '' }, 'USD');

describe('what listens', () => {
  it.each([
    [{}, KNOWN, { name: 'groq', model: 'whisper-large-v3-turbo', apiKey: 'gsk' }],
    [{}, { openai: KNOWN.openai }, { name: 'openai', model: 'whisper-1', apiKey: 'sk' }],
    [{ engine: 'openai', model: 'x' }, KNOWN, { apiBase: 'https://openai.test/v1', model: 'x' }],
    [{ engine: 'groq', apiKey: 'own' }, KNOWN, { apiBase: KNOWN.groq.apiBase, apiKey: 'own' }],
    [{ engine: 'command', command: ['w', '{file}'] }, {}, { argv: ['w', '{file}'] }],
  ])('by %j is the engine that is meant', (settings, known, engine) =>
    expect(transcription(settings, known)).toMatchObject(engine),
  );

  it('at an address of its own gets no key of another one', () => {
    expect(transcription({ apiBase: 'https://stt.test/v1/' })).toMatchObject({
      apiBase: 'https://stt.test/v1',
      apiKey: '',
    });
  });

  it('is nothing where no key is known, or where it is off', () => {
    expect(transcription({}, {})).toBeUndefined();
    expect(transcription({}, { openai: { ...KNOWN.openai, apiKey: '' } })).toBeUndefined();
    expect(transcription({ engine: 'off' })).toBeUndefined();
  });
});

describe('what it costs', () => {
  it('is as listed at its vendor, as set, and nobody knows it anywhere else', () => {
    expect(transcription({})?.price).toBeCloseTo(0.04 / 60);
    expect(transcription({ engine: 'openai' })?.price).toBe(0.006);
    expect(transcription({ apiBase: 'https://stt.test/v1' })?.price).toBeUndefined();
    expect(transcription({ apiBase: 'https://stt.test/v1', pricePerMinute: 0.01 })?.price).toBe(
      0.01,
    );
    expect(transcription({ engine: 'command', command: ['w', '{file}'] })?.price).toBe(0);
    expect(speech({ engine: 'openai', model: 'tts-1-hd' })?.price).toBe(30);
    expect(speech({ engine: 'openai', model: 'other' })?.price).toBeUndefined();
  });

  it('is reckoned from what the sound can be at most, whatever its sender says', () => {
    expect(longestMs(60_000, 1000, 1_200_000)).toBe(60_000);
    expect(longestMs(60_000, 90_000, 1_200_000)).toBe(90_000);
    expect(longestMs(60_000_000, 1000, 1_200_000)).toBe(1_200_000);
    expect(listeningCost(0.006, 90_000)).toBe(9000);
    expect(listeningCost(0.006, 1)).toBe(1000);
    expect(speakingCost(15, 'x'.repeat(1000))).toBe(15_000);
  });
});

describe('what speaks', () => {
  it('is nothing unless it is set', () => {
    expect(speech({})).toBeUndefined();
    expect(speech({ engine: 'auto' })).toMatchObject({ name: 'openai', format: 'opus' });
    expect(speech({ engine: 'auto' }, {})).toBeUndefined();
    expect(speech({ engine: 'command', command: ['piper'] }, {})).toMatchObject({
      argv: ['piper'],
    });
  });
});

describe('settings that do not fit', () => {
  it.each([
    [{ transcription: { engine: 'command' } }, 'voice.transcription.command'],
    [{ transcription: { command: ['x', '{file}'] } }, 'voice.transcription.command'],
    [{ transcription: { engine: 'command', command: ['x'] } }, 'voice.transcription.command'],
    [{ transcription: { apiBase: 'ftp://x' } }, 'voice.transcription.apiBase'],
    [{ speech: { apiBase: 'https://x.test' } }, 'voice.speech.apiBase'],
    [{ terminal: { record: ['rec'] } }, 'voice.terminal.record'],
    [{ reply: 'always' }, 'voice.reply'],
    [{ transcription: { language: 'German' } }, 'voice.transcription.language'],
  ])('%j is pointed out at %s', (voice, path) => {
    const check = () => configOf(voice);
    expect(check).toThrow(ConfigError);
    try {
      check();
    } catch (error) {
      const problems = error instanceof ConfigError ? error.problems : [];
      expect(problems.map((one) => one.path)).toContain(path);
    }
  });
});
