// The files of the web page: those of its folder, the built scripts, and the frame that draws diagrams.
// Others cannot be requested. Each is read and compressed once, on its first request.
//
// `/built/<version>/` holds what the page loads by a name that changes with its content: a browser
// keeps it, and an open page of another version finds nothing there instead of half of a new one.

import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Typed } from '../kernel/typed-command.ts';
import { readOnce } from '../lib/async.ts';
import { translatedPage, translation } from '../lib/texts.ts';

const PAGE_FOLDER = join(import.meta.dirname, 'page');
/** The bundle has everything beside it; a checkout finds packages in their folders, and builds. */
const IS_CHECKOUT = import.meta.url.endsWith('.ts');
const vendorFile = (name: string, ofPackage: string) =>
  fileURLToPath(new URL(name, IS_CHECKOUT ? import.meta.resolve(ofPackage) : import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webmanifest': 'application/manifest+json',
};
/** Those of the folder that stand under their own name: what is not built, and is not a document. */
const PLAIN = new Set(['.svg', '.png', '.webmanifest']);

const ASK_AGAIN = 'no-cache';
const KEEP = 'public, max-age=31536000, immutable';

type PageFile = {
  readonly type: string;
  readonly etag: string;
  readonly body: Buffer;
  /** Undefined for what is compressed already. */
  readonly zipped: Buffer | undefined;
};
type ReadFile = () => Promise<PageFile>;

const zip = promisify(gzip);

async function served(name: string, text: string | Buffer): Promise<PageFile> {
  const extension = extname(name);
  const body = Buffer.from(text);
  return {
    type: TYPES[extension] ?? 'application/octet-stream',
    etag: `"${fingerprint([body])}"`,
    body,
    zipped: extension === '.png' ? undefined : await zip(body),
  };
}

function fingerprint(parts: Iterable<string | Buffer>): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('base64url').slice(0, 16);
}

/** The texts of all versioned files, by name: in a checkout built now. */
async function versionedTexts(typed: Typed): Promise<ReadonlyMap<string, string>> {
  const built = await (IS_CHECKOUT ? buildNow('buildPage') : readFolder('built', '.js', '.css'));
  const texts = await readFile(join(PAGE_FOLDER, 'texts.js'), 'utf8');
  const ttag = await readFile(vendorFile('ttag.esm.min.mjs', 'ttag'), 'utf8');
  return new Map([
    ...[...built].map(([name, text]) => [name, typed(text)] as const),
    ['texts.js', texts.replace('null', () => translation)],
    ['ttag.js', ttag],
  ]);
}

async function readFolder(folder: string, ...extensions: readonly string[]) {
  const path = join(PAGE_FOLDER, folder);
  const names = readdirSync(path).filter((name) => extensions.includes(extname(name)));
  const read = names.map(async (name) => [name, await readFile(join(path, name), 'utf8')] as const);
  return new Map(await Promise.all(read));
}

async function buildNow(which: 'buildPage' | 'buildDiagrams') {
  // By an address that is computed: the bundle must not contain the compiler.
  const script = new URL('../../scripts/page.ts', import.meta.url).href;
  const builders: typeof import('../../scripts/page.ts') = await import(script);
  return (await builders[which]()).files;
}

type Versioned = {
  readonly version: string;
  readonly files: ReadonlyMap<string, ReadFile>;
  /** The scripts that one needs before it runs, itself included. */
  readonly neededBy: (script: string) => readonly string[];
};

const STATIC_IMPORT = /(?:\bfrom|\bimport) ?["']\.\/([\w.-]+\.js)["']/g;

const versionedFiles = (typed: Typed): (() => Promise<Versioned>) =>
  readOnce(async () => {
    const texts = await versionedTexts(typed);
    const files = [...texts].map(
      ([name, text]) => [name, readOnce(() => served(name, text))] as const,
    );
    const neededBy = (script: string) => {
      const needed = new Set([script]);
      for (const name of needed) {
        const imports = texts.get(name)?.matchAll(STATIC_IMPORT) ?? [];
        for (const [, imported = ''] of imports) needed.add(imported);
      }
      return [...needed];
    };
    return { version: fingerprint([...texts].flat()), files: new Map(files), neededBy };
  });

const SCRIPT = /<script type="module" src="\/built\/([\w.-]+)"><\/script>/;

/**
 * A document names the versioned files as `/built/app.js`. What its script imports is asked for at
 * once, not one behind the other.
 */
const documentFile = (path: string, typed: Typed, versioned: () => Promise<Versioned>): ReadFile =>
  readOnce(async () => {
    const html = await readFile(join(PAGE_FOLDER, path), 'utf8');
    const { version, neededBy } = await versioned();
    const preloads = (script: string) =>
      neededBy(script).map((name) => `<link rel="modulepreload" href="/built/${name}" />`);
    const text = translatedPage(typed(html))
      .replace(SCRIPT, (whole, script: string) => [...preloads(script), whole].join(''))
      .replaceAll('="/built/', () => `="/built/${version}/`);
    return served(path, text);
  });

/** `typed` gives commands in the form used on this machine. */
export function addPage(app: FastifyInstance, typed: Typed): void {
  const versioned = versionedFiles(typed);
  const plain = readdirSync(PAGE_FOLDER).filter((name) => PLAIN.has(extname(name)));
  const named: readonly (readonly [path: string, ReadFile])[] = [
    ['/', documentFile('index.html', typed, versioned)],
    ['/api/docs', documentFile('api-docs.html', typed, versioned)],
    ...plain.map(
      (name) =>
        [
          `/${name}`,
          readOnce(async () => served(name, await readFile(join(PAGE_FOLDER, name)))),
        ] as const,
    ),
  ];
  for (const [path, read] of named) {
    app.get(path, { config: { isOpen: true } }, async (request, reply) =>
      sendFile(await read(), ASK_AGAIN, request, reply),
    );
  }
  app.get('/built/:version/:name', { config: { isOpen: true } }, async (request, reply) => {
    const wanted = request.params as { readonly version: string; readonly name: string };
    const { version, files } = await versioned();
    const read = wanted.version === version ? files.get(wanted.name) : undefined;
    if (read === undefined) return reply.callNotFound();
    return sendFile(await read(), KEEP, request, reply);
  });
  addDiagrams(app);
}

// The frame that draws diagrams: a document of its own that has no login and no origin, whose policy
// allows the inline styles of pictures, and scripts of the gateway.

const DIAGRAM_POLICY = [
  'sandbox allow-scripts',
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'unsafe-inline'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'self'",
].join(';');
/** Loads the others, which have a hash of their content in their name. */
const DIAGRAM_ENTRY = 'frame.js';

function addDiagrams(app: FastifyInstance) {
  const html = readOnce(async () =>
    served('frame.html', await readFile(join(PAGE_FOLDER, 'diagrams/frame.html'))),
  );
  const scripts = readOnce(async () => {
    if (IS_CHECKOUT) {
      const built = await buildNow('buildDiagrams');
      return new Map([...built].map(([name, text]) => [name, async () => text] as const));
    }
    const folder = join(PAGE_FOLDER, 'diagrams');
    const names = readdirSync(folder).filter((name) => extname(name) === '.js');
    return new Map(names.map((name) => [name, () => readFile(join(folder, name))] as const));
  });
  app.get('/diagrams/', { config: { isOpen: true } }, async (request, reply) => {
    reply.header('content-security-policy', DIAGRAM_POLICY).header('x-frame-options', 'SAMEORIGIN');
    return sendFile(await html(), ASK_AGAIN, request, reply);
  });
  app.get('/diagrams/:name', { config: { isOpen: true } }, async (request, reply) => {
    const { name } = request.params as { readonly name: string };
    const read = (await scripts()).get(name);
    if (read === undefined) return reply.callNotFound();
    // The frame has no origin that could be named, so its scripts come from "elsewhere".
    reply.header('access-control-allow-origin', '*');
    // Not kept in memory: some 4 MB, which browsers keep.
    const file = await served(name, await read());
    return sendFile(file, name === DIAGRAM_ENTRY ? ASK_AGAIN : KEEP, request, reply);
  });
}

function sendFile(
  { type, body, zipped, etag }: PageFile,
  caching: string,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  reply.header('etag', etag).header('cache-control', caching).header('vary', 'accept-encoding');
  if (request.headers['if-none-match'] === etag) return reply.code(304).send();
  reply.type(type);
  const takesZipped = /\bgzip\b(?!;\s*q=0(?:\.0*)?(?:,|$))/.test(
    String(request.headers['accept-encoding'] ?? ''),
  );
  if (zipped === undefined || !takesZipped) return reply.send(body);
  return reply.header('content-encoding', 'gzip').send(zipped);
}
