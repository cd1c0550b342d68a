// The questions and steps of the setup: a step can be repeated or skipped, and finished steps stay
// saved. Without a person, a missing answer is an error that names its flag.

import * as prompts from '@clack/prompts';
import {
  issueOwnerCode,
  knownOwner,
  type OwnerWait,
  waitForOwner,
} from '../../features/people/owner-pairing.ts';
import type { Asker, Question } from '../../features/setup/asker.ts';
import { NanobotError, ProviderError } from '../../kernel/message/errors.ts';
import type { Approval } from '../../kernel/people/people-rows.ts';
import { qrMatrix, qrTerminalLines, qrTerminalSize } from '../../lib/qr-code.ts';
import { t } from '../../lib/texts.ts';
import { CommandFailure, EXIT, type Terminal } from '../terminal.ts';

export function createAsker(terminal: Terminal, interactive: boolean): Asker {
  return interactive ? personAsker(terminal) : scriptAsker(terminal);
}

/** The person pressed Ctrl+C at a question, or ended the setup. */
class SetupCancelled extends NanobotError {
  override readonly name = 'SetupCancelled';
  constructor() {
    super('setup_cancelled', t`Setup cancelled.`);
  }
}

function personAsker({ typed }: Terminal): Asker {
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
  };
}

function scriptAsker(terminal: Terminal): Asker {
  const missing = ({ message, flag, initial }: Question) => {
    if (initial !== undefined) return initial;
    throw new CommandFailure(
      EXIT.usage,
      t`"${message}" has no value. In a script, use: nanobot onboard ${flag}`,
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
    return optional === true ? undefined : t`Enter a value.`;
  };
}

/** @throws SetupCancelled where the person pressed Ctrl+C */
function answered<Value>(answer: Value | typeof prompts.CANCEL_SYMBOL): Value {
  if (typeof answer === 'symbol') {
    throw new SetupCancelled();
  }
  return answer;
}

// The steps of the setup. A step that fails or is cancelled can be repeated or skipped, and
// finished steps stay saved.

/** `isRetry`: the earlier values failed. Resolves with what was set up; undefined: nothing. */
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

const problemOf = (error: NanobotError) =>
  (error instanceof ProviderError ? error.userText : undefined) ?? error.message;

// Offers the pairing link of a channel: the first person who uses it becomes its owner.

const PERSON_WAIT_SECS = 600;

type OwnerOffer = {
  readonly channel: string;
  /** What to do with the link; ends before the link. */
  readonly request: string;
  /** What is awaited, as in "Waiting up to 60 s for the tap". */
  readonly sign: string;
  /** Seconds; a person waits ten minutes, a script not at all. */
  readonly waitSecs?: number;
  link(code: string): string;
};

/** In a script the link is printed and valid for half an hour. */
export async function offerPairing(
  terminal: Terminal,
  asker: Asker,
  offer: OwnerOffer,
): Promise<void> {
  const { home, env, clock } = terminal;
  const { channel, request, sign } = offer;
  const waitSecs = offer.waitSecs ?? (asker.interactive ? PERSON_WAIT_SECS : 0);
  const wait: OwnerWait = { home, env, clock, channel };
  const known = await knownOwner(wait);
  if (known !== undefined) return asker.say(alreadyOwned(known));
  const since = clock.now();
  const link = offer.link(await issueOwnerCode(wait));
  asker.say(`${request}\n${link}`);
  if (asker.interactive && link.startsWith('https:')) showQrCode(terminal, link);
  if (waitSecs <= 0) return;
  const signal = AbortSignal.timeout(waitSecs * 1000);
  await asker.during(
    t`Waiting up to ${waitSecs} s for ${sign} (Ctrl+C: later; the link stays valid)`,
    () => waitForOwner(wait, since, signal),
    (owner) =>
      owner === undefined
        ? t`Not used yet. It stays valid for 30 minutes.`
        : t`Paired with ${nameOf(owner)}.`,
  );
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

const nameOf = ({ name, userId }: Approval) => (name === '' ? userId : name);

/** A relinked account keeps its people; a second link would let in anybody who sees it. */
function alreadyOwned(owner: Approval): string {
  const { channel, userId } = owner;
  return (
    t`${nameOf(owner)} is already the owner. To change that, run ` +
    t`\`nanobot pair revoke ${channel} ${userId}\`, then this command again.`
  );
}
