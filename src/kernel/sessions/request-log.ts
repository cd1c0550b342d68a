// Writes the request log, behind the turns: a piece known to be stored costs a memory lookup, and
// occasionally a check of the file, which another process may have purged.

import { appendFileSync, mkdirSync, statSync } from 'node:fs';
import { readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fingerprintOf } from '../../agent/fingerprints.ts';
import { createLanes, rememberedFor } from '../../lib/async.ts';
import { systemCode, undefinedIfMissing, writeAtomic } from '../../lib/files/files.ts';
import { fieldsOf, isObject, parseJson } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Redactor } from '../../lib/text/redact.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { type Config, configSchema } from '../config/config.ts';
import type { SessionKey } from '../message/ids.ts';
import { ARCHIVE_FOLDER, readSession, sessionNames } from './catalog.ts';
import { readLines, stemOf } from './file-lines.ts';
import { ofChats } from './forget.ts';
import { isoTime } from './rules/file.ts';
import { FORGOTTEN, type Holds } from './rules/forgetting.ts';
import { namedIn, type RequestPiece, type RequestTexts } from './rules/request-records.ts';
import type { RequestLog } from './store.ts';

type RequestFilesDeps = {
  /** Of the sessions. */
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly redact: Redactor;
  /** Size limit of a file; beyond it the older half is deleted. Default: 4 MB. */
  readonly maxBytes?: number;
};

type Known = {
  /** Stored completely, the newest first. */
  readonly asks: readonly string[];
  /**
   * The fingerprints in the file as one text: a list of them would take several times the memory.
   */
  readonly prints: string;
  readonly checkedAt: number;
  /** Of the file, bytes. */
  readonly size: number;
};

const MAX_BYTES = 4_000_000;
const MAX_KNOWN = 2000;
const MAX_ASKS = 4;
/** Younger files are never purged. */
const CHECK_MS = 60_000;
const MAX_MASKED = 200;
/** Left by a process that was killed while rewriting. */
const TORN = /^\.(.+)\.jsonl\.[0-9a-f-]{36}\.tmp$/;

export const createRequestFiles = (deps: RequestFilesDeps) => new RequestFiles(deps);

export class RequestFiles implements RequestLog, AsyncDisposable {
  readonly #deps: RequestFilesDeps;
  readonly #lanes = createLanes();
  /** By the stem of the file. */
  readonly #known = new Map<string, Known>();
  readonly #running = new Set<Promise<void>>();
  /** JSON of texts, by fingerprint. */
  readonly #masked = new Map<string, string>();
  #maskedAt = 0;

  constructor(deps: RequestFilesDeps) {
    this.#deps = deps;
  }

  keep(session: SessionKey, ask: RequestPiece, pieces: () => readonly RequestPiece[]): void {
    const stem = stemOf(session);
    if (this.#fresh(stem)?.asks.includes(ask.print) === true) return;
    const write = () => this.#write(stem, ask, pieces);
    const running: Promise<void> = this.#lanes
      .run(stem, write)
      .catch((error) => this.#deps.log.warn('request log not written', { error }))
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  #fresh(stem: string): Known | undefined {
    const known = this.#known.get(stem);
    const isFresh = known !== undefined && this.#deps.clock.now() - known.checkedAt < CHECK_MS;
    return isFresh ? known : undefined;
  }

  /** Erases text of these chats; returns how many pieces contained it. */
  async forget(chats: readonly string[], holds: Holds): Promise<number> {
    const folder = join(this.#deps.folder, REQUEST_LOG_FOLDER);
    const isTheirs = ofChats(chats);
    let changed = 0;
    for (const name of (await readdir(folder).catch(undefinedIfMissing)) ?? []) {
      const torn = TORN.exec(name)?.[1];
      if (torn !== undefined && isTheirs({ stem: torn })) await rm(join(folder, name));
      const stem = name.endsWith(REQUEST_LOG_SUFFIX)
        ? name.slice(0, -REQUEST_LOG_SUFFIX.length)
        : undefined;
      if (stem === undefined || torn !== undefined) continue;
      if (stem !== COMMON && !isTheirs({ stem })) continue;
      changed += await this.#lanes.run(stem, () => forgetIn(join(folder, name), holds));
    }
    return changed;
  }

  /** Waits for current writes. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#running);
  }

  async #write(
    stem: string,
    ask: RequestPiece,
    pieces: () => readonly RequestPiece[],
  ): Promise<void> {
    const { common = [], own = [] } = Object.groupBy(pieces(), ({ isCommon }) =>
      isCommon === true ? 'common' : 'own',
    );
    const there = this.#fresh(COMMON)?.prints ?? '';
    if (common.some(({ print }) => !there.includes(print))) {
      await this.#lanes.run(COMMON, () => this.#add(COMMON, common));
    }
    await this.#add(stem, own, ask);
  }

  async #add(stem: string, pieces: readonly RequestPiece[], ask?: RequestPiece): Promise<void> {
    const { folder, clock, redact, maxBytes = MAX_BYTES } = this.#deps;
    const path = requestLogPath(folder, stem);
    const before = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    const known = this.#known.get(stem);
    const isAsLeft = known !== undefined && known.size === before;
    const asks = isAsLeft ? known.asks : [];
    const there = isAsLeft ? known.prints : fingerprintsOf(await linesIn(path, before));
    const all = ask === undefined ? pieces : [...pieces, ask];
    const wanted = new Map(all.map((piece) => [piece.print, piece]));
    const missing = [...wanted.values()].filter(({ print }) => !there.includes(print));
    // An incomplete line ends where this one begins.
    const data = missing.length === 0 ? '' : `\n${this.#encoded(missing)}`;
    const size = before + Buffer.byteLength(data);
    if (size > maxBytes) {
      const at = clock.now();
      const now = missing.map(({ print, text }) => ({ print, at, text: redact(text) }));
      const all = [...(await linesIn(path, before)), ...now];
      await writeRequestLines(path, halved(all, wanted, maxBytes / 2));
      this.#known.delete(stem);
      return;
    }
    if (data !== '') appendTo(path, data);
    const prints = [there, fingerprintsOf(missing)].join(' ');
    const complete = ask === undefined ? [] : [ask.print, ...asks].slice(0, MAX_ASKS);
    this.#note(stem, { asks: complete, prints, size });
  }

  /**
   * Pieces shared by many conversations are redacted once, and again after a while, because secrets
   * change.
   */
  #encoded(pieces: readonly RequestPiece[]): string {
    const { clock, redact } = this.#deps;
    const at = clock.now();
    if (at - this.#maskedAt > CHECK_MS || this.#masked.size > MAX_MASKED) {
      this.#masked.clear();
      this.#maskedAt = at;
    }
    const lines = pieces.map(({ print, text }) => {
      const json = this.#masked.get(print) ?? JSON.stringify(redact(text));
      this.#masked.set(print, json);
      return requestLine({ print, at }, json);
    });
    return lines.join('');
  }

  #note(stem: string, known: Omit<Known, 'checkedAt'>): void {
    this.#known.delete(stem);
    this.#known.set(stem, { ...known, checkedAt: this.#deps.clock.now() });
    const [oldest] = this.#known.keys();
    if (this.#known.size > MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest);
  }
}

const fingerprintsOf = (pieces: readonly Pick<RequestPiece, 'print'>[]) =>
  pieces.map(({ print }) => print).join(' ');

const linesIn = async (path: string, size: number) =>
  size === 0 ? [] : ((await readRequestLines(path)) ?? []);

/** Synchronously into the kernel's cache; the thread pool would take several times as long. */
function appendTo(path: string, data: string): void {
  const write = () => appendFileSync(path, data, { mode: 0o600 });
  try {
    write();
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    write();
  }
}

/** The current pieces, after the newest of the others. */
function halved(
  lines: readonly RequestLine[],
  wanted: ReadonlyMap<string, RequestPiece>,
  maxBytes: number,
): readonly RequestLine[] {
  const now = lines.filter(({ print }) => wanted.has(print));
  let left = maxBytes;
  const others = lines
    .filter(({ print }) => !wanted.has(print))
    .toReversed()
    .filter((line) => {
      left -= Buffer.byteLength(encodeRequest(line));
      return left >= 0;
    });
  return [...others.toReversed(), ...now];
}

/** Idempotent. */
async function forgetIn(path: string, holds: Holds): Promise<number> {
  const all = await readFile(path, 'utf8').catch(undefinedIfMissing);
  // Includes incomplete lines; rewriting removes them.
  if (all === undefined || !holds(all)) return 0;
  const before = (await readRequestLines(path)) ?? [];
  const after = before.map((line) => ({ ...line, text: withoutWords(line.text, holds) }));
  await writeRequestLines(path, after);
  return after.filter(({ text }, at) => text !== before[at]?.text).length;
}

function withoutWords(text: string, holds: Holds): string {
  if (!holds(text)) return text;
  const left = text.split('\n').map((line) => (holds(line) ? FORGOTTEN : line));
  return holds(left.join('\n')) ? FORGOTTEN : left.join('\n');
}

// The request log on disk: a file for each conversation and one for all of them in a folder of its
// own, a line for each piece, once. An incomplete line is skipped; its piece counts as not stored.

/** In the sessions folder. */
const REQUEST_LOG_FOLDER = 'asked';
const REQUEST_LOG_SUFFIX = '.jsonl';
/** Of the common pieces: no conversation has a stem without a channel. */
const COMMON = 'common';

/** `at`: when it was first used in a request, epoch milliseconds. */
type RequestLine = RequestPiece & { readonly at: number };

const requestLogPath = (sessions: string, stem: string) =>
  join(sessions, REQUEST_LOG_FOLDER, `${stem}${REQUEST_LOG_SUFFIX}`);

const encodeRequest = (line: RequestLine) => requestLine(line, JSON.stringify(line.text));

/** `json`: the text, encoded already. */
const requestLine = ({ print, at }: Omit<RequestLine, 'text'>, json: string) =>
  `{"print":${JSON.stringify(print)},"at":"${isoTime(at)}","text":${json}}\n`;

/** Undefined if there is no such file. */
async function readRequestLines(path: string): Promise<readonly RequestLine[] | undefined> {
  const lines: RequestLine[] = [];
  try {
    for await (const { bytes } of readLines(path)) lines.push(...decoded(bytes.toString('utf8')));
  } catch (error) {
    return undefinedIfMissing(error);
  }
  return lines;
}

function decoded(line: string): readonly RequestLine[] {
  const { print, at, text } = fieldsOf(parseJson(line)) ?? {};
  if (typeof print !== 'string' || typeof text !== 'string') return [];
  return [{ print, text, at: Date.parse(String(at)) || 0 }];
}

/** Replaces the file; without lines it is deleted. */
async function writeRequestLines(path: string, lines: readonly RequestLine[]): Promise<void> {
  if (lines.length === 0) await rm(path, { force: true });
  else await writeAtomic(path, lines.map(encodeRequest).join(''));
}

/** Everything stored for a conversation; `sessions`: their folder. */
export async function readRequests(sessions: string, session: SessionKey): Promise<RequestTexts> {
  const files = await Promise.all(
    [COMMON, stemOf(session)].map((stem) => readRequestLines(requestLogPath(sessions, stem))),
  );
  return new Map(files.flatMap((lines) => lines ?? []).map(({ print, text }) => [print, text]));
}

// Deletes parts of the request log together with their conversations: what no remaining entry
// names, and everything of a deleted conversation.

/** For these conversations, and those without a file; `before` in epoch milliseconds. */
export async function purgeRequests(
  sessions: string,
  stems: ReadonlySet<string>,
  before: number,
): Promise<void> {
  const names = (await readdir(join(sessions, REQUEST_LOG_FOLDER)).catch(undefinedIfMissing)) ?? [];
  if (names.length === 0) return;
  const left = await stemsIn(sessions);
  for (const name of names.filter((each) => each.endsWith(REQUEST_LOG_SUFFIX))) {
    const stem = name.slice(0, -REQUEST_LOG_SUFFIX.length);
    if (stem === COMMON) continue;
    if (stems.has(stem) || !left.has(stem)) await purgeOne(sessions, stem, before);
  }
}

/** A running turn may name recent pieces that no entry contains yet. */
async function purgeOne(sessions: string, stem: string, before: number): Promise<void> {
  const path = requestLogPath(sessions, stem);
  const lines = (await readRequestLines(path)) ?? [];
  const named = await namedBy(sessions, stem, lines);
  const kept = lines.filter(({ print, at }) => at >= before || named.has(print));
  if (kept.length < lines.length) await writeRequestLines(path, kept);
}

async function namedBy(sessions: string, stem: string, lines: readonly RequestLine[]) {
  const texts = new Map(lines.map(({ print, text }) => [print, text]));
  const named = new Set<string>();
  for await (const entry of readSession(sessions, stem)) {
    if (entry.role === 'assistant' && entry.asked !== undefined) named.add(entry.asked);
  }
  for (const ask of [...named]) for (const each of namedIn(texts.get(ask) ?? '')) named.add(each);
  return named;
}

/** Of all conversations that have a file. */
async function stemsIn(sessions: string): Promise<ReadonlySet<string>> {
  const places = [join(sessions, ARCHIVE_FOLDER), sessions];
  const names = (await Promise.all(places.map((place) => sessionNames(place)))).flat();
  return new Set(names.map(({ stem }) => stem));
}

export const removeRequests = (sessions: string, stem: string) =>
  rm(requestLogPath(sessions, stem), { force: true });

export const removeAllRequests = (sessions: string) =>
  rm(join(sessions, REQUEST_LOG_FOLDER), { recursive: true, force: true });

// The settings that shape a turn, stored in the request log and restored when a turn is replayed.
// Contains no secrets.

/** Computed once for each configuration. */
export const createRequestConfig = () =>
  rememberedFor((config: Config): RequestPiece => {
    const text = JSON.stringify(shaping(config));
    return { print: fingerprintOf(text), text, isCommon: true };
  });

function shaping({ agents, localModels, media, sessions }: Config) {
  const { workspace: _, compaction, ...defaults } = agents.defaults;
  // Whether conversations are summarised does not matter for one turn.
  const { enabled: __, ...summing } = compaction;
  return {
    agents: { ...agents, defaults: { ...defaults, compaction: summing } },
    localModels: { smallTools: localModels.smallTools },
    media: { images: media.images, maxInlineChars: media.maxInlineChars },
    sessions: { timeZone: sessions.timeZone },
  };
}

/** `config` with the earlier settings; undefined if they do not fit this version. */
export function withRequestConfig(config: Config, then: unknown): Config | undefined {
  const parsed = configSchema.safeParse(merged(config, then));
  return parsed.success ? parsed.data : undefined;
}

function merged(base: unknown, over: unknown): unknown {
  if (!isObject(base) || !isObject(over)) return over === undefined ? base : over;
  const keys = [...new Set([...Object.keys(base), ...Object.keys(over)])];
  return Object.fromEntries(keys.map((key) => [key, merged(base[key], over[key])]));
}
