// The store of a test by where it is: a file by its path, a PostgreSQL database by its URL.

import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import type { EmbeddedStore } from '../../src/kernel/bus/store/store.ts';
import type { Logger } from '../../src/lib/logger.ts';
import type { Clock } from '../../src/lib/time/clock.ts';

export async function openAt(at: string, clock: Clock, log: Logger): Promise<EmbeddedStore> {
  if (!at.startsWith('postgres:')) return openEmbeddedStore({ path: at, clock, log });
  const { openPostgresStore } = await import('../../src/kernel/bus/store/postgres/store.ts');
  return openPostgresStore({ url: at, clock, log });
}
