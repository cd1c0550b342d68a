// The conversation at the terminal: question, streaming answer, next question, by text or voice;
// and one question with one answer, for scripts. Commands with a slash go to the gateway, except
// for leaving.

import { createInterface } from 'node:readline';
import type { Terminal } from '../../cli/terminal.ts';
import { COMMAND_LIST } from '../../features/command-list.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { t } from '../../lib/texts.ts';
import {
  type AnswerEvent,
  type Conversation,
  createQuestions,
  type History,
  openHistory,
  type Questions,
} from './conversation.ts';
import {
  AnswerScreen,
  listenForStopKeys,
  readQuestion,
  renderTerminal,
  toolLine,
} from './screen.ts';
import type { VoiceMode } from './voice-mode.ts';

const LEAVE = ['/exit', '/quit'];
const SPEAK = '/voice';
const KEYS_HELP = [
  t`Enter sends. Alt+Enter, or \\ at the end of a line, starts a new line.`,
  t`Esc or Ctrl+C stops an answer. Ctrl+C twice, Ctrl+D or /exit quits.`,
  '/help lists the commands. /voice records your question.',
].join('\n');

/**
 * Runs until the person leaves or the signal aborts; `isSpoken`: begins with a recording. Resolves
 * with 'failed' if there is no terminal and a question got no answer, for the exit code.
 */
export async function talk(
  terminal: Terminal,
  conversation: Conversation,
  signal: AbortSignal,
  isSpoken = false,
): Promise<'failed' | undefined> {
  const questions = createQuestions(conversation);
  if (!terminal.interactive) return talkByLines(terminal, questions, signal);
  const history = await openHistory(terminal.home.history);
  terminal.print(terminal.style('dim', KEYS_HELP));
  const speech = createSpokenTalk(terminal);
  let typedAhead = '';
  for (let isFirst = true; ; isFirst = false) {
    const typed =
      isFirst && isSpoken ? SPEAK : await nextQuestion(terminal, history, typedAhead, speech.isOn);
    if (typed === undefined || LEAVE.includes(typed) || signal.aborted) return;
    typedAhead = '';
    const isRecorded = typed === SPEAK || typed === '';
    const text = isRecorded ? await speech.listen(signal) : typed;
    if (text === undefined) continue;
    if (!isRecorded) await history.add(text);
    const shown = await answer(terminal, { questions, stop: conversation.stop }, text, signal);
    if (shown === 'left') return;
    typedAhead = shown.typedAhead;
    if (isRecorded) await speech.speak(shown.markdown, signal);
  }
}

/** Undefined when the person leaves: Ctrl+D, or Ctrl+C twice. Empty only if that is permitted. */
async function nextQuestion(
  terminal: Terminal,
  history: History,
  typedAhead: string,
  mayBeEmpty: boolean,
): Promise<string | undefined> {
  let interrupted = false;
  let ahead = typedAhead;
  for (;;) {
    const result = await readQuestion({
      input: terminal.input,
      output: terminal.output,
      prompt: terminal.style('green', '> '),
      history: history.entries,
      typedAhead: ahead,
      commands: [...COMMAND_LIST.map((command) => `/${command.name}`), SPEAK, ...LEAVE],
    });
    ahead = '';
    if (result.kind === 'end') return undefined;
    if (result.kind === 'text' && (mayBeEmpty || result.text !== '')) return result.text;
    if (result.kind === 'text') continue;
    terminal.print('');
    if (interrupted && !result.hadText) return undefined;
    interrupted = true;
    terminal.print(terminal.style('dim', t`Press Ctrl+C again to quit.`));
  }
}

type Shown = { readonly typedAhead: string; readonly markdown: string } | 'left';

/** Shows the answer as it arrives. A second Ctrl+C leaves without waiting for its end. */
async function answer(
  terminal: Terminal,
  { questions, stop }: { readonly questions: Questions; stop(): Promise<void> },
  text: string,
  signal: AbortSignal,
): Promise<Shown> {
  const reading = new AbortController();
  const texts: string[] = [];
  let isStopping = false;
  using keys = listenForStopKeys(terminal.input, (key) => {
    if (isStopping && key === 'interrupt') reading.abort();
    if (!isStopping) stop().catch(() => reading.abort());
    isStopping = true;
  });
  const whole = AbortSignal.any([signal, reading.signal]);
  const screen = new AnswerScreen({ output: terminal.output, now: terminal.clock.monotonic });
  try {
    for await (const event of questions.ask(text, whole)) {
      if (event.type === 'done') {
        if (event.outcome === 'stopped') terminal.print(terminal.style('dim', t`Stopped.`));
        break;
      }
      if (event.type === 'text') {
        screen.settle(event.markdown);
        texts.push(event.markdown);
      } else {
        screen.show(event.update);
        const isCutOff = event.update.phase === 'ended' && event.update.result === undefined;
        if (isStopping && isCutOff) break;
      }
    }
    if (reading.signal.aborted) return 'left';
    return { typedAhead: keys.typedAhead, markdown: texts.join('\n\n') };
  } finally {
    screen.close();
    reading.abort();
  }
}

/** Without a terminal, every line of the input is one question. */
async function talkByLines(terminal: Terminal, questions: Questions, signal: AbortSignal) {
  let end: 'failed' | undefined;
  const lines = createInterface({ input: terminal.input, terminal: false });
  for await (const line of lines) {
    const text = line.trim();
    if (text === '') continue;
    if (LEAVE.includes(text) || signal.aborted) break;
    if ((await answerOnce(terminal, questions, text, signal)) === 'failed') end = 'failed';
  }
  return end;
}

// Voice in a conversation at the terminal: opened on first use; failures are reported, and the
// conversation continues in writing.

const HELP = t`Press Enter on an empty line, or type /voice, to record the next question.`;

function createSpokenTalk(terminal: Terminal) {
  let mode: VoiceMode | undefined;

  async function opened(): Promise<VoiceMode> {
    if (mode !== undefined) return mode;
    const { openVoiceMode } = await import('./voice-mode.ts');
    mode = await openVoiceMode(terminal);
    terminal.print(terminal.style('dim', HELP));
    return mode;
  }

  async function told<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof NanobotError)) throw error;
      terminal.print(terminal.style('yellow', t`Voice: ${error.message}.`));
      return undefined;
    }
  }

  return {
    /** Enter on an empty line records. */
    get isOn(): boolean {
      return mode !== undefined;
    },
    /** The next question; undefined if there is none. */
    listen: (signal: AbortSignal): Promise<string | undefined> =>
      told(async () => {
        const text = await (await opened()).listen(signal);
        if (text !== undefined) terminal.print(terminal.style('green', `> ${text}`));
        return text;
      }),
    speak: (markdown: string, signal: AbortSignal) =>
      told(async () => (await opened()).speak(markdown, signal)),
  };
}

// One question, one answer, for scripts: only the answer on stdout, the agent's activity on stderr.

export type Outcome = Extract<AnswerEvent, { type: 'done' }>['outcome'];

/** Resolves with the outcome. The answer of a failed turn is the error: it goes to stderr. */
export async function answerOnce(
  terminal: Terminal,
  questions: Questions,
  text: string,
  signal: AbortSignal,
): Promise<Outcome> {
  const answers: string[] = [];
  const reporter = createReporter(terminal);
  for await (const event of questions.ask(text, signal)) {
    if (event.type === 'live') reporter(event);
    else if (event.type === 'text') answers.push(event.markdown);
    else {
      const hasColors = terminal.output.isTTY === true && (terminal.env['NO_COLOR'] ?? '') === '';
      const say = event.outcome === 'failed' ? terminal.note : terminal.print;
      for (const answer of answers) say(renderTerminal(answer, hasColors));
      return event.outcome;
    }
  }
  signal.throwIfAborted();
  return 'failed';
}

/** Reports each tool once when it starts and once when it ends; each notice once. */
function createReporter(terminal: Terminal) {
  const reported = new Set<string>();
  const report = (line: string, key: string) => {
    if (reported.has(key)) return;
    reported.add(key);
    terminal.note(renderTerminal(line, false));
  };
  return ({ update }: Extract<AnswerEvent, { type: 'live' }>) => {
    for (const tool of update.tools) report(toolLine(tool), `${tool.callId} ${tool.status}`);
    if (update.notice !== undefined) report(update.notice, update.notice);
  };
}
