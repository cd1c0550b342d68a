// The questions and steps of the setup: a step can be repeated or skipped, and finished steps stay
// saved. Without a person, a missing answer is an error that names its flag.

import * as prompts from '@clack/prompts';
import {
  type Asker,
  problemOfAnswer,
  type Question,
  SetupCancelled,
  type Step,
  setupProblem,
} from '../../features/setup/asker.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { qrMatrix, qrTerminalLines, qrTerminalSize } from '../../lib/qr-code.ts';
import { t } from '../../lib/texts.ts';
import { CommandFailure, EXIT, type Terminal, untilStopped } from '../terminal.ts';

/** `command`: the one that takes the flags of the questions. */
export function createAsker(
  terminal: Terminal,
  interactive: boolean,
  command = 'nanobot onboard',
): Asker {
  return interactive ? personAsker(terminal) : scriptAsker(terminal, command);
}

function personAsker(terminal: Terminal): Asker {
  const { typed } = terminal;
  /** The last answer to each question, offered again where its step is repeated. */
  const before = new Map<string, string>();
  return {
    interactive: true,
    async text(question) {
      const { message, flag, signal } = question;
      const initial = before.get(flag) ?? question.initial;
      const given = initial === undefined ? {} : { initialValue: initial };
      const answer = await prompts.text({
        ...{ message, ...given, validate: validator(question) },
        ...(signal === undefined ? {} : { signal }),
      });
      const text = (answered(answer) ?? '').trim();
      before.set(flag, text);
      return text;
    },
    async secret(question) {
      const { flag } = question;
      const kept = before.get(flag) ?? '';
      const message =
        kept === '' ? question.message : t`${question.message} (leave empty to keep the last one)`;
      const optional = question.optional === true || kept !== '';
      const validate = validator({ ...question, optional });
      const answer = await prompts.password({ message, validate });
      const text = (answered(answer) ?? '').trim() || kept;
      before.set(flag, text);
      return text;
    },
    async choose(message, choices, otherwise) {
      const options = choices.map(({ value, label, hint }) => ({
        value: String(value),
        label,
        ...(hint === undefined ? {} : { hint }),
      }));
      const answer = answered(
        await prompts.select({
          message,
          options,
          initialValue: before.get(message) ?? String(otherwise),
        }),
      );
      before.set(message, answer);
      return choices.find(({ value }) => value === answer)?.value ?? otherwise;
    },
    confirm: async (message, initialValue) =>
      answered(await prompts.confirm({ message, initialValue })),
    async during(message, work, done) {
      const spinner = prompts.spinner();
      spinner.start(message);
      try {
        const result = await work();
        spinner.stop(done(result));
        return result;
      } catch (error) {
        spinner.error(message);
        throw error;
      }
    },
    say: (text) => prompts.log.message(typed(text)),
    warn: (text) => prompts.log.warn(typed(text)),
    link(text, address) {
      prompts.log.message(typed(`${text}\n${address}`));
      if (address.startsWith('https:')) showQrCode(terminal, address);
    },
    ...stoppable(terminal),
  };
}

function scriptAsker(terminal: Terminal, command: string): Asker {
  const missing = ({ message, flag, initial }: Question) => {
    if (initial !== undefined) return initial;
    throw new CommandFailure(
      EXIT.usage,
      t`"${message}" has no value. In a script, use: ${command} ${flag}`,
    );
  };
  return {
    interactive: false,
    text: async (question) => missing(question),
    secret: async (question) => missing(question),
    choose: async (_message, _choices, otherwise) => otherwise,
    confirm: async (_message, otherwise) => otherwise,
    async during(message, work, done) {
      terminal.note(`${message} ...`);
      const result = await work();
      terminal.tell(done(result));
      return result;
    },
    say: (text) => terminal.tell(text),
    warn: (text) => terminal.note(text),
    link: (text, address) => terminal.tell(`${text}\n${address}`),
    ...stoppable(terminal),
  };
}

/** What Ctrl+C ends. */
function stoppable(terminal: Terminal): Pick<Asker, 'logIn' | 'untilStopped' | 'later'> {
  return {
    logIn: async (login) => (await import('../login/log-in.ts')).logIn(terminal, login),
    untilStopped: (work) => untilStopped(() => undefined, work),
    later: t`Ctrl+C: later`,
  };
}

const validator = (question: Question) => (answer: string | undefined) =>
  problemOfAnswer(question, (answer ?? '').trim());

/** @throws SetupCancelled where the person pressed Ctrl+C */
function answered<Value>(answer: Value | typeof prompts.CANCEL_SYMBOL): Value {
  if (typeof answer === 'symbol') {
    throw new SetupCancelled();
  }
  return answer;
}

// The steps of the setup. A step that fails or is cancelled can be repeated or skipped, and
// finished steps stay saved.

/**
 * Runs one step; with a person, until it is done, skipped or the setup is ended.
 *
 * @throws CommandFailure where the person ends the setup; without a person what the step throws
 */
export async function settle(asker: Asker, name: string, step: Step): Promise<string | undefined> {
  for (let isRetry = false; ; isRetry = true) {
    try {
      return await step(isRetry);
    } catch (error) {
      if (!(error instanceof NanobotError) || !asker.interactive) throw error;
      if (!(error instanceof SetupCancelled)) asker.warn(setupProblem(error));
    }
    const next = await asker.choose(
      t`${name} is not set up.`,
      [
        { value: 'again', label: t`Try again`, hint: t`your answers are kept` },
        { value: 'skip', label: t`Skip ${name}` },
        { value: 'end', label: t`Quit the setup` },
      ],
      'again',
    );
    if (next === 'skip') return undefined;
    if (next === 'end') throw new SetupCancelled();
  }
}

/**
 * Runs the steps in order.
 * @throws CommandFailure that says what is saved when the setup is ended
 */
export async function settleAll(
  asker: Asker,
  steps: readonly (readonly [name: string, step: Step])[],
): Promise<void> {
  const saved: string[] = [];
  try {
    for (const [name, step] of steps) {
      const done = await settle(asker, name, step);
      if (done !== undefined) saved.push(done);
    }
  } catch (error) {
    if (!(error instanceof SetupCancelled)) throw error;
    const what = saved.length === 0 ? 'nothing' : saved.join(', ');
    throw new CommandFailure(EXIT.interrupted, t`Setup cancelled. Saved so far: ${what}.`);
  }
}

/** For the camera of a phone, where the window has room for it. */
function showQrCode({ output, env, print }: Terminal, link: string): void {
  const matrix = qrMatrix(link);
  const { columns, rows } = qrTerminalSize(matrix);
  const { columns: width = 0, rows: height = 0 } = output;
  if (columns > width || rows >= height) return;
  const colors = (env['NO_COLOR'] ?? '') === '';
  for (const line of qrTerminalLines(matrix, { colors })) print(line);
}
