// CONTRACT of the full-text index: index.db (file-index.ts), or tables beside the store in
// PostgreSQL, which all processes share. Everything in it can be read from the files again.

/** One searchable text: a message of a conversation, a passage of a note. */
export type IndexedPart = {
  /** Its place in the source: the number of a turn, the line of a file. */
  readonly place: number;
  readonly role: 'user' | 'assistant' | 'note';
  /** It contains untrusted content, or text of the agent, which may repeat such content. */
  readonly isForeign: boolean;
  readonly text: string;
  /** Epoch milliseconds. */
  readonly at: number;
};

export type IndexedSource = {
  /** Unique, e.g. the path of a file. */
  readonly name: string;
  /** Who may see it, see `scopeOf...` where it is written. */
  readonly scope: string;
  /** The source's name in search results. */
  readonly label: string;
};

/** How far a source is indexed; the indexer defines the stamp. */
export type IndexState = { readonly stamp: string; readonly position: number };

export type IndexStep = {
  /** How far the source was indexed when it was read; undefined: not at all. */
  readonly from: IndexState | undefined;
  readonly to: IndexState;
  /** Its earlier parts are removed, except those that are equal to a new one. */
  readonly replaces: boolean;
};

/** What is added to a source. */
export type IndexChange = {
  readonly source: IndexedSource;
  readonly step: IndexStep;
  readonly parts: readonly IndexedPart[];
};

export type FoundPart = IndexedPart & {
  /** In the index, until it is rebuilt. */
  readonly id: number;
  readonly label: string;
  readonly source: string;
};

export type FindOptions = {
  /** Nothing outside of these is searched. */
  readonly scopes: readonly string[];
  readonly limit: number;
  /** Epoch milliseconds: newer parts rank higher. */
  readonly now: number;
};

/** Several processes may index the same sources. */
export interface TextIndex extends AsyncDisposable {
  /** Grows when the index was rebuilt: everything must be indexed again. */
  readonly generation: number;
  state(source: string): Promise<IndexState | undefined>;
  /** Of all sources whose name begins so, by name. */
  states(prefix: string): Promise<ReadonlyMap<string, IndexState>>;
  /**
   * Adds parts and records how far each source is indexed, in one transaction. Returns the names of
   * the written ones; nothing is written of one that another process has indexed or removed since
   * `from`.
   */
  put(changes: readonly IndexChange[]): Promise<ReadonlySet<string>>;
  removePlaces(source: string, places: readonly number[]): Promise<void>;
  remove(source: string): Promise<void>;
  /** Removed data leaves the files; other work runs meanwhile. */
  scrub(): Promise<void>;
  /** Any words; best match first. */
  find(words: string, options: FindOptions): Promise<readonly FoundPart[]>;
  /** From the first call on, new parts wait for vectors. */
  vectors(): Promise<VectorRows>;
}

/** A part that has no vectors yet. */
export type WaitingPart = {
  readonly id: number;
  readonly text: string;
  readonly scope: string;
  readonly label: string;
};

/** Of a piece of a part; `offset`: of the piece in the text. */
type PieceVector = {
  readonly offset: number;
  /** What a 1 among the numbers stands for. */
  readonly scale: number;
  readonly numbers: Int8Array;
};

export type PartVector = PieceVector & { readonly part: number };

/** The vectors of parts. A part that is removed takes its own along; a new one waits for some. */
export interface VectorRows {
  model(): Promise<string | undefined>;
  /** All parts wait for vectors of this model; undefined: those that are there are of no use. */
  setModel(id: string | undefined): Promise<void>;
  /** Removes some vectors of scopes that begin so; their parts wait again. Returns how many. */
  clearSome(scopePrefix: string): Promise<number>;
  counts(): Promise<{ readonly vectors: number; readonly waiting: number }>;
  /** Numbers of a vector; undefined: there is none. */
  dimensions(): Promise<number | undefined>;
  /** The next ones below this id, newest first. */
  waiting(below: number, limit: number): Promise<readonly WaitingPart[]>;
  /** Nothing is stored of a text that was removed or replaced meanwhile. */
  put(part: WaitingPart, pieces: readonly PieceVector[]): Promise<void>;
  /** All of these scopes, some at a time; other work runs between. */
  inScopes(scopes: readonly string[]): AsyncIterable<readonly PartVector[]>;
  parts(ids: readonly number[]): Promise<readonly FoundPart[]>;
}
