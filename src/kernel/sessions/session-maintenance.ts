// Puts the care of session files together for the command line; the work is done next door.

import type { Clock } from '../../lib/time/clock.ts';
import { listSessions } from './catalog.ts';
import { searchSessions } from './earlier.ts';
import { exportSession } from './export.ts';
import { stemOf } from './file-lines.ts';
import { writeExtracts } from './index-sessions.ts';
import type { SessionMaintenance } from './maintenance.ts';
import { archiveFiles, nukeFiles, purgeFiles } from './upkeep.ts';

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
