// The upkeep of a running gateway, soon after the start and every hour: forgets what was kept long enough.

import type { Kernel } from '../../kernel/feature.ts';
import { keptUnusedMs } from '../../kernel/media/files.ts';
import { GROUP_TALK } from '../people/index.ts';

const INTERVAL_MS = 3_600_000;
/** A gateway that never runs an hour has old data too; the start itself is not slowed down. */
const FIRST_AFTER_MS = 5000;
/** Platforms offer a message again for days at most; ids are remembered longer. */
const DEDUPE_WINDOW_MS = 30 * 86_400_000;

export function install(kernel: Kernel): void {
  kernel.add.task({ name: 'upkeep', run: (signal) => keepTidy(kernel, signal) });
}

async function keepTidy(kernel: Kernel, signal: AbortSignal): Promise<void> {
  const { bus, clock, log, people, media, reader, live } = kernel;
  const groupTalk = kernel.use(GROUP_TALK);
  /** Each by itself: one that fails keeps none of the others, and the next hour tries it again. */
  const steps: readonly (() => Promise<void>)[] = [
    async () => {
      const deleted = await bus.gc(DEDUPE_WINDOW_MS);
      if (deleted > 0) log.info('old messages deleted', { deleted });
    },
    () => groupTalk.expire(),
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
  for (let waitMs = FIRST_AFTER_MS; !signal.aborted; waitMs = INTERVAL_MS) {
    await clock.sleep(waitMs, signal).catch(() => undefined);
    if (signal.aborted) return;
    for (const step of steps) {
      await step().catch((error) => log.warn('maintenance failed', { error }));
    }
  }
}
