// Builds the media store of a home, its upkeep, and what fetches files into it.

import type { Channel } from '../channels/channel.ts';
import type { ChannelName } from '../core/ids.ts';
import { createInboundAttachments, type InboundAttachments } from '../gateway/attachments.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
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

export type FetchingParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly media: MediaStore;
  readonly store: Pick<BusStore, 'setAttachments'>;
};

/** Fetching ends with the resources. */
export function buildAttachments(
  { live, clock, log, media, store }: FetchingParts,
  channel: (name: ChannelName) => Channel | undefined,
  resources: AsyncDisposableStack,
): InboundAttachments {
  const deps = { media, store, clock, log, channel, random: Math.random };
  const maxFileBytes = () => live.config.media.maxFileBytes;
  return resources.use(createInboundAttachments({ ...deps, maxFileBytes }));
}

/** Largest file that may be sent by this door; undefined where it carries none. */
export function sendableBytes(live: LiveConfig, channel: Channel | undefined): number | undefined {
  const door = channel?.attachments;
  return door && Math.min(door.maxUploadBytes, live.config.media.maxFileBytes);
}
