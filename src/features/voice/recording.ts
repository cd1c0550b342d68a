// Records and plays audio with programs of this machine: the configured one, or the first one
// found.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Environment } from '../../kernel/config/environment.ts';
import { isOnPath } from '../../lib/files/files.ts';
import { isOver, killGroup, spawnGroup } from '../../lib/process-group.ts';
import { t } from '../../lib/texts.ts';
import type { Argv } from './rules/voice-engine.ts';
import { filledIn, inPrivateFolder, minimalEnvironment, runProgram } from './run-program.ts';
import type { EngineDeps } from './transcribe.ts';
import { type Sound, VoiceError } from './voice.ts';

const RECORDERS: readonly Argv[] = [
  ['arecord', '-q', '-f', 'cd', '-t', 'wav', '{file}'],
  ['rec', '-q', '{file}'],
  process.platform === 'darwin'
    ? ['ffmpeg', '-loglevel', 'quiet', '-y', '-f', 'avfoundation', '-i', ':0', '{file}']
    : ['ffmpeg', '-loglevel', 'quiet', '-y', '-f', 'pulse', '-i', 'default', '{file}'],
];
const PLAYERS: readonly Argv[] = [
  ['aplay', '-q', '{file}'],
  ['paplay', '{file}'],
  ['ffplay', '-nodisp', '-autoexit', '-loglevel', 'quiet', '{file}'],
  ['afplay', '{file}'],
];
/** A WAV file without audio. */
const EMPTY_BYTES = 44;
const END_MS = 3000;
const LONGEST_PLAY_MS = 600_000;

/** @throws VoiceError `voice_command_missing` where none is configured and none found */
export const recorderFor = (set: readonly string[], env: Environment): Promise<Argv> =>
  chosen(set, RECORDERS, env, 'voice.terminal.record');

/** @throws VoiceError `voice_command_missing` where none is configured and none found */
export const playerFor = (set: readonly string[], env: Environment): Promise<Argv> =>
  chosen(set, PLAYERS, env, 'voice.terminal.play');

async function chosen(
  [program, ...args]: readonly string[],
  usual: readonly Argv[],
  env: Environment,
  setting: string,
): Promise<Argv> {
  if (program !== undefined && program !== '') {
    if (await isOnPath(program, env)) return [program, ...args];
    throw new VoiceError('voice_command_missing', t`${program} of ${setting} is not installed`);
  }
  for (const argv of usual) if (await isOnPath(argv[0], env)) return argv;
  const names = [...new Set(usual.map(([name]) => name))].join(', ');
  const reason = t`none of ${names} is installed; install one or set ${setting}`;
  throw new VoiceError('voice_command_missing', reason);
}

/** Records until `end` settles. @throws VoiceError, the reason of `end` */
export function record(argv: Argv, end: Promise<void>, { env, clock }: EngineDeps): Promise<Sound> {
  return inPrivateFolder(async (folder) => {
    const file = join(folder, 'recording.wav');
    const [program, ...args] = filledIn(argv, { file });
    const child = spawnGroup([program, ...args], {
      cwd: folder,
      env: minimalEnvironment(env),
      stdio: 'ignore',
    });
    const exited = new Promise<void>((resolve, reject) => {
      child.on('exit', () => resolve());
      child.on('error', (cause) =>
        reject(new VoiceError('voice_command_missing', t`cannot run ${program}`, { cause })),
      );
    });
    try {
      await Promise.race([end, exited]);
      // Like Ctrl+C: the program completes its file.
      child.kill('SIGINT');
      using _timer = clock.timer(END_MS, () => killGroup(child));
      await exited;
    } finally {
      if (!isOver(child)) killGroup(child);
    }
    const content = await readFile(file).catch(() => Buffer.alloc(0));
    if (content.length > EMPTY_BYTES) return { content, mimeType: 'audio/wav' };
    throw new VoiceError('voice_command_failed', t`${program} recorded nothing`);
  });
}

/** Resolves when it was played. @throws VoiceError, the signal's reason */
export function play(
  argv: Argv,
  sound: Uint8Array,
  { env, clock }: EngineDeps,
  signal: AbortSignal,
): Promise<void> {
  return inPrivateFolder(async (folder) => {
    const file = join(folder, 'answer.wav');
    await writeFile(file, sound, { mode: 0o600 });
    const run = { argv: filledIn(argv, { file }), folder, env };
    await runProgram(
      { ...run, timeoutMs: LONGEST_PLAY_MS, maxOutputBytes: 1_000_000 },
      clock,
      signal,
    );
  });
}
