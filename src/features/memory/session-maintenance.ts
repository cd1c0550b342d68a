// Opens the maintenance of session files for one command.

import { existsSync } from 'node:fs';
import { StoreError } from '../../kernel/bus/store/store.ts';
import { createTextIndex } from '../../kernel/bus/store/text-index.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import { loadConfig } from '../../kernel/config/files/config-file.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { completeSessions, hasState, withOpenState } from '../../kernel/home-state.ts';
import { forgetMissing } from '../../kernel/sessions/index-sessions.ts';
import type { SessionMaintenance } from '../../kernel/sessions/maintenance.ts';
import { createSessionMaintenance } from '../../kernel/sessions/maintenance.ts';
import { silentLogger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { forgetMissingNotes } from './notes.ts';

/** Where local channels store their messages; see kernel/delivery/manager.ts. */
const LOCAL_SCOPES = ['channel:web:default', 'channel:terminal:default'];

/**
 * Recovers the session journal first; what a damaged store held of it is lost.
 * @throws ConfigError: the configuration says where the workspace is
 */
export async function openSessionMaintenance(
  home: Home,
  env: Environment,
  clock: Clock,
): Promise<SessionMaintenance> {
  const { config } = await loadConfig(home, env);
  const { workspace } = config.agents.defaults;
  await completeSessions(home, clock).catch((error) => {
    if (!(error instanceof StoreError) || error.code !== 'store_damaged') throw error;
  });
  return createSessionMaintenance({ folder: home.sessions, workspace, clock });
}

/**
 * Removes files that no longer exist from the full-text index; `workspace` where notes were
 * deleted.
 */
export async function forgetIndexed(home: Home, workspace?: string): Promise<void> {
  if (!existsSync(home.index)) return;
  const index = createTextIndex({ path: home.index, log: silentLogger });
  try {
    await forgetMissing(index, home.sessions);
    if (workspace !== undefined) await forgetMissingNotes(index, workspace);
    await index.scrub();
  } finally {
    index[Symbol.dispose]();
  }
}

/**
 * Deletes what the store holds of conversations that were last written before the given age:
 * processed messages and the logs of local channels. The age is in milliseconds; 0 = everything.
 */
export async function forgetStoredTexts(
  home: Home,
  clock: Clock,
  olderThanMs: number,
): Promise<void> {
  await forgetIndexed(home);
  if (!hasState(home)) return;
  const before = clock.now() - olderThanMs + 1;
  await withOpenState(home, clock, async ({ store }) => {
    await store.gc(olderThanMs);
    for (const scope of LOCAL_SCOPES) await store.scope(scope).expire('', before);
  });
}
