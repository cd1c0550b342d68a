// The conversation at the terminal: question, streaming answer, next question. Commands with a slash
// are the gateway's own, but for leaving.

import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import { COMMANDS } from '../../gateway/commands.ts';
import type { Terminal } from '../terminal.ts';
import { createAnswerScreen } from './answer-screen.ts';
import type { Conversation } from './conversation.ts';
import { followAnswer } from './follow-answer.ts';
import { type History, openHistory } from './history.ts';
import { readQuestion } from './line-input.ts';
import { answerOnce } from './one-answer.ts';
import { listenForStopKeys } from './stop-keys.ts';

const LEAVE = ['/exit', '/quit'];
const KEYS_HELP =
  'Enter sends; a \\ at the end of a line, or Alt+Enter, goes on below. ' +
  'Esc or Ctrl+C stops an answer; Ctrl+C twice, Ctrl+D or /exit leaves. /help lists the commands.';

/** Talks until the person leaves or the signal aborts. */
export async function talk(
  terminal: Terminal,
  conversation: Conversation,
  signal: AbortSignal,
): Promise<void> {
  if (!terminal.interactive) return talkByLines(terminal, conversation, signal);
  const history = await openHistory(terminal.home.history);
  terminal.print(terminal.style('dim', KEYS_HELP));
  let typedAhead = '';
  for (;;) {
    const text = await nextQuestion(terminal, history, typedAhead);
    if (text === undefined || LEAVE.includes(text) || signal.aborted) return;
    await history.add(text);
    typedAhead = await answer(terminal, conversation, text, signal);
  }
}

/** Undefined when the person leaves: Ctrl+D, or Ctrl+C twice. */
async function nextQuestion(
  terminal: Terminal,
  history: History,
  typedAhead: string,
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
      commands: [...COMMANDS.map((command) => `/${command.name}`), ...LEAVE],
    });
    ahead = '';
    if (result.kind === 'end') return undefined;
    if (result.kind === 'text' && result.text !== '') return result.text;
    if (result.kind === 'text') continue;
    terminal.print('');
    if (interrupted && !result.hadText) return undefined;
    interrupted = true;
    terminal.print(terminal.style('dim', 'Ctrl+C again leaves.'));
  }
}

/** Shows the answer as it comes; resolves with what was typed meanwhile. */
async function answer(
  terminal: Terminal,
  conversation: Conversation,
  text: string,
  signal: AbortSignal,
): Promise<string> {
  const clientId = randomUUID();
  const reading = new AbortController();
  let stops = 0;
  using keys = listenForStopKeys(terminal.input, () => {
    stops += 1;
    // The second time the person no longer waits for what the gateway has to say.
    if (stops > 1) reading.abort();
    else conversation.stop().catch(() => reading.abort());
  });
  const whole = AbortSignal.any([signal, reading.signal]);
  const screen = createAnswerScreen({ output: terminal.output, now: terminal.clock.monotonic });
  const events = conversation.events(0, whole);
  await conversation.submit(clientId, text);
  for await (const event of followAnswer(events, clientId)) {
    if (event.type === 'live') {
      screen.show(event.update);
      if (stops > 0 && event.update.phase === 'ended') break;
    } else if (event.type === 'text') screen.settle(event.markdown);
    else break;
  }
  screen.close();
  reading.abort();
  return keys.typedAhead;
}

/** Without a person there, every line of the input is one question. */
async function talkByLines(terminal: Terminal, conversation: Conversation, signal: AbortSignal) {
  const lines = createInterface({ input: terminal.input, terminal: false });
  for await (const line of lines) {
    const text = line.trim();
    if (text === '') continue;
    if (LEAVE.includes(text) || signal.aborted) return;
    await answerOnce(terminal, conversation, text, signal);
  }
}
