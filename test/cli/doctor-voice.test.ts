// What the doctor says of what listens and speaks.

import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Finding } from '../../src/cli/doctor/machine-checks.ts';
import { startVoiceServer, VOICE_KEY } from '../support/voice-server.ts';
import { runNanobot, type TemporaryHome, temporaryHome } from './run-nanobot.ts';

let home: TemporaryHome;

beforeEach(async () => {
  home = await temporaryHome();
});
afterEach(() => home[Symbol.asyncDispose]());

async function check(voice: object, ...flags: string[]) {
  await home.writeConfig({ version: 1, voice });
  const { stdout } = await runNanobot(['doctor', '--json', ...flags], { home: home.path });
  const found: readonly Finding[] = JSON.parse(stdout);
  return (name: string) => found.find((finding) => finding.check === name);
}

test('programs that are not installed are found', async () => {
  const finding = await check({
    transcription: { engine: 'command', command: ['/nowhere/whisper', '{file}'] },
    speech: { engine: 'command', command: ['cat'] },
  });
  expect(finding('listening')).toMatchObject({ level: 'fail' });
  expect(finding('speaking')).toMatchObject({ level: 'ok', text: 'with cat' });
});

test('servers are asked when the doctor may, with the key', async () => {
  await using server = await startVoiceServer();
  const engine = { engine: 'openai', apiBase: server.base };
  const voice = {
    transcription: { ...engine, apiKey: VOICE_KEY },
    speech: { ...engine, apiKey: 'wrong' },
  };
  const quiet = await check(voice);
  expect(server.requestCount()).toBe(0);
  expect(quiet('listening')?.text).toContain('not tested');
  const live = await check(voice, '--live');
  expect(live('listening')).toMatchObject({ level: 'ok' });
  expect(live('speaking')).toMatchObject({ level: 'fail' });
  expect(live('speaking')?.text).toContain('refuses the key');
});
