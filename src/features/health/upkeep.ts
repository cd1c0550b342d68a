// Runs the upkeep of the gateway soon after the start and every hour: deletes what exceeds its
// retention.

import type { Kernel } from '../../kernel/feature.ts';
import { keptUnusedMs } from '../../kernel/media/files.ts';
import { GROUP_TALK } from '../people/index.ts';

const INTERVAL_MS = 3_600_000;
/**
 * Soon after the start, for a gateway that never runs an hour; not at once, to keep the start fast.
 */
const FIRST_AFTER_MS = 5000;
/** Platforms redeliver a message for days at most; ids are kept longer. */
const DEDUPE_WINDOW_MS = 30 * 86_400_000;

export function install(kernel: Kernel): void {
  kernel.add.task({ name: 'upkeep', isOnce: true, run: (signal) => keepTidy(kernel, signal) });
  if (kernel.live.config.storage.media.kind === 's3') {
    kernel.add.task({ name: 'media copies', run: (signal) => trimCopies(kernel, signal) });
  }
}

/** Of a bucket's contents, in each process. */
async function trimCopies(kernel: Kernel, signal: AbortSignal): Promise<void> {
  const { media, reader } = kernel;
  await hourly(kernel, [() => media.trim(), () => reader.sweep(INTERVAL_MS)], signal);
}

async function keepTidy(kernel: Kernel, signal: AbortSignal): Promise<void> {
  const { bus, log, people, questions, media, reader, live } = kernel;
  const groupTalk = kernel.use(GROUP_TALK);
  /** Independent steps: a failure stops no other one, and the next hour retries it. */
  const steps: readonly (() => Promise<void>)[] = [
    async () => {
      const deleted = await bus.gc(DEDUPE_WINDOW_MS);
      if (deleted > 0) log.info('old messages deleted', { deleted });
    },
    () => groupTalk.expire(),
    () => questions.removeOld(),
    async () => {
      const forgotten = await people.strangers.expire();
      if (forgotten > 0)
        log.info('old messages of unknown senders deleted', { deleted: forgotten });
    },
    async () => {
      const freedBytes = await media.sweep(keptUnusedMs(live));
      if (freedBytes > 0) log.info('old files deleted', { freedBytes });
    },
    () => reader.sweep(keptUnusedMs(live)),
  ];
  await hourly(kernel, steps, signal);
}

async function hourly(
  { clock, log }: Pick<Kernel, 'clock' | 'log'>,
  steps: readonly (() => Promise<void>)[],
  signal: AbortSignal,
): Promise<void> {
  for (let waitMs = FIRST_AFTER_MS; !signal.aborted; waitMs = INTERVAL_MS) {
    await clock.sleep(waitMs, signal).catch(() => undefined);
    if (signal.aborted) return;
    for (const step of steps) {
      await step().catch((error) => log.warn('maintenance failed', { error }));
    }
  }
}
