// The steps of the setup. What fails or is cancelled in one can be tried again or skipped, and the
// steps that are done stay saved.

import { NanobotError, ProviderError } from '../../kernel/message/errors.ts';
import { CommandFailure, EXIT } from '../exit-codes.ts';
import { type Asker, SetupCancelled } from './asker.ts';

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
