// A conversation as text for people (Markdown) or programs (JSONL), in pieces. The JSONL form is
// that of the session files: one header, then one entry a line.

import type { Clock } from '../../lib/time/clock.ts';
import type { SessionKey } from '../message/ids.ts';
import { listSessions, readSession } from './catalog.ts';
import { searchSessions } from './earlier.ts';
import { stemOf } from './file-lines.ts';
import { writeExtracts } from './index-sessions.ts';
import type { SessionMaintenance } from './maintenance.ts';
import { markdownOfEntry } from './rules/extract.ts';
import { encodeEntry, encodeHeader } from './rules/file.ts';
import { archiveFiles, nukeFiles, purgeFiles } from './upkeep.ts';

export async function* exportSession(
  folder: string,
  key: SessionKey,
  format: 'md' | 'jsonl',
): AsyncGenerator<string, void, void> {
  let isFirst = true;
  for await (const entry of readSession(folder, stemOf(key))) {
    if (isFirst) {
      const header = encodeHeader({ key, createdAt: entry.at, carried: 0 });
      yield format === 'md' ? `# ${key}\n` : `${header}\n`;
    }
    isFirst = false;
    yield format === 'md' ? markdownOfEntry(entry) : `${encodeEntry(entry)}\n`;
  }
}

// Puts the care of session files together for the command line; the work is done next door.

export type SessionMaintenanceDeps = {
  /** The sessions folder of the home. */
  readonly folder: string;
  readonly workspace: string;
  readonly clock: Clock;
};

export function createSessionMaintenance(deps: SessionMaintenanceDeps): SessionMaintenance {
  const { folder, workspace, clock } = deps;
  return {
    list: ({ limit } = {}) => listSessions(folder, limit),
    of(sessions) {
      const stems = new Set(sessions.map(stemOf));
      return listSessions(folder, undefined, ({ stem }) => stems.has(stem));
    },
    export: (session, format) => exportSession(folder, session, format),
    search: (query, { limit }) => searchSessions(folder, query, limit),
    purge: ({ olderThanMs }) => purgeFiles(folder, workspace, clock.now() - olderThanMs),
    archive: ({ olderThanMs }) => archiveFiles(folder, clock.now() - olderThanMs),
    nuke: () => nukeFiles(folder, workspace),
    index: () => writeExtracts(folder, workspace),
  };
}
