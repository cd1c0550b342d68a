// Builds the media store of a home, its upkeep, and what fetches files into it.

import { join } from 'node:path';
import type { Channel } from '../channels/channel.ts';
import type { Listening } from '../features/voice/listening.ts';
import type { BusStore } from '../kernel/bus/store/store.ts';
import type { Home } from '../kernel/config/files/home.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import { createInboundAttachments, type InboundAttachments } from '../kernel/intake/attachments.ts';
import { openMediaFiles } from '../kernel/media/files.ts';
import type { MediaReader, MediaStore } from '../kernel/media/media.ts';
import { createMediaReader } from '../kernel/media/media-reader.ts';
import type { ChannelName, MediaId } from '../kernel/message/ids.ts';
import type { ReaderMemory } from '../lib/async.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { LoadedImage } from '../providers/seen-images.ts';
import type { UploadLimit } from '../tools/files/send-file.ts';

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

/** Reads what the store holds; what it makes of it lies in the same folder. */
export function buildReader(
  media: MediaStore,
  clock: Clock,
  memory: ReaderMemory,
  home: Home,
): MediaReader {
  return createMediaReader({ store: media, clock, memory, folder: join(home.media, 'derived') });
}

/** An image as it goes to a model's vendor. */
export async function loadedImage(reader: MediaReader, id: MediaId): Promise<LoadedImage> {
  const reading = await reader.image(id);
  if (reading.kind === 'unreadable') return reading;
  const { kind, mimeType, content } = reading;
  return { kind, mimeType, base64: Buffer.from(content).toString('base64') };
}

/** How long an unused content is kept, milliseconds. */
export const keptUnusedMs = (live: LiveConfig): number => live.config.media.keepDays * DAY_MS;

export type FetchingParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly media: MediaStore;
  readonly store: Pick<BusStore, 'setAttachments'>;
  readonly listening: Listening;
};

/** Fetching ends with the resources. */
export function buildAttachments(
  { live, clock, log, media, store, listening }: FetchingParts,
  channel: (name: ChannelName) => Channel | undefined,
  resources: AsyncDisposableStack,
): InboundAttachments {
  const deps = { media, store, listening, clock, log, channel, random: Math.random };
  const maxFileBytes = () => live.config.media.maxFileBytes;
  return resources.use(createInboundAttachments({ ...deps, maxFileBytes }));
}

/** What may be sent by this door; undefined where it carries no files. */
export function sendableBytes(
  live: LiveConfig,
  channel: Channel | undefined,
): UploadLimit | undefined {
  const door = channel?.attachments;
  if (door === undefined) return undefined;
  const together = door.isInOnePiece === true ? { togetherBytes: door.maxUploadBytes } : {};
  return { eachBytes: Math.min(door.maxUploadBytes, live.config.media.maxFileBytes), ...together };
}
