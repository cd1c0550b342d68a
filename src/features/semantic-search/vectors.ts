// The vectors of indexed texts, beside the full-text index in index.db: each as bytes with a scale,
// searched exactly in short steps. Triggers in the file remove a vector in the transaction that
// removes its text, also while the feature is off, and note new texts for it.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FoundPart, IndexRow, TextIndex } from '../../kernel/bus/store/text-index.ts';

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS vector (
    id INTEGER PRIMARY KEY, part INTEGER NOT NULL, offset INTEGER NOT NULL, scope TEXT NOT NULL,
    scale REAL NOT NULL, v BLOB NOT NULL
  );
  CREATE INDEX IF NOT EXISTS vector_part ON vector (part);
  CREATE TABLE IF NOT EXISTS vector_pending (part INTEGER PRIMARY KEY);
  CREATE TABLE IF NOT EXISTS vector_model (id TEXT NOT NULL);
  CREATE TRIGGER IF NOT EXISTS vector_wanted AFTER INSERT ON part BEGIN
    INSERT OR IGNORE INTO vector_pending VALUES (new.id);
  END;
  CREATE TRIGGER IF NOT EXISTS vector_removed AFTER DELETE ON part BEGIN
    DELETE FROM vector WHERE part = old.id;
    DELETE FROM vector_pending WHERE part = old.id;
  END;
`;

/** Read in one step, some milliseconds of work; other work runs between steps. */
const STEP_ROWS = 500;
const NEAREST = `
  SELECT part, offset, scale, v FROM vector
  WHERE id > ? AND id <= ? AND scope IN (SELECT value FROM json_each(?))`;
const WAITING = `
  SELECT part.id, part.text, source.scope, source.label FROM vector_pending
  JOIN part ON part.id = vector_pending.part JOIN source ON source.name = part.source
  WHERE vector_pending.part < ? ORDER BY vector_pending.part DESC LIMIT ?`;
const PARTS = `
  SELECT part.id, part.source, part.place, part.role, part.is_foreign, part.at, part.text,
    source.label
  FROM part JOIN source ON source.name = part.source
  WHERE part.id IN (SELECT value FROM json_each(?))`;
const MAX_BYTE = 127;

/** A text that has no vectors yet. */
export type WaitingPart = {
  readonly id: number;
  readonly text: string;
  readonly scope: string;
  readonly label: string;
};

type PieceVector = { readonly offset: number; readonly vector: Float32Array };

/** `offset`: of the nearest piece in the part's text. */
type NearPart = { readonly part: number; readonly offset: number; readonly similarity: number };

export type Vectors = ReturnType<typeof openVectors>;

export function openVectors(index: TextIndex) {
  index.extend(SCHEMA);
  const number = (sql: string) => Number(Object.values(index.query(sql, [])[0] ?? {})[0] ?? 0);

  async function clear(where: string, params: readonly string[]): Promise<void> {
    const some = `SELECT id FROM vector WHERE ${where} LIMIT ${STEP_ROWS}`;
    const remove = `DELETE FROM vector WHERE id IN (${some}) RETURNING part`;
    const want = 'INSERT OR IGNORE INTO vector_pending VALUES (?)';
    for (let removed = STEP_ROWS; removed === STEP_ROWS; await nextTurn()) {
      index.change(() => {
        const parts = index.query(remove, params);
        for (const { part } of parts) index.query(want, [Number(part)]);
        removed = parts.length;
      });
    }
  }

  return {
    /** Vectors of another model are removed, and all texts wait for those of this one. */
    async use(model: string): Promise<void> {
      if (index.query('SELECT id FROM vector_model', [])[0]?.['id'] === model) return;
      await clear('TRUE', []);
      index.change(() => {
        index.query('INSERT OR IGNORE INTO vector_pending SELECT id FROM part', []);
        index.query('DELETE FROM vector_model', []);
        index.query('INSERT INTO vector_model VALUES (?)', [model]);
      });
    },
    /** The vectors have another length than this model's now: all of them are made anew. */
    unusable: () => void index.query('DELETE FROM vector_model', []),
    /** Removes the vectors of scopes that begin so; their texts wait again. */
    leaveOut: (prefix: string) => clear('substr(scope, 1, length(?1)) = ?1', [prefix]),
    count: () => number('SELECT count(*) FROM vector'),
    waiting: () => number('SELECT count(*) FROM vector_pending'),
    /** Bytes of a vector; undefined: there is none. */
    dimensions: () => number('SELECT length(v) FROM vector LIMIT 1') || undefined,
    /** The next ones below this id, newest first. */
    next: (below: number, limit: number) =>
      index.query(WAITING, [below, limit]) as readonly unknown[] as readonly WaitingPart[],
    /** Nothing is stored of a text that was removed or replaced meanwhile. */
    put({ id, text, scope }: WaitingPart, pieces: readonly PieceVector[]): void {
      index.change(() => {
        if (index.query('SELECT text FROM part WHERE id = ?', [id])[0]?.['text'] !== text) return;
        index.query('DELETE FROM vector WHERE part = ?', [id]);
        for (const { offset, vector } of pieces) {
          const { bytes, scale } = inBytes(vector);
          index.query('INSERT INTO vector (part, offset, scope, scale, v) VALUES (?, ?, ?, ?, ?)', [
            id,
            offset,
            scope,
            scale,
            new Uint8Array(bytes.buffer),
          ]);
        }
        index.query('DELETE FROM vector_pending WHERE part = ?', [id]);
      });
    },
    /** The most similar first, each part once. */
    async nearest(
      asked: Float32Array,
      { scopes, limit }: { readonly scopes: readonly string[]; readonly limit: number },
    ): Promise<readonly NearPart[]> {
      const best = new Map<number, NearPart>();
      const last = number('SELECT max(id) FROM vector');
      const wanted = JSON.stringify(scopes);
      const { bytes } = inBytes(asked);
      for (let after = 0; after < last; after += STEP_ROWS) {
        for (const row of index.query(NEAREST, [after, after + STEP_ROWS, wanted])) {
          const near = similarityOf(row, bytes);
          if (near.similarity > (best.get(near.part)?.similarity ?? 0)) best.set(near.part, near);
        }
        if (best.size > STEP_ROWS) keepBest(best, limit);
        await nextTurn();
      }
      keepBest(best, limit);
      return [...best.values()];
    },
    /** By their ids. */
    parts(ids: readonly number[]): ReadonlyMap<number, FoundPart> {
      return new Map(index.query(PARTS, [JSON.stringify(ids)]).map(foundPart));
    },
  };
}

function foundPart({ is_foreign, ...row }: IndexRow): [number, FoundPart] {
  const part = { ...row, isForeign: is_foreign !== 0 } as unknown as FoundPart;
  return [part.id, part];
}

function keepBest(best: Map<number, NearPart>, limit: number): void {
  const sorted = [...best.values()].sort((one, other) => other.similarity - one.similarity);
  best.clear();
  for (const near of sorted.slice(0, limit)) best.set(near.part, near);
}

/** The largest number becomes 127. */
function inBytes(vector: Float32Array) {
  const largest = vector.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const scale = largest === 0 ? 1 : largest / MAX_BYTE;
  return { scale, bytes: Int8Array.from(vector, (value) => Math.round(value / scale)) };
}

/** Vectors of different length cannot be compared. */
function similarityOf({ part, offset, scale, v }: IndexRow, asked: Int8Array): NearPart {
  const place = { part: Number(part), offset: Number(offset) };
  if (!(v instanceof Uint8Array) || v.length !== asked.length) return { ...place, similarity: 0 };
  const own = new Int8Array(v.buffer, v.byteOffset, v.length);
  let sum = 0;
  for (let at = 0; at < own.length; at += 1) sum += (own[at] as number) * (asked[at] as number);
  return { ...place, similarity: sum * Number(scale) };
}

// Reciprocal rank fusion (Cormack, Clarke and Buettcher 2009): what stands high in either list wins,
// whatever the scale of its scores.

const RANK_OFFSET = 60;

/** The ids of the lists, best first. */
export function fused(lists: readonly (readonly number[])[]): readonly number[] {
  const scores = new Map<number, number>();
  for (const list of lists) {
    for (const [rank, id] of list.entries()) {
      scores.set(id, (scores.get(id) ?? 0) + 1 / (RANK_OFFSET + rank + 1));
    }
  }
  return [...scores].sort(([, one], [, other]) => other - one).map(([id]) => id);
}

// Pieces of a text that are short enough for every embedding model.

const PIECE_CHARS = 1000;
/** A piece ends at the end of a paragraph, sentence or word behind this. */
const MIN_PIECE_CHARS = 600;
const ENDS = [/\n\s*\n/g, /[.!?。！？]\s|[。！？]|\n/gu, /\s/g];
/** Fewer say nothing by themselves: "ok", "thank you". */
const MIN_LETTERS = 10;

export type Piece = { readonly offset: number; readonly text: string };

/** Empty for a text with hardly a word. */
export function piecesOf(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  for (let offset = 0; offset < text.length; ) {
    const end = offset + lengthOfPiece(text.slice(offset, offset + PIECE_CHARS + 1));
    const piece = text.slice(offset, end);
    if ((piece.match(/[\p{L}\p{N}]/gu)?.length ?? 0) >= MIN_LETTERS) {
      pieces.push({ offset, text: piece.toWellFormed().trim() });
    }
    offset = end;
  }
  return pieces;
}

function lengthOfPiece(ahead: string): number {
  if (ahead.length <= PIECE_CHARS) return ahead.length;
  for (const end of ENDS) {
    const last = [...ahead.matchAll(end)].at(-1);
    if (last !== undefined && last.index + last[0].length >= MIN_PIECE_CHARS) {
      return Math.min(PIECE_CHARS, last.index + last[0].length);
    }
  }
  return PIECE_CHARS;
}

/** Models are trained with different words before a question and before a text. */
export type EmbeddingKind = 'query' | 'passage';

type Prefixes = Readonly<Record<EmbeddingKind, string>>;

const NO_PREFIXES: Prefixes = { query: '', passage: '' };
/** What the models' cards require. */
const PREFIXES: readonly (readonly [RegExp, Prefixes])[] = [
  [/nomic-embed/i, { query: 'search_query: ', passage: 'search_document: ' }],
  [/\be5-/i, { query: 'query: ', passage: 'passage: ' }],
  [
    /mxbai-embed|snowflake-arctic-embed|bge-(?:small|base|large)-en/i,
    { query: 'Represent this sentence for searching relevant passages: ', passage: '' },
  ],
];

export const prefixesOf = (model: string): Prefixes =>
  PREFIXES.find(([pattern]) => pattern.test(model))?.[1] ?? NO_PREFIXES;
