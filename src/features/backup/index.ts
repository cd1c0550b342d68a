// Back-ups of the home. The gateway makes them as configured, each in a process of its own, and
// tells the owners once when they begin to fail.

import { mkdir } from 'node:fs/promises';
import { z } from 'zod';
import type { Config } from '../../kernel/config/config.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { EVERY_PATTERN, KEEP_PATTERN } from '../../kernel/config/limits.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { gauge } from '../../kernel/observe/metrics.ts';
import type { Gauge } from '../../kernel/observe/telemetry.ts';
import { readOnce } from '../../lib/async.ts';
import { textIfThere, writeAtomic } from '../../lib/files/files.ts';
import { parseJson } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import type { BackupRuns } from './backup-runs.ts';

export type { Place } from './places.ts';
export type { Snapshot } from './repository.ts';

// What is known about the back-ups of a home, for status and doctor.

const done = z.object({ id: z.string(), at: z.number() });
const recordShape = z.object({
  /** The newest one. */
  made: done.extend({ to: z.string(), bytes: z.number() }).optional(),
  /** The last that was proved by a start. */
  verified: done.extend({ ok: z.boolean() }).optional(),
  /** The gateway's attempts fail since then. */
  failing: z.object({ since: z.number(), last: z.number(), reason: z.string() }).optional(),
});

type BackupRecord = Readonly<z.infer<typeof recordShape>>;

const recordPath = ({ backups }: Home) => `${backups}/record.json`;

export async function readRecord(home: Home): Promise<BackupRecord> {
  const written = await textIfThere(recordPath(home));
  return recordShape.safeParse(parseJson(written ?? '')).data ?? {};
}

export async function writeRecord(home: Home, change: BackupRecord): Promise<void> {
  await mkdir(home.backups, { recursive: true, mode: 0o700 });
  const record = { ...(await readRecord(home)), ...change };
  await writeAtomic(recordPath(home), JSON.stringify(record));
}

// The schedule.

const MS_PER_S = 1000;
const HOUR_MS = 3_600_000;
const SPANS_HOURS: Readonly<Record<string, number>> = { hour: 1, h: 1, day: 24, d: 24, week: 168 };

/** Undefined for no schedule, or if the text is none. */
export function everyMs(every: string): number | undefined {
  const [, word, count, unit = ''] = EVERY_PATTERN.exec(every) ?? [];
  const hours = SPANS_HOURS[word ?? unit];
  return hours === undefined ? undefined : hours * HOUR_MS * Number(count ?? 1);
}

/** Undefined to keep all, or if the text is none. */
export function keepOf(keep: string) {
  const found = KEEP_PATTERN.exec(keep);
  if (found === null) return undefined;
  const [days = 0, weeks = 0, months = 0] = found.slice(1).map((count) => Number(count ?? 0));
  return { days, weeks, months };
}

/** A little after the start, so that channels come first. */
const FIRST_LOOK_MS = 60_000;
const LOOK_MS = 60_000;
const RETRY_MS = 3_600_000;
const REASON_CHARS = 500;

export function install(kernel: Kernel): void {
  const { add, live, home, clock } = kernel;
  const runs = readOnce(async () => (await import('./backup-runs.ts')).createBackupRuns(kernel));
  add.task({ name: 'backups', isOnce: true, run: (signal) => keepBackups(kernel, runs, signal) });
  add.routes(
    [
      'GET /api/v1/backups',
      'GET /api/v1/backups/events',
      'POST /api/v1/backups',
      'POST /api/v1/backups/:id/verify',
    ],
    async () => (await import('./backup-routes.ts')).backupRoutes(kernel, await runs()),
  );
  add.status({
    async lines(origin) {
      if (origin !== undefined || live.config.backup.to === '') return [];
      return [t`Back-up: ${await lastBackupText(home, clock.now())}`];
    },
  });
  add.gauges(() => gaugesOf(kernel));
}

/** Without a schedule nobody waits for one. */
async function gaugesOf({ live, home, clock }: Kernel): Promise<readonly Gauge[]> {
  const { to, every } = live.config.backup;
  const span = everyMs(every);
  if (to === '' || span === undefined) return [];
  const { made, failing } = await readRecord(home);
  const now = clock.now();
  const age = now - (made?.at ?? failing?.since ?? now);
  return [
    gauge('backup_age_seconds', 'Since the last back-up, or since the first one fails.', [
      [{}, Math.max(0, age) / MS_PER_S],
    ]),
    gauge('backup_every_seconds', 'How often one is to be made.', [[{}, span / MS_PER_S]]),
  ];
}

/** When the last one was made and proved, and whether newer ones fail. */
export async function lastBackupText(home: Home, now: number): Promise<string> {
  const { spanText } = await import('../../cli/flag-values.ts');
  const { made, verified, failing } = await readRecord(home);
  const age = (at: number) => spanText(now - at);
  const last = made === undefined ? t`none yet` : t`${age(made.at)} ago, to ${made.to}`;
  const proved =
    verified?.ok === true ? t`verified ${age(verified.at)} ago` : t`not verified by a start`;
  const problem = failing && t`failing for ${age(failing.since)}: ${failing.reason}`;
  return [last, ...(made === undefined ? [] : [proved]), ...(problem ? [problem] : [])].join('; ');
}

async function keepBackups(
  kernel: Kernel,
  runs: () => Promise<BackupRuns>,
  signal: AbortSignal,
): Promise<void> {
  const { live, home, clock } = kernel;
  for (let wait = FIRST_LOOK_MS; !signal.aborted; wait = LOOK_MS) {
    await clock.sleep(wait, signal).catch(() => undefined);
    if (!signal.aborted && isDue(live.config.backup, await readRecord(home), clock.now())) {
      await backUp(kernel, await runs(), signal);
    }
  }
}

export function isDue(
  { to, every }: Pick<Config['backup'], 'to' | 'every'>,
  { made, failing }: BackupRecord,
  now: number,
): boolean {
  const span = everyMs(every);
  if (to === '' || span === undefined) return false;
  if (failing !== undefined && now - failing.last < Math.min(RETRY_MS, span)) return false;
  return made === undefined || made.to !== to || now - made.at >= span;
}

/** In a process of its own, so that a large home delays no answer. */
async function backUp(kernel: Kernel, runs: BackupRuns, signal: AbortSignal): Promise<void> {
  const { home, clock, log, owners } = kernel;
  const end = await runs.run({ what: 'create' }, ['backup', 'create'], signal);
  if (signal.aborted || end === undefined) return;
  if (end.isOk) {
    log.info('back-up made');
    return;
  }
  const reason = end.text.slice(0, REASON_CHARS);
  const { failing } = await readRecord(home);
  const now = clock.now();
  await writeRecord(home, { failing: { since: failing?.since ?? now, last: now, reason } });
  log.error('back-up failed', { reason });
  if (failing === undefined) {
    owners.tell(
      t`The back-up failed: ${reason}\n\nIt is tried again every hour; I say no more about it.`,
    );
  }
}
