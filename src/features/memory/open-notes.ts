// The notes of one person or group, for a command.

import { MEMORY_FILE } from '../../agent/rules/prompt.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import { loadConfig } from '../../kernel/config/files/config-file.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER } from '../../kernel/message/notes.ts';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import { silentLogger } from '../../lib/logger.ts';
import { listNotes, type NoteEntry, readNote } from './note-files.ts';

const FOLDER = new RegExp(`^(?:${PEOPLE_FOLDER}|${GROUPS_FOLDER})/[^/]+$`);

/**
 * `of`: a folder of the workspace, empty: the owners'. Undefined where it is no folder of notes.
 * @throws ConfigError: the configuration says where the workspace is.
 */
export async function openNotes(
  home: Home,
  env: Environment,
  of: string,
): Promise<{ readonly memory: string; readonly files: readonly NoteEntry[] } | undefined> {
  if (of !== '' && !FOLDER.test(of)) return undefined;
  const { config } = await loadConfig(home, env);
  const workspace = () => config.agents.defaults.workspace;
  const reader = {
    files: createGuardedFiles({ forbidden: [home.root] }),
    workspace,
    log: silentLogger,
  };
  const notes = of === '' ? '' : `${of}/`;
  const memory = (await readNote(reader, notes + MEMORY_FILE))?.text ?? '';
  return { memory, files: await listNotes(reader, notes) };
}
