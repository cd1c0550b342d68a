// What is wrong with the voice settings: engines without what they need, settings of engines that are
// not in use.

import type { Config } from '../../../kernel/config/config.ts';
import type { ConfigProblem } from '../../../kernel/message/errors.ts';

export function voiceConflicts({ voice }: Config): readonly ConfigProblem[] {
  return [
    ...engineProblems('transcription', voice.transcription),
    ...engineProblems('speech', voice.speech),
    ...fileProblems(voice),
    ...replyProblems(voice),
  ];
}

type Engine = {
  readonly engine: string;
  readonly apiBase: string;
  readonly apiKey: string;
  readonly command: readonly string[];
};

function engineProblems(
  part: 'transcription' | 'speech',
  engine: Engine,
): readonly ConfigProblem[] {
  const path = `voice.${part}`;
  const problems: ConfigProblem[] = [];
  if (engine.engine === 'command' && (engine.command[0] ?? '') === '') {
    const remedy = 'Write the program and its arguments, like ["whisper-cli", "-f", "{file}"].';
    problems.push({
      path: `${path}.command`,
      problem: 'the engine is a command, but none',
      remedy,
    });
  }
  if (engine.engine !== 'command' && engine.command.length > 0) {
    const remedy = `Set ${path}.engine to "command", or remove the command.`;
    problems.push({ path: `${path}.command`, problem: 'no engine runs the command', remedy });
  }
  if (engine.apiBase !== '' && !isWebAddress(engine.apiBase)) {
    const problem = `"${engine.apiBase}" is no http or https address`;
    const remedy = 'Write it like https://api.example.org/v1.';
    problems.push({ path: `${path}.apiBase`, problem, remedy });
  }
  const isOverNet = engine.engine !== 'command' && engine.engine !== 'off';
  if (!isOverNet && engine.apiBase !== '') {
    const remedy = `Set ${path}.engine to "openai", or remove the address.`;
    problems.push({ path: `${path}.apiBase`, problem: 'no engine is asked there', remedy });
  }
  return problems;
}

/** Without the file a program has nothing to listen to. */
function fileProblems({ transcription, terminal }: Config['voice']): readonly ConfigProblem[] {
  const commands = [
    ['voice.transcription.command', transcription.command],
    ['voice.terminal.record', terminal.record],
    ['voice.terminal.play', terminal.play],
  ] as const;
  return commands
    .filter(([, argv]) => argv.length > 0 && !argv.some((part) => part.includes('{file}')))
    .map(([path]) => ({
      path,
      problem: 'no argument has {file}',
      remedy: 'Put {file} where the program takes the name of the sound file.',
    }));
}

function replyProblems({ reply, speech }: Config['voice']): readonly ConfigProblem[] {
  if (reply !== 'always' || speech.engine !== 'off') return [];
  const remedy = 'Set voice.speech.engine, or voice.reply to "never".';
  return [{ path: 'voice.reply', problem: 'no engine speaks the answers', remedy }];
}

const isWebAddress = (url: string) => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
