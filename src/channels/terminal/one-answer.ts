// One question, one answer, for scripts: only the answer on stdout, what the agent does on stderr.

import type { Terminal } from '../../cli/terminal.ts';
import { toolLine } from './answer-screen.ts';
import type { AnswerEvent, Questions } from './follow-answer.ts';
import { renderTerminal } from './terminal-markdown.ts';

export type Outcome = Extract<AnswerEvent, { type: 'done' }>['outcome'];

/** Resolves with how it ended. The answer of a failed turn is what went wrong: it goes to stderr. */
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

/** Each tool once when it starts and once when it ends; each notice once. */
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
