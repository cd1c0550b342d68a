// The notes of one person or group, for a command.

import type { Environment } from '../core/environment.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER } from '../core/notes.ts';
import { MEMORY_FILE } from '../core/prompt.ts';
import { createGuardedFiles } from '../lib/guarded-files.ts';
import { silentLogger } from '../lib/logger.ts';
import { listNotes, type NoteEntry, readNote } from '../memory/note-files.ts';
import { loadConfig } from './config.ts';
import type { Home } from './home.ts';

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
