// Asks before something is destroyed.

import { CommandFailure, EXIT } from './exit-codes.ts';
import type { Terminal } from './terminal.ts';

/** @throws CommandFailure where the person says no, or nobody is there to be asked. */
export async function confirmOrStop(terminal: Terminal, question: string, yes: boolean) {
  if (yes) return;
  if (!terminal.interactive) {
    throw new CommandFailure(EXIT.usage, `${question} Add --yes to say so in a script.`);
  }
  const { confirm } = await import('@clack/prompts');
  const answer = await confirm({ message: question, initialValue: false });
  if (answer !== true) throw new CommandFailure(EXIT.interrupted, 'nothing was done');
}
