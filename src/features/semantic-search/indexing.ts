// Keeps the index for the search by meaning up to date in the background: documents of the
// workspace by their stamps, and the vectors of all texts, newest first, a batch at a time. What is
// done is on the disk, so a later process goes on where this one ended.

import { hash } from 'node:crypto';
import { posix } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type PaidCalls, SpendingRefusedError } from '../../agent/agent.ts';
import { isOwnFile } from '../../agent/rules/taint.ts';
import { StoreError } from '../../kernel/bus/store/store.ts';
import type { IndexedPart, IndexState, WaitingPart } from '../../kernel/bus/store/text-index.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { type SessionKey, sessionKey } from '../../kernel/message/ids.ts';
import { chatRefOf, type Payer } from '../../kernel/message/message.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER } from '../../kernel/message/untrusted.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';
import { t } from '../../lib/texts.ts';
import { backoffMs, sleepOrWoken } from '../../lib/time/clock.ts';
import { type FoundFile, workspaceFiles } from '../../tools/search/search-files.ts';
import type { Memory } from '../memory/index.ts';
import { type Embedder, EmbeddingError, embedPaid } from './embeddings.ts';
import { FILE_SCOPES, FILE_SOURCES, MEANING_SOURCES, type MeaningSource } from './settings.ts';
import { type Piece, piecesOf, type Vectors } from './vectors.ts';

type IndexingDeps = Pick<
  Kernel,
  'live' | 'clock' | 'log' | 'owners' | 'reader' | 'contributed' | 'add'
> & {
  readonly memory: Pick<Memory, 'index' | 'files' | 'indexNotes'>;
  readonly vectors: Vectors;
  /** Undefined where nothing keeps the conversation on one's own machines. */
  readonly only: { holding(session: SessionKey): Promise<string | undefined> };
  readonly spending: PaidCalls;
  /** @throws EmbeddingError */
  embedder(): Embedder;
};

/** The start of a gateway has other work. */
const FIRST_AFTER_MS = 2000;
/** Looks for new texts. */
const PAUSE_MS = 5000;
/** Looks for changed files; where that takes long, less often. */
const FILES_EVERY_MS = 30_000;
const SHARE_OF_TIME = 50;
/** After a failure; doubled for each further one. */
const RETRY = { minMs: 5000, maxMs: 600_000, random: () => 1 };
/** Another conversation may have ended its `/local only`. */
const ALL_EVERY_MS = 600_000;
const PAGE_PARTS = 200;
/** Pieces of one request. */
const BATCH_PIECES = 64;

/** The beginning of their scopes in the index. */
const SCOPES: Readonly<Record<MeaningSource, string>> = {
  notes: 'notes:',
  conversations: 'session:',
  files: FILE_SCOPES,
};
/** Every model accepts it. */
const PROBE = 'nanobot';

type ChangedFile = {
  readonly name: string;
  readonly file: FoundFile;
  readonly known: IndexState | undefined;
};

type Batch = { readonly part: WaitingPart; readonly pieces: readonly Piece[] }[];

export class MeaningIndexing {
  readonly #deps: IndexingDeps;
  #woken = Promise.withResolvers<void>();
  #filesAt = Number.NEGATIVE_INFINITY;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** Texts that wait and are not embedded: of conversations that stay on one's own machines. */
  #left = 0;
  #isFull = false;
  #failures = 0;
  #problem: string | undefined;

  constructor(deps: IndexingDeps) {
    this.#deps = deps;
  }

  /** For /status. */
  async line(): Promise<string> {
    const { live } = this.#deps;
    const { model, maxChunks } = live.config.search.embeddings;
    const counts = await this.#deps.vectors.counts().catch((error: unknown) => {
      if (error instanceof StoreError) return error;
      throw error;
    });
    if (counts instanceof StoreError) return t`Search by meaning: ${counts.message}`;
    const { vectors: count, waiting: all } = counts;
    const waiting = Math.max(0, all - this.#left);
    const isFull = this.#isFull ? t`, full: search.embeddings.maxChunks is ${maxChunks}` : '';
    const isWaiting = waiting > 0 && !this.#isFull ? t`, ${waiting} texts to do` : '';
    const problem = this.#problem === undefined ? '' : `; ${this.#problem}`;
    const passages = t`Search by meaning: ${count} passages with ${model}`;
    return passages + isFull + isWaiting + problem;
  }

  /** The configuration may have mended what failed. */
  reconfigured(): void {
    this.#failures = 0;
    this.#lookedAt = Number.NEGATIVE_INFINITY;
    this.#filesAt = Number.NEGATIVE_INFINITY;
    this.#woken.resolve();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    for (let waitMs = FIRST_AFTER_MS; ; waitMs = await this.#tried(signal)) {
      await sleepOrWoken(clock, waitMs, this.#woken.promise, signal);
      if (signal.aborted) return;
      this.#woken = Promise.withResolvers();
    }
  }

  /** Returns how long to wait. */
  async #tried(signal: AbortSignal): Promise<number> {
    try {
      await this.#pass(signal);
      this.#failures = 0;
      this.#problem = undefined;
      return PAUSE_MS;
    } catch (error) {
      if (signal.aborted) return 0;
      const text = error instanceof Error ? error.message : '';
      if (this.#problem !== text) this.#deps.log.warn('texts not embedded', { error });
      this.#problem = text;
      this.#failures += 1;
      if (error instanceof SpendingRefusedError) return RETRY.maxMs;
      const asked = error instanceof EmbeddingError ? error.retryAfterMs : undefined;
      return Math.min(RETRY.maxMs, asked ?? backoffMs(this.#failures, RETRY));
    }
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const { vectors, live, memory } = this.#deps;
    const { sources } = live.config.search.embeddings;
    const embedder = this.#deps.embedder();
    await vectors.use(embedder.id);
    for (const source of MEANING_SOURCES.filter((each) => !sources.includes(each))) {
      await vectors.leaveOut(SCOPES[source]);
    }
    if (sources.includes('notes')) await memory.indexNotes();
    await this.#indexFiles(sources.includes('files'), signal);
    await this.#embedAll(embedder, signal);
  }

  async #embedAll(embedder: Embedder, signal: AbortSignal): Promise<void> {
    const { vectors, clock } = this.#deps;
    const isDue = clock.monotonic() - this.#lookedAt >= ALL_EVERY_MS;
    const counts = await vectors.counts();
    if (!isDue && counts.waiting === this.#left) return;
    this.#lookedAt = clock.monotonic();
    const { sources, maxChunks } = this.#deps.live.config.search.embeddings;
    const scopes = sources.map((source) => SCOPES[source]);
    let batch: Batch = [];
    let [size, left, count] = [0, 0, counts.vectors];
    const flush = async () => {
      await this.#embed(batch, embedder, signal);
      [batch, size] = [[], 0];
    };
    this.#isFull = false;
    for (let below = Number.MAX_SAFE_INTEGER; ; ) {
      const page = await vectors.next(below, PAGE_PARTS);
      for (const part of page) {
        below = part.id;
        const isWanted = scopes.some((scope) => part.scope.startsWith(scope));
        if (!isWanted || (await this.#isKept(part, embedder))) {
          left += 1;
          continue;
        }
        const pieces = this.#isNeverRead(part) ? [] : piecesOf(part.text);
        if (size + pieces.length > BATCH_PIECES) await flush();
        this.#isFull ||= count + pieces.length > maxChunks;
        if (this.#isFull) return flush();
        count += pieces.length;
        size += pieces.length;
        batch.push({ part, pieces });
      }
      if (page.length < PAGE_PARTS) break;
      await nextTurn();
    }
    await flush();
    this.#left = left;
  }

  /** Nothing of a conversation that stays on one's own machines is sent elsewhere. */
  async #isKept({ scope, label }: WaitingPart, { isElsewhere }: Embedder): Promise<boolean> {
    if (!isElsewhere) return false;
    const { only, live } = this.#deps;
    if (live.config.localModels.only) return true;
    return (
      scope.startsWith(SCOPES.conversations) &&
      (await only.holding(sessionKey(label))) !== undefined
    );
  }

  /** The conversations of jobs and subagents are in no search. */
  #isNeverRead({ scope, label }: WaitingPart): boolean {
    if (!scope.startsWith(SCOPES.conversations)) return false;
    const channel = chatRefOf(sessionKey(label))?.channel;
    return channel === undefined || this.#deps.contributed.startedFrom(channel) !== undefined;
  }

  async #embed(batch: Batch, embedder: Embedder, signal: AbortSignal): Promise<void> {
    const { vectors, live } = this.#deps;
    const texts = batch.flatMap(({ pieces }) => pieces.map(({ text }) => live.redact(text)));
    let found: readonly Float32Array[];
    try {
      found = texts.length === 0 ? [] : await this.#paid(texts, embedder, signal);
    } catch (error) {
      if (!(error instanceof EmbeddingError) || error.code !== 'embedding_rejected') throw error;
      return this.#embedHalves(batch, embedder, signal);
    }
    const [first] = found;
    if (first !== undefined && ((await vectors.dimensions()) ?? first.length) !== first.length) {
      await vectors.unusable();
      throw new EmbeddingError('embedding_malformed', t`the model changed; all is made anew`);
    }
    let at = 0;
    for (const { part, pieces } of batch) {
      const own = pieces.flatMap(({ offset }, index) => {
        const vector = found[at + index];
        return vector === undefined ? [] : [{ offset, vector }];
      });
      at += pieces.length;
      await vectors.put(part, own);
    }
    await nextTurn();
  }

  /** One text that a server refuses must not hold up the others. */
  async #embedHalves(batch: Batch, embedder: Embedder, signal: AbortSignal): Promise<void> {
    const [first] = batch;
    if (batch.length > 1) {
      const middle = Math.ceil(batch.length / 2);
      await this.#embed(batch.slice(0, middle), embedder, signal);
      return this.#embed(batch.slice(middle), embedder, signal);
    }
    // Fails where it is not the text that is refused.
    await this.#paid([PROBE], embedder, signal);
    if (first === undefined) return;
    this.#deps.log.warn('text refused by the embedding model', { source: first.part.label });
    await this.#deps.vectors.put(first.part, []);
  }

  async #paid(texts: readonly string[], embedder: Embedder, signal: AbortSignal) {
    const { owners, spending } = this.#deps;
    const chat = await owners.chat();
    const payer: Payer = { chat, sender: { kind: 'system', source: 'heartbeat' }, isUnseen: true };
    return embedPaid(texts, 'passage', { embedder, spending, payer }, signal);
  }

  /** Files that changed since, by size and time; those that are gone are removed. */
  async #indexFiles(isWanted: boolean, signal: AbortSignal): Promise<void> {
    const { memory, live, clock } = this.#deps;
    const { index } = memory;
    const begun = clock.monotonic();
    if (begun < this.#filesAt) return;
    const { workspace } = live.defaults;
    const found = isWanted
      ? (await workspaceFiles(memory.files, workspace, '.', signal)).files
      : [];
    const wanted = new Map(
      found
        .filter((file) => isIndexed(file, live.config.search.embeddings.ignore))
        .map((file) => [FILE_SOURCES + file.path, file]),
    );
    const states = await index.states(FILE_SOURCES);
    for (const name of states.keys()) if (!wanted.has(name)) await index.remove(name);
    for (const [name, file] of wanted) {
      signal.throwIfAborted();
      const known = states.get(name);
      if (known?.stamp.startsWith(stampOf(file)) === true) continue;
      await this.#indexFile({ name, file, known }, signal);
      await nextTurn();
    }
    const tookMs = clock.monotonic() - begun;
    this.#filesAt = clock.monotonic() + Math.max(FILES_EVERY_MS, SHARE_OF_TIME * tookMs);
  }

  async #indexFile({ name, file, known }: ChangedFile, signal: AbortSignal): Promise<void> {
    const { memory, live } = this.#deps;
    const { path, bytes, modifiedAt } = file;
    let content: Buffer;
    try {
      const limits = { maxBytes: maxBytesOf(path) };
      content = await memory.files.read(live.defaults.workspace, path, limits);
    } catch (error) {
      if (!(error instanceof GuardedFileError)) throw error;
      return memory.index.remove(name);
    }
    const common = { role: 'note', isForeign: true, at: modifiedAt } as const;
    const parts: IndexedPart[] = (await this.#passages(path, content, signal)).map((passage) => ({
      ...common,
      ...passage,
    }));
    const stamp = `${stampOf(file)}${contentHash(content)}`;
    const source = { name, scope: scopeOfFile(path), label: path };
    // What another process has indexed meanwhile is looked at again with the next pass.
    const step = { from: known, to: { stamp, position: bytes }, replaces: true };
    await memory.index.put([{ source, step, parts }]);
  }

  async #passages(path: string, content: Buffer, signal: AbortSignal): Promise<readonly Passage[]> {
    const { live, reader } = this.#deps;
    if (isPlain(path)) {
      return content.includes(0) ? [] : passagesOf(live.redact(content.toString('utf8')));
    }
    const reading = await reader.documentIn(content, signal);
    if (reading.kind === 'unreadable') return [];
    return reading.sections.flatMap(({ text }, at) =>
      cut(live.redact(text)).map((part) => ({ place: at + 1, text: part })),
    );
  }
}

// Which files of the workspace are indexed: texts that people write, outside of hidden folders. The
// agent's own instructions are in its prompt.

const PLAIN = /\.(?:md|mdx|markdown|txt|text|rst|adoc|org|tex)$/i;
const DOCUMENT = /\.(?:pdf|docx|odt|rtf|epub|pptx|odp)$/i;
/** Notes are indexed by the memory. */
const NOTES = new RegExp(`^(?:(?:${PEOPLE_FOLDER}|${GROUPS_FOLDER})/[^/]+/)?memory/`);
const HIDDEN = /(?:^|\/)\./;
const MAX_PLAIN_BYTES = 1_000_000;
const MAX_DOCUMENT_BYTES = 20_000_000;

/** Its places are lines; those of other documents are sections. */
export const isPlain = (path: string) => PLAIN.test(path);

const maxBytesOf = (path: string) => (isPlain(path) ? MAX_PLAIN_BYTES : MAX_DOCUMENT_BYTES);

function isIndexed({ path, bytes }: FoundFile, ignore: readonly string[]): boolean {
  if (!(PLAIN.test(path) || DOCUMENT.test(path)) || bytes > maxBytesOf(path)) return false;
  if (NOTES.test(path) || HIDDEN.test(path) || isOwnFile(path)) return false;
  return !ignore.some((glob) =>
    posix.matchesGlob(glob.includes('/') ? path : posix.basename(path), glob),
  );
}

const stampOf = ({ bytes, modifiedAt }: FoundFile) => `${bytes} ${modifiedAt} `;

export const contentHash = (content: Uint8Array) => hash('sha256', content);

// Who may see a file: everybody who may read the workspace, except what is in the folder of one
// person or group.

const OWN_FOLDER = new RegExp(`^(?:${PEOPLE_FOLDER}|${GROUPS_FOLDER})/[^/]+/`);

const scopeOfFile = (path: string) => FILE_SCOPES + (OWN_FOLDER.exec(path)?.[0] ?? '');

/** @param notes the notes folder of the person, see `TurnPerson` */
export const fileScopes = (notes: string): readonly string[] => [
  FILE_SCOPES,
  ...(notes === '' ? [] : [FILE_SCOPES + notes]),
];

type Passage = Pick<IndexedPart, 'place' | 'text'>;

const PASSAGE_CHARS = 1000;
/** A longer one ends at an empty line. */
const PARAGRAPH_CHARS = 300;
const MAX_PART_CHARS = 20_000;
const HEADING = /^#{1,6}\s/;

/** Lines that stand together, up to a size; a heading begins a new passage. */
function passagesOf(text: string): readonly Passage[] {
  const passages: { place: number; text: string }[] = [];
  let open: { place: number; text: string } | undefined;
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const isEmpty = line.trim() === '';
    const begins = open === undefined || HEADING.test(line);
    if (open !== undefined && !begins && open.text.length + line.length < PASSAGE_CHARS) {
      open.text += `\n${line}`;
    } else if (!isEmpty) {
      passages.push(...cut(line).map((part) => ({ place: index + 1, text: part })));
      open = passages.at(-1);
    }
    if (isEmpty && (open?.text.length ?? 0) >= PARAGRAPH_CHARS) open = undefined;
  }
  return passages.map(({ place, text }) => ({ place, text: text.toWellFormed().trimEnd() }));
}

function cut(text: string): readonly string[] {
  const parts: string[] = [];
  for (let at = 0; at < text.length; at += MAX_PART_CHARS) {
    parts.push(text.slice(at, at + MAX_PART_CHARS).toWellFormed());
  }
  return parts;
}
