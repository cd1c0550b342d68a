// `nanobot memory`: what is remembered, and having it thought over, with the gateway running or not.

import { Command } from 'commander';
import { CommandFailure, EXIT, printable, type Terminal, withState } from '../../cli/terminal.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER } from '../../kernel/message/notes.ts';

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

const FOLDER = new RegExp(`^(?:${PEOPLE_FOLDER}|${GROUPS_FOLDER})/[^/]+$`);

/** `of`: a folder of the workspace; empty: the owners'. */
async function show(terminal: Terminal, of: string): Promise<void> {
  if (of !== '' && !FOLDER.test(of)) {
    throw new CommandFailure(EXIT.usage, '--of is people/<id> or groups/<id> of the workspace');
  }
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { createGuardedFiles } = await import('../../lib/files/guarded-files.ts');
  const { silentLogger } = await import('../../lib/logger.ts');
  const { MEMORY_FILE } = await import('../../agent/rules/prompt.ts');
  const { listNotes, readNote } = await import('./note-files.ts');
  const { config } = await loadConfig(terminal.home, terminal.env);
  const reader = {
    files: createGuardedFiles({ forbidden: [terminal.home.root] }),
    workspace: () => config.agents.defaults.workspace,
    log: silentLogger,
  };
  const notes = of === '' ? '' : `${of}/`;
  const memory = (await readNote(reader, notes + MEMORY_FILE))?.text ?? '';
  for (const line of memory.split('\n')) terminal.print(printable(line));
  if (memory.trim() === '') terminal.note('Nothing is remembered yet.');
  for (const { path, bytes } of await listNotes(reader, notes)) {
    terminal.note(`${path}: ${bytes} bytes`);
  }
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
