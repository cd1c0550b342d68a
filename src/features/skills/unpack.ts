// A tar archive as files in memory (case X10): nothing is written, whatever an entry is called; links
// and devices are left out where they lie outside of a skill and refused within.

import type { ReadEntry } from 'tar';
import { MAX_FILE_BYTES, type PackedFile } from './package.ts';
import { SkillError } from './skills.ts';

/** Of a whole repository, of which a skill is a part. */
const MAX_ENTRIES = 20_000;
const MAX_BYTES = 100_000_000;
const FILES = ['File', 'OldFile', 'ContiguousFile'];

export type Unpacked = {
  readonly files: readonly PackedFile[];
  /** Paths of links and devices. */
  readonly others: readonly string[];
  /** Name of the folder that holds everything; empty where there is none. */
  readonly root: string;
};

/** @throws SkillError */
export async function unpack(archive: Uint8Array): Promise<Unpacked> {
  const { Parser } = await import('tar');
  const files: PackedFile[] = [];
  const others: string[] = [];
  let seen = 0;
  let bytes = 0;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const parser = new Parser({
    strict: true,
    onReadEntry(entry: ReadEntry) {
      seen += 1;
      bytes += entry.size;
      if (seen > MAX_ENTRIES || bytes > MAX_BYTES) {
        reject(new SkillError('refused', 'the archive is too large; name a smaller one'));
        return parser.abort(new Error('too large'));
      }
      if (entry.type !== 'Directory' && !FILES.includes(entry.type)) others.push(entry.path);
      if (!FILES.includes(entry.type)) return entry.resume();
      collect(entry, files);
    },
  });
  parser.on('end', resolve).on('abort', reject).on('error', reject);
  parser.end(Buffer.from(archive));
  try {
    await promise;
  } catch (cause) {
    if (cause instanceof SkillError) throw cause;
    throw new SkillError('bad_source', 'this is no tar archive, or a damaged one', { cause });
  }
  return withoutRoot(files, others);
}

/** One that is too large is kept by name, to be refused where it belongs to the skill. */
function collect(entry: ReadEntry, files: PackedFile[]): void {
  const { path } = entry;
  if (entry.size > MAX_FILE_BYTES) {
    files.push({ path, bytes: new Uint8Array(MAX_FILE_BYTES + 1) });
    entry.resume();
    return;
  }
  const chunks: Buffer[] = [];
  entry.on('data', (chunk) => chunks.push(Buffer.from(chunk)));
  entry.on('end', () => files.push({ path, bytes: Buffer.concat(chunks) }));
}

/** Archives of repositories hold one folder, called after the version. */
function withoutRoot(files: readonly PackedFile[], others: readonly string[]): Unpacked {
  const [first = ''] = files[0]?.path.split('/') ?? [];
  const prefix = `${first}/`;
  const isWrapped = files.length > 0 && files.every(({ path }) => path.startsWith(prefix));
  if (!isWrapped) return { files, others, root: '' };
  return {
    files: files.map(({ path, bytes }) => ({ path: path.slice(prefix.length), bytes })),
    others: others.map((path) => (path.startsWith(prefix) ? path.slice(prefix.length) : path)),
    root: first,
  };
}
