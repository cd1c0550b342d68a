// The media of a home: where they are kept and for how long, what an account may send, and images as models get them.

import type { LoadedImage } from '../../providers/seen-images.ts';
import type { UploadLimit } from '../../tools/files/send-file.ts';
import type { BusStore } from '../bus/store/store.ts';
import type { Home } from '../config/files/home.ts';
import type { LiveConfig } from '../config/files/live-config.ts';
import type { Kernel } from '../feature.ts';
import type { AccountName } from '../message/account.ts';
import type { MediaId } from '../message/ids.ts';
import { openMediaFiles } from './files.ts';
import type { MediaReader, MediaStore } from './media.ts';

const DAY_MS = 86_400_000;

export function openMedia(
  {
    live,
    clock,
    store,
  }: Pick<Kernel, 'live' | 'clock'> & { readonly store: Pick<BusStore, 'neededMedia'> },
  home: Home,
): Promise<MediaStore> {
  return openMediaFiles({
    folder: home.media,
    clock,
    maxBytes: () => live.config.media.maxBytes,
    needed: async () => new Set(await store.neededMedia()),
  });
}

/** How long an unused content is kept, milliseconds. */
export const keptUnusedMs = (live: LiveConfig): number => live.config.media.keepDays * DAY_MS;

/** What may be sent by an account; undefined where it carries no files. */
export function maxFileBytes({ live, channels }: Pick<Kernel, 'live' | 'channels'>) {
  return (name: AccountName): UploadLimit | undefined => {
    const uploads = channels.get(name)?.attachments;
    if (uploads === undefined) return undefined;
    const { maxUploadBytes, isInOnePiece = false } = uploads;
    const eachBytes = Math.min(maxUploadBytes, live.config.media.maxFileBytes);
    return isInOnePiece ? { eachBytes, togetherBytes: maxUploadBytes } : { eachBytes };
  };
}

/** An image as it goes to a model's vendor. */
export async function loadedImage(reader: MediaReader, id: MediaId): Promise<LoadedImage> {
  const reading = await reader.image(id);
  if (reading.kind === 'unreadable') return reading;
  const { kind, mimeType, content } = reading;
  return { kind, mimeType, base64: Buffer.from(content).toString('base64') };
}
