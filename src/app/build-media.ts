// Builds the media store of a home and its upkeep.

import type { Clock } from '../lib/clock.ts';
import { openMediaFiles } from '../media/files.ts';
import type { MediaStore } from '../media/media.ts';
import type { BusStore } from '../store/store.ts';
import type { Home } from './home.ts';
import type { LiveConfig } from './live-config.ts';

const DAY_MS = 86_400_000;

export type MediaParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly store: Pick<BusStore, 'neededMedia'>;
};

export function buildMedia({ live, clock, store }: MediaParts, home: Home): Promise<MediaStore> {
  return openMediaFiles({
    folder: home.media,
    clock,
    maxBytes: () => live.config.media.maxBytes,
    needed: async () => new Set(await store.neededMedia()),
  });
}

/** How long an unused content is kept, milliseconds. */
export const keptUnusedMs = (live: LiveConfig): number => live.config.media.keepDays * DAY_MS;
