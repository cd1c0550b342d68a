// Tool: reads one URL, a page as Markdown of its visible content. lib/net/safe-fetch.ts decides
// which addresses are allowed.

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { createReaderMemory, type ReaderMemory, RecentMap } from '../../lib/async.ts';
import { createSafeFetch, type SafeFetch, type SafeFetched } from '../../lib/net/safe-fetch.ts';
import { cutBefore, headOf, visibleText } from '../../lib/text/cut.ts';
import { decodeText } from '../../lib/text/decode-text.ts';
import { t } from '../../lib/texts.ts';
import { type Clock, orAborted } from '../../lib/time/clock.ts';
import { defineTool, type ToolContext } from '../tool.ts';
import type { FromReader, PageSource, ReadPage, ToReader } from './readable-page.ts';

/** `label`: a description of the type. */
type FetchedKind =
  | { readonly kind: 'page' }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'other'; readonly label: string };

const PAGE_TYPES = ['text/html', 'application/xhtml+xml'];
const TEXT_TYPE =
  /^(?:text\/|application\/(?:(?:[a-z0-9.-]+\+)?(?:json|xml|yaml)|x-yaml|x-ndjson|jsonl?|javascript|ecmascript|toml|sql|graphql|x-sh|rtf|x-subrip)$)/;
const SNIFFED_CHARS = 512;
const SIGNATURES: readonly (readonly [signature: string, label: string])[] = [
  ['%PDF-', 'a PDF document'],
  ['PK\u0003\u0004', 'a ZIP archive or an office document'],
  ['\u0089PNG', 'a PNG image'],
  ['\u00ff\u00d8\u00ff', 'a JPEG image'],
  ['GIF8', 'a GIF image'],
  ['\u001f\u008b', 'a gzip archive'],
];

function fetchedKind(body: Uint8Array, contentType: string): FetchedKind {
  const mimeType = (contentType.split(';')[0] ?? '').trim().toLowerCase();
  const head = Buffer.from(body.subarray(0, SNIFFED_CHARS)).toString('latin1');
  const signature = SIGNATURES.find(([start]) => head.startsWith(start));
  if (signature !== undefined) return { kind: 'other', label: signature[1] };
  const isPage =
    PAGE_TYPES.includes(mimeType) || (mimeType === '' && /<(?:!doctype )?html/i.test(head));
  if (isPage) return { kind: 'page' };
  if (mimeType !== '' && !TEXT_TYPE.test(mimeType)) {
    const name = /^[a-z0-9.+-]+\/[a-z0-9.+-]+$/.test(mimeType) ? mimeType : 'of an unknown type';
    return { kind: 'other', label: `a file (${name})` };
  }
  const text = decoded(body, contentType);
  return text === undefined ? { kind: 'other', label: 'binary data' } : { kind: 'text', text };
}

/**
 * Undefined if it is not valid text in its declared character set, or in any if it declares none.
 */
function decoded(body: Uint8Array, contentType: string): string | undefined {
  const charset = /charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1];
  if (charset === undefined) return decodeText(body);
  const text = (decoderFor(charset) ?? new TextDecoder()).decode(body);
  return text.includes('\0') ? undefined : text;
}

function decoderFor(charset: string): TextDecoder | undefined {
  try {
    return new TextDecoder(charset);
  } catch {
    return undefined;
  }
}

/** `maxResultChars`: the toolbox's limit for one result. */
type WebFetchSettings = ReturnType<typeof webSettings>;

export type WebFetchDeps = {
  readonly safeFetch: SafeFetch;
  readonly reader: PageReader;
  readonly settings: () => WebFetchSettings;
  /** Masks the values of configured secrets. */
  readonly redact: (text: string) => string;
};

type WebText = {
  /** After redirects. */
  readonly url: string;
  readonly about: readonly string[];
  readonly text: string;
};

/** The pages read last are cached for a short time: a long one is continued where it was cut. */
const MAX_PAGES = 4;
const KEPT_MS = 5 * 60_000;
const MAX_URL_CHARS = 8192;
const MAX_TEXT_CHARS = 1_000_000;
/** Reserved for the lines around the text. */
const FRAME_CHARS = 700;
const MIN_PART_CHARS = 500;
const MAX_SHOWN_URL_CHARS = 300;
const ACCEPT =
  'text/html,application/xhtml+xml,text/markdown;q=0.9,text/*;q=0.8,application/json;q=0.8,*/*;q=0.1';

const input = z.object({
  url: z
    .string()
    .min(1)
    .max(MAX_URL_CHARS)
    .describe('Full address, http or https. Example: "https://example.org/page".'),
  offset: z
    .int()
    .min(0)
    .max(MAX_TEXT_CHARS)
    .optional()
    .describe('Character to read on from, as the last part said.'),
});

export function createWebFetch(deps: WebFetchDeps) {
  const cache = new RecentMap<string, { readonly page: WebText; readonly until: number }>(
    MAX_PAGES,
  );
  return defineTool({
    name: 'web_fetch',
    aliases: [
      'WebFetch',
      'fetch',
      'fetch_url',
      'open_url',
      'read_url',
      'browse',
      'curl',
      'http_get',
      'read_page',
    ],
    parameterAliases: {
      url: ['uri', 'link', 'address', 'href', 'page'],
      offset: ['start_index', 'start'],
    },
    access: 'web',
    taints: true,
    input,
    urlOf: ({ url }) => withScheme(url),
    requestOf: ({ url }) => ({
      sentence: t`Open this address, which could carry text of this conversation away?`,
      ...{ text: withScheme(url), file: 'address.txt' },
    }),
    describe: ({ url }) => headOf(withScheme(url), MAX_SHOWN_URL_CHARS),
    async run({ url, offset = 0 }, context) {
      const address = withScheme(url);
      if (deps.redact(address) !== address) {
        throw new ToolError('blocked', 'the address contains a secret of the configuration');
      }
      const key = `${context.session} ${address}`;
      const kept = cache.get(key);
      // Continuing must use the same text.
      const isKept = offset > 0 && kept !== undefined && kept.until > context.clock.now();
      const found = isKept ? kept.page : await loadPage(address, context, deps);
      cache.set(key, { page: found, until: context.clock.now() + KEPT_MS });
      return partOf(found, offset, deps.settings().maxResultChars);
    },
  });
}

/** As people write it. */
function withScheme(url: string): string {
  const address = url.trim();
  return /^[a-z][a-z0-9+.-]*:/i.test(address) && !/^[^/:]+:\d+(?:[/?#]|$)/.test(address)
    ? address
    : `https://${address.replace(/^\/+/, '')}`;
}

/** The visible text behind an address. @throws ToolError, SafeFetchError */
export async function loadPage(
  url: string,
  { signal }: Pick<ToolContext, 'signal'>,
  { safeFetch, reader, settings }: WebFetchDeps,
): Promise<WebText> {
  const { maxResultChars: _, ...limits } = settings();
  const answer = await safeFetch(url, { ...limits, headers: { accept: ACCEPT }, signal });
  if (answer.status >= 400) {
    throw new ToolError('execution', `the server answered with status ${answer.status}`);
  }
  return textOf(answer, reader, signal);
}

async function textOf(
  { url, body, contentType }: SafeFetched,
  reader: PageReader,
  signal: AbortSignal,
): Promise<WebText> {
  const found = fetchedKind(body, contentType);
  switch (found.kind) {
    case 'page': {
      const page = await reader.read({ bytes: body, contentType, url }, signal);
      const about = [
        ...(page.title === '' ? [] : [`Title: ${page.title}`]),
        ...(page.note === undefined ? [] : [`Note: ${page.note}`]),
      ];
      return { url, about, text: page.text === '' ? '(the page shows no text)' : page.text };
    }
    case 'text':
      return { url, about: [], text: visibleText(headOf(found.text, MAX_TEXT_CHARS)) };
    case 'other': {
      const size = body.length.toLocaleString('en-US');
      return { url, about: [], text: `(${found.label}, ${size} bytes: not text, not read)` };
    }
  }
}

function partOf({ url, about, text }: WebText, offset: number, maxResultChars: number): string {
  if (offset >= text.length && offset > 0) {
    throw new ToolError('invalid_arguments', `the text has only ${text.length} characters`);
  }
  const room = Math.max(MIN_PART_CHARS, maxResultChars - FRAME_CHARS);
  const end = Math.max(offset + 1, cutBefore(text, offset + room));
  const part = text.slice(offset, end).toWellFormed();
  const head = [`Address: ${headOf(url, MAX_SHOWN_URL_CHARS)}`, ...(offset === 0 ? about : [])];
  const total = text.length.toLocaleString('en-US');
  const more =
    end < text.length
      ? `\n\n[characters ${offset} to ${end} of ${total}; read on with offset ${end}]`
      : '';
  return `${head.join('\n')}\n\n${part}${more}`;
}

export function buildWeb(
  live: LiveConfig,
  clock: Clock,
  memory: ReaderMemory,
  resources: AsyncDisposableStack,
): WebFetchDeps {
  return {
    safeFetch: createSafeFetch({
      rules: () => live.config.tools.web,
      proxy: () => live.config.network.proxy,
    }),
    reader: resources.use(new PageReader({ clock, memory })),
    redact: live.redact,
    settings: () => webSettings(live),
  };
}

function webSettings({ config, defaults }: LiveConfig) {
  const { timeoutSecs, maxBytes, maxDecompressedBytes } = config.tools.web;
  const { maxToolResultChars: maxResultChars } = defaults;
  return { timeoutMs: timeoutSecs * 1000, maxBytes, maxDecompressedBytes, maxResultChars };
}

// The main thread's side of reading pages: starts the thread with the first page, gives each a
// limited time and memory, and stops a thread that exceeds them or is idle.

const READ_LIMIT_MS = 10_000;
const START_LIMIT_MS = 30_000;
/** An idle thread still costs memory. */
const IDLE_LIMIT_MS = 60_000;
const MAX_HEAP_MB = 384;
const MAX_STACK_MB = 8;

const BROKEN = 'the page cannot be read';

const WORKER_URL = new URL(`./reading-worker${extname(import.meta.url)}`, import.meta.url);

type PageReaderDeps = {
  readonly clock: Clock;
  /** Longest time for one page; default: 10 s. */
  readonly limitMs?: number;
  /** Shared with other readers; default: its own. */
  readonly memory?: ReaderMemory;
};

export class PageReader implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #memory: ReaderMemory;
  #worker: Worker | undefined;
  #idle: Disposable | undefined;
  /** Pages are read one after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor({ clock, limitMs = READ_LIMIT_MS, memory = createReaderMemory() }: PageReaderDeps) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#memory = memory;
  }

  /** @throws ToolError if the page cannot be read; the signal's reason */
  async read(page: PageSource, signal: AbortSignal): Promise<ReadPage> {
    const turn = this.#last.then(() => {
      signal.throwIfAborted();
      return this.#readNow(page, signal);
    });
    this.#last = turn.catch(() => undefined);
    return orAborted(turn, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
  }

  async #readNow(page: PageSource, signal: AbortSignal): Promise<ReadPage> {
    this.#idle?.[Symbol.dispose]();
    using _permit = await this.#memory.acquire(signal);
    try {
      if (this.#worker === undefined) {
        this.#worker = startWorker(this.#memory.bytes);
        const started = await this.#answer(this.#worker, START_LIMIT_MS, signal);
        if (started.kind !== 'ready') throw new ToolError('execution', BROKEN);
      }
      this.#worker.postMessage({ kind: 'read', page } satisfies ToReader);
      const answer = await this.#answer(this.#worker, this.#limitMs, signal);
      if (answer.kind === 'read') return answer.page;
      throw new ToolError('execution', answer.kind === 'failed' ? answer.problem : BROKEN);
    } catch (error) {
      // The thread may still be busy; nothing waits for it any more.
      await this.#stop();
      throw error;
    } finally {
      if (this.#memory.isTight) await this.#stop();
      else this.#idle = this.#clock.timer(IDLE_LIMIT_MS, () => void this.#stop());
    }
  }

  /** The next message of the thread. */
  async #answer(worker: Worker, limitMs: number, signal: AbortSignal): Promise<FromReader> {
    const next = Promise.withResolvers<FromReader>();
    const fail = (problem: string) => next.resolve({ kind: 'failed', problem });
    const onBroken = () => fail('the page takes too much memory to read');
    worker.once('message', next.resolve).once('error', onBroken).once('exit', onBroken);
    using _deadline = this.#clock.timer(limitMs, () => fail('the page takes too long to read'));
    try {
      return await orAborted(next.promise, signal);
    } finally {
      worker.off('message', next.resolve).off('error', onBroken).off('exit', onBroken);
    }
  }

  async #stop(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#idle?.[Symbol.dispose]();
    await worker?.terminate();
  }
}

function startWorker(maxBytes: number): Worker {
  const worker = new Worker(WORKER_URL, {
    env: {},
    resourceLimits: {
      maxOldGenerationSizeMb: Math.min(MAX_HEAP_MB, Math.floor(maxBytes / 1_048_576)),
      stackSizeMb: MAX_STACK_MB,
    },
    stdout: true,
    stderr: true,
  });
  // A thread that is being stopped may still fail.
  worker.on('error', () => undefined);
  worker.unref();
  return worker;
}
