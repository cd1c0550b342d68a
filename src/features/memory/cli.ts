// The command `nanobot memory`: shows the memory and starts a reflection, with or without a running
// gateway.

import { Command } from 'commander';
import { CommandFailure, EXIT, printable, type Terminal, withState } from '../../cli/terminal.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER } from '../../kernel/message/untrusted.ts';
import { t } from '../../lib/texts.ts';

export function memoryCommand(terminal: Terminal): Command {
  const command = new Command('memory').description(t`what the agent remembers`);
  command
    .command('show')
    .description(t`show the long-term memory and list other notes`)
    .option(
      '--of <folder>',
      t`memory of another person or group, e.g. people/p-1a2b or groups/g0123`,
      '',
    )
    .action(({ of }: { readonly of: string }) => show(terminal, of));
  command
    .command('reflect')
    .description(t`propose a new version of the owners’ memory; an owner approves it in their chat`)
    .action(() => reflect(terminal));
  command
    .command('reindex')
    .description(t`make all vectors of the search by meaning anew`)
    .action(() => reindex(terminal));
  return command;
}

async function reindex(terminal: Terminal): Promise<void> {
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { config } = await loadConfig(terminal.home, terminal.env);
  if (config.search.embeddings.model === '') {
    throw new CommandFailure(
      EXIT.usage,
      t`there is no search by meaning: set search.embeddings.model`,
    );
  }
  const { withTextIndex } = await import('../../kernel/home-state.ts');
  const { openVectors } = await import('../semantic-search/vectors.ts');
  await withTextIndex(terminal.home, terminal.clock, (index) => openVectors(index).unusable());
  terminal.note(t`The gateway makes them within some seconds, or when it next runs.`);
}

const FOLDER = new RegExp(`^(?:${PEOPLE_FOLDER}|${GROUPS_FOLDER})/[^/]+$`);

/** `of`: a folder of the workspace; empty: the owners' memory. */
async function show(terminal: Terminal, of: string): Promise<void> {
  if (of !== '' && !FOLDER.test(of)) {
    throw new CommandFailure(
      EXIT.usage,
      t`--of must be people/<id> or groups/<id>, a folder of the workspace`,
    );
  }
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { createGuardedFiles } = await import('../../lib/files/guarded-files.ts');
  const { silentLogger } = await import('../../lib/logger.ts');
  const { MEMORY_FILE } = await import('../../agent/rules/prompt.ts');
  const { listNotes, readNote } = await import('./notes.ts');
  const { config } = await loadConfig(terminal.home, terminal.env);
  const reader = {
    files: createGuardedFiles({ forbidden: [terminal.home.root] }),
    workspace: () => config.agents.defaults.workspace,
    log: silentLogger,
  };
  const notes = of === '' ? '' : `${of}/`;
  const memory = (await readNote(reader, notes + MEMORY_FILE))?.text ?? '';
  for (const line of memory.split('\n')) terminal.print(printable(line));
  if (memory.trim() === '') terminal.note(t`The memory is empty.`);
  for (const { path, bytes } of await listNotes(reader, notes)) {
    terminal.note(t`${path}: ${bytes} bytes`);
  }
}

async function reflect(terminal: Terminal): Promise<void> {
  const { REFLECTION_CLOCK_SCOPE, wantReflection } = await import('./reflection.ts');
  await withState(terminal, ({ store }) =>
    wantReflection(store.scope(REFLECTION_CLOCK_SCOPE), terminal.clock.now()),
  );
  terminal.note(
    t`The gateway prepares the proposal within a minute, or when it next runs, and asks an owner.`,
  );
}
