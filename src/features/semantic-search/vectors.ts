// The vectors of indexed texts, beside the full-text index: each as bytes with a scale, searched
// exactly in short steps (docs/adr/0038).

import type {
  FoundPart,
  PartVector,
  TextIndex,
  WaitingPart,
} from '../../kernel/bus/store/text-index.ts';

const MAX_BYTE = 127;
/** So many are compared before the best are chosen. */
const COMPARED = 500;

/** `offset`: of the nearest piece in the part's text. */
type NearPart = { readonly part: number; readonly offset: number; readonly similarity: number };

type Piecewise = { readonly offset: number; readonly vector: Float32Array };

export type Vectors = ReturnType<typeof openVectors>;

export function openVectors(index: Pick<TextIndex, 'vectors'>) {
  const rows = () => index.vectors();

  /** Removes the vectors of scopes that begin so; their texts wait again. */
  async function leaveOut(prefix: string): Promise<void> {
    const { clearSome } = await rows();
    while ((await clearSome(prefix)) > 0);
  }

  return {
    leaveOut,
    /** Vectors of another model are removed, and all texts wait for those of this one. */
    async use(model: string): Promise<void> {
      const { model: current, setModel } = await rows();
      if ((await current()) === model) return;
      await leaveOut('');
      await setModel(model);
    },
    /** The vectors have another length than this model's now: all of them are made anew. */
    unusable: async () => (await rows()).setModel(undefined),
    counts: async () => (await rows()).counts(),
    dimensions: async () => (await rows()).dimensions(),
    /** Texts that have no vectors yet: the next ones below this id, newest first. */
    next: async (below: number, limit: number) => (await rows()).waiting(below, limit),
    /** Nothing is stored of a text that was removed or replaced meanwhile. */
    async put(part: WaitingPart, pieces: readonly Piecewise[]): Promise<void> {
      const vectors = pieces.map(({ offset, vector }) => ({ offset, ...inBytes(vector) }));
      await (await rows()).put(part, vectors);
    },
    /** The most similar first, each part once. */
    async nearest(
      asked: Float32Array,
      { scopes, limit }: { readonly scopes: readonly string[]; readonly limit: number },
    ): Promise<readonly NearPart[]> {
      const best = new Map<number, NearPart>();
      const { numbers } = inBytes(asked);
      for await (const some of (await rows()).inScopes(scopes)) {
        for (const row of some) {
          const near = similarityOf(row, numbers);
          if (near.similarity > (best.get(near.part)?.similarity ?? 0)) best.set(near.part, near);
        }
        if (best.size > COMPARED) keepBest(best, limit);
      }
      keepBest(best, limit);
      return [...best.values()];
    },
    /** By their ids. */
    async parts(ids: readonly number[]): Promise<ReadonlyMap<number, FoundPart>> {
      return new Map((await (await rows()).parts(ids)).map((part) => [part.id, part]));
    },
  };
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
  return { scale, numbers: Int8Array.from(vector, (value) => Math.round(value / scale)) };
}

/** Vectors of different length cannot be compared. */
function similarityOf({ part, offset, scale, numbers }: PartVector, asked: Int8Array): NearPart {
  if (numbers.length !== asked.length) return { part, offset, similarity: 0 };
  let sum = 0;
  for (let at = 0; at < numbers.length; at += 1) {
    sum += (numbers[at] as number) * (asked[at] as number);
  }
  return { part, offset, similarity: sum * scale };
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
