// The questions of the setup and its steps: each can be repeated or skipped, and finished steps stay
// saved. Without a person, a missing answer is an error that names its flag.

import * as prompts from '@clack/prompts';
import { NanobotError, ProviderError } from '../../kernel/message/errors.ts';
import { CommandFailure, EXIT, type Terminal } from '../terminal.ts';

export type Choice<Value extends string> = {
  readonly value: Value;
  readonly label: string;
  readonly hint?: string;
};

export type Question = {
  readonly message: string;
  /** The flag of `nanobot onboard` that answers it in a script. */
  readonly flag: string;
  readonly initial?: string;
  /** An empty answer is one. */
  readonly optional?: boolean;
  /** What is wrong with an answer; undefined where nothing is. */
  readonly check?: (answer: string) => string | undefined;
};

export interface Asker {
  readonly interactive: boolean;
  text(question: Question): Promise<string>;
  secret(question: Question): Promise<string>;
  choose<Value extends string>(
    message: string,
    choices: readonly Choice<Value>[],
    otherwise: Value,
  ): Promise<Value>;
  confirm(message: string, otherwise: boolean): Promise<boolean>;
  /** Shows that something is under way. The result's text stands afterwards. */
  during<Result>(
    message: string,
    work: () => Promise<Result>,
    done: (result: Result) => string,
  ): Promise<Result>;
  say(text: string): void;
  warn(text: string): void;
}

export function createAsker(terminal: Terminal, interactive: boolean): Asker {
  return interactive ? personAsker(terminal) : scriptAsker(terminal);
}

/** The person pressed Ctrl+C at a question, or ended the setup. */
class SetupCancelled extends NanobotError {
  override readonly name = 'SetupCancelled';
  constructor() {
    super('setup_cancelled', 'Setup cancelled.');
  }
}

function personAsker({ typed }: Terminal): Asker {
  /** The last answer to each question, offered again where its step is repeated. */
  const before = new Map<string, string>();
  return {
    interactive: true,
    async text(question) {
      const { message, flag } = question;
      const initial = before.get(flag) ?? question.initial;
      const given = initial === undefined ? {} : { initialValue: initial };
      const answer = await prompts.text({ message, ...given, validate: validator(question) });
      const text = (answered(answer) ?? '').trim();
      before.set(flag, text);
      return text;
    },
    async secret(question) {
      const { flag } = question;
      const kept = before.get(flag) ?? '';
      const message = kept === '' ? question.message : `${question.message} (empty: as before)`;
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
  };
}

function scriptAsker(terminal: Terminal): Asker {
  const missing = ({ message, flag, initial }: Question) => {
    if (initial !== undefined) return initial;
    throw new CommandFailure(
      EXIT.usage,
      `"${message}" has no answer. In a script: nanobot onboard ${flag}`,
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
  };
}

function validator({ optional, check }: Question) {
  return (answer: string | undefined) => {
    const text = (answer ?? '').trim();
    if (text !== '') return check?.(text);
    return optional === true ? undefined : 'Please answer.';
  };
}

/** @throws SetupCancelled where the person pressed Ctrl+C. */
function answered<Value>(answer: Value | typeof prompts.CANCEL_SYMBOL): Value {
  if (typeof answer === 'symbol') {
    throw new SetupCancelled();
  }
  return answer;
}

// The steps of the setup. What fails or is cancelled in one can be tried again or skipped, and the
// steps that are done stay saved.

/** `isRetry`: what was given before failed. Resolves with what was set up; undefined: nothing. */
export type Step = (isRetry: boolean) => Promise<string | undefined>;

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
      if (!(error instanceof SetupCancelled)) asker.warn(problemOf(error));
    }
    const next = await asker.choose(
      `${name} is not set up.`,
      [
        { value: 'again', label: 'Try again', hint: 'your answers are kept' },
        { value: 'skip', label: `Skip ${name}` },
        { value: 'end', label: 'End the setup' },
      ],
      'again',
    );
    if (next === 'skip') return undefined;
    if (next === 'end') throw new SetupCancelled();
  }
}

/** Runs the steps in order. @throws CommandFailure that says what is saved when the setup is ended */
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
    throw new CommandFailure(EXIT.interrupted, `Setup cancelled. Saved so far: ${what}.`);
  }
}

const problemOf = (error: NanobotError) =>
  (error instanceof ProviderError ? error.userText : undefined) ?? error.message;
