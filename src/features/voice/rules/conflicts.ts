// What is wrong with the voice settings: engines without what they need, settings of engines that are
// not in use.

import type { Config } from '../../../kernel/config/config.ts';
import { isWebAddress, type Problems, unless } from '../../../kernel/config/problems.ts';

export function voiceConflicts({ voice }: Config): Problems {
  const { transcription, speech, terminal, reply } = voice;
  return [
    ...engineProblems('voice.transcription', transcription),
    ...engineProblems('voice.speech', speech),
    ...fileProblems('voice.transcription.command', transcription.command),
    ...fileProblems('voice.terminal.record', terminal.record),
    ...fileProblems('voice.terminal.play', terminal.play),
    ...unless(
      reply !== 'always' || speech.engine !== 'off',
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
