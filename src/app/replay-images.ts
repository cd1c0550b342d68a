// The images of a conversation that is played again: from the media that are still kept, which are only
// looked at; what is made of them is thrown away.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../lib/clock.ts';
import { createKeptMedia } from '../media/kept-media.ts';
import { createMediaReader } from '../media/media-reader.ts';
import { loadedImage } from './build-media.ts';
import type { Home } from './home.ts';
import type { ModelsDeps } from './models.ts';

export type KeptImages = {
  readonly load: ModelsDeps['loadImage'];
  /** How many could not be shown since it was asked last. */
  missing(): number;
};

export async function keptImages(
  { media }: Pick<Home, 'media'>,
  resources: AsyncDisposableStack,
): Promise<KeptImages> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-replay-'));
  resources.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  const reader = createMediaReader({ store: createKeptMedia(media), folder, clock: systemClock });
  const missing = new Set<string>();
  return {
    async load(id) {
      const loaded = await loadedImage(reader, id);
      if (loaded.kind === 'unreadable') missing.add(id);
      return loaded;
    },
    missing() {
      const { size } = missing;
      missing.clear();
      return size;
    },
  };
}
