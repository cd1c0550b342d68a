import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, rm, stat, symlink, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { openMediaFiles } from '../../src/kernel/media/files.ts';
import { type MediaId, mediaId } from '../../src/kernel/message/ids.ts';
import { mediaContract } from '../contract/media.ts';
import { createMemoryMedia } from '../support/memory-media.ts';
import { createMovableClock, type MovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const LIMITS = { maxBytes: 1_000_000 };
const HOUR_MS = 3_600_000;

let folder = '';
let needed = new Set<MediaId>();
beforeEach(async () => {
  folder = await temporaryFolder();
  needed = new Set();
});
const open = (clock: MovableClock, maxBytes = 1_000_000) =>
  openMediaFiles({ folder, clock, maxBytes: () => maxBytes, needed: async () => needed });
const files = async () =>
  (await readdir(folder, { recursive: true, withFileTypes: true })).filter((one) => one.isFile());

mediaContract('in a folder', (clock) => open(clock));
mediaContract('in memory', async (clock) => createMemoryMedia(clock));

describe('the media folder', () => {
  it('keeps the same content once, readable by its owner alone', async () => {
    const store = await open(createMovableClock());
    const { id } = await store.put(Buffer.from('same'), LIMITS);
    await Promise.all([1, 2, 3].map(() => store.put(Buffer.from('same'), LIMITS)));
    expect((await files()).map(({ name }) => name)).toEqual([id]);
    const path = join(folder, id.slice(0, 2), id);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder, id.slice(0, 2)))).mode & 0o777).toBe(0o700);
  });

  it('deletes what is unused around a file that cannot be deleted', async () => {
    const clock = createMovableClock();
    const store = await open(clock);
    const ids: MediaId[] = [];
    for (const text of ['a', 'b', 'c']) {
      ids.push((await store.put(Buffer.from(text), LIMITS)).id);
      await clock.advance(HOUR_MS);
    }
    const [first = ''] = ids;
    const path = join(folder, first.slice(0, 2), first);
    await rm(path);
    await mkdir(path);
    await utimes(path, 0, 0);
    await symlink('nowhere', join(folder, first.slice(0, 2), 'f'.repeat(64)));
    await clock.advance(48 * HOUR_MS);
    await store.sweep(HOUR_MS);
    expect((await files()).map(({ name }) => name)).toEqual([]);
  });

  it('makes room by what was unused longest, but never by what a message needs', async () => {
    const clock = createMovableClock();
    const store = await open(clock, 250);
    const put = async (text: string) => {
      await clock.advance(HOUR_MS);
      return store.put(Buffer.alloc(100, text), LIMITS);
    };
    const wanted = await put('a');
    const unwanted = await put('b');
    needed.add(wanted.id);
    const third = await put('c');
    expect(await store.stat(wanted.id)).toBeDefined();
    expect(await store.stat(unwanted.id)).toBeUndefined();
    needed.add(third.id);
    await expect(put('d')).rejects.toMatchObject({ code: 'media_full' });
    expect(await files()).toHaveLength(2);
  });

  it('does not delete what has only just come', async () => {
    const store = await open(createMovableClock(), 150);
    const first = await store.put(Buffer.alloc(100, 'a'), LIMITS);
    const second = store.put(Buffer.alloc(100, 'b'), LIMITS);
    await expect(second).rejects.toMatchObject({ code: 'media_full' });
    expect(await store.read(first.id)).toHaveLength(100);
  });

  it('counts what an earlier process left', async () => {
    const clock = createMovableClock();
    await (await open(clock)).put(Buffer.alloc(100, 'a'), LIMITS);
    const again = await open(clock, 150);
    const put = again.put(Buffer.alloc(100, 'b'), LIMITS);
    await expect(put).rejects.toMatchObject({ code: 'media_full' });
  });

  it('spares old contents that a message needs when it sweeps', async () => {
    const clock = createMovableClock();
    const store = await open(clock);
    const { id } = await store.put(Buffer.from('needed'), LIMITS);
    needed.add(id);
    await clock.advance(100 * HOUR_MS);
    expect(await store.sweep(HOUR_MS)).toBe(0);
    needed.delete(mediaId(id));
    expect(await store.sweep(HOUR_MS)).toBe(6);
  });

  it('that several processes share lets one start while another one writes', async () => {
    const clock = createMovableClock(Date.now());
    const shared = { folder, clock, maxBytes: () => 1000, needed: async () => needed };
    const one = await openMediaFiles({ ...shared, isShared: true });
    async function* slowly() {
      yield Buffer.from('first, ');
      await openMediaFiles({ ...shared, isShared: true });
      yield Buffer.from('last');
    }
    const { id } = await one.put(slowly(), LIMITS);
    expect(Buffer.from((await one.read(id)) ?? []).toString()).toBe('first, last');
  });

  it('is left with no half file by a process killed while it wrote', async () => {
    const child = fork(join(import.meta.dirname, 'put-child.ts'), {
      env: { ...process.env, MEDIA_FOLDER: folder },
    });
    await once(child, 'message');
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect((await files()).map(({ parentPath }) => parentPath)).toEqual([join(folder, 'incoming')]);
    await open(createMovableClock());
    expect(await files()).toEqual([]);
  });
});
