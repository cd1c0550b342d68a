// The files of the web page, each named here: what is not in the table cannot be asked for. They are
// read once, when first asked for.

import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

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

/** URL path to a reader of the file. */
export function pageFiles(): ReadonlyMap<string, () => Promise<PageFile>> {
  const own = readdirSync(PAGE_FOLDER).filter((name) => TYPES[extname(name)] !== undefined);
  return new Map([
    ['/', once(join(PAGE_FOLDER, 'index.html'))],
    ['/vendor/marked.js', once(fileURLToPath(MARKED))],
    ...own.map((name) => [`/${name}`, once(join(PAGE_FOLDER, name))] as const),
  ]);
}

function once(path: string): () => Promise<PageFile> {
  let read: Promise<PageFile> | undefined;
  return () => {
    read ??= readPageFile(path);
    return read;
  };
}

async function readPageFile(path: string): Promise<PageFile> {
  const body = await readFile(path);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 16)}"`;
  return { type: TYPES[extname(path)] ?? 'application/octet-stream', body, etag };
}
