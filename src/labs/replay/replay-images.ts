// The images of a conversation that is played again: from the media that are still kept, which are only
// looked at; what is made of them is thrown away.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ModelsDeps } from '../../agent/models.ts';
import { loadedImage } from '../../app/build-media.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { createKeptMedia } from '../../kernel/media/files.ts';
import { createMediaReader } from '../../kernel/media/media-reader.ts';
import { systemClock } from '../../lib/time/clock.ts';

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
