// `nanobot memory`: what is remembered, and having it thought over, with the gateway running or not.

import { Command } from 'commander';
import { CommandFailure, EXIT, printable, type Terminal, withState } from '../../cli/terminal.ts';

export function memoryCommand(terminal: Terminal): Command {
  const command = new Command('memory').description('what the agent remembers');
  command
    .command('show')
    .description('the long-term memory, and the other notes there are')
    .option('--of <folder>', 'of somebody else, e.g. people/p-1a2b or groups/g0123', '')
    .action(({ of }: { readonly of: string }) => show(terminal, of));
  command
    .command('reflect')
    .description(
      'have the owners’ memory thought over; an owner is asked in their chat before it changes',
    )
    .action(() => reflect(terminal));
  return command;
}

async function show(terminal: Terminal, of: string): Promise<void> {
  const { openNotes } = await import('./open-notes.ts');
  const notes = await openNotes(terminal.home, terminal.env, of);
  if (notes === undefined) {
    throw new CommandFailure(EXIT.usage, '--of is people/<id> or groups/<id> of the workspace');
  }
  for (const line of notes.memory.split('\n')) terminal.print(printable(line));
  if (notes.memory.trim() === '') terminal.note('Nothing is remembered yet.');
  for (const { path, bytes } of notes.files) terminal.note(`${path}: ${bytes} bytes`);
}

async function reflect(terminal: Terminal): Promise<void> {
  const { REFLECTION_CLOCK_SCOPE, wantReflection } = await import('./reflection-clock.ts');
  await withState(terminal, ({ store }) =>
    wantReflection(store.scope(REFLECTION_CLOCK_SCOPE), terminal.clock.now()),
  );
  terminal.note(
    'The gateway thinks it over within a minute, or as soon as it runs, and asks an owner.',
  );
}
