// Runs a command's work on the home's store and closes it, whatever happens.

import type { OpenedState } from '../app/state.ts';
import { CommandFailure, EXIT } from './exit-codes.ts';
import type { Terminal } from './terminal.ts';

/** @throws CommandFailure where no gateway has ever run in this home. */
export async function withState<Result>(
  terminal: Terminal,
  work: (state: OpenedState) => Promise<Result>,
): Promise<Result> {
  const { hasState, withOpenState } = await import('../app/state.ts');
  if (!hasState(terminal.home)) {
    const message = `${terminal.home.root} has no state yet; "nanobot gateway" makes it`;
    throw new CommandFailure(EXIT.notFound, message);
  }
  return withOpenState(terminal.home, terminal.clock, work);
}
