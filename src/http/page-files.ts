// The files of the web page, each named here: what is not in the table cannot be asked for. They are
// read once, when first asked for.

import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Typed } from '../kernel/typed-command.ts';

const PAGE_FOLDER = join(import.meta.dirname, 'page');
const MARKED = new URL('marked.esm.js', import.meta.resolve('marked'));

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
};

export type PageFile = { readonly type: string; readonly body: Buffer; readonly etag: string };

/** URL path to a reader of the file. `typed` names commands as they are typed on this machine. */
export function pageFiles(typed: Typed): ReadonlyMap<string, () => Promise<PageFile>> {
  const own = readdirSync(PAGE_FOLDER).filter((name) => TYPES[extname(name)] !== undefined);
  return new Map([
    ['/', once(join(PAGE_FOLDER, 'index.html'), typed)],
    ['/vendor/marked.js', once(fileURLToPath(MARKED), (text) => text)],
    ...own.map((name) => [`/${name}`, once(join(PAGE_FOLDER, name), typed)] as const),
  ]);
}

function once(path: string, typed: Typed): () => Promise<PageFile> {
  let read: Promise<PageFile> | undefined;
  return () => {
    read ??= readPageFile(path, typed);
    return read;
  };
}

async function readPageFile(path: string, typed: Typed): Promise<PageFile> {
  const body = Buffer.from(typed(await readFile(path, 'utf8')));
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 16)}"`;
  return { type: TYPES[extname(path)] ?? 'application/octet-stream', body, etag };
}
