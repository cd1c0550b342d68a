// CONTRACT of what the agent keeps beyond one conversation: facts it was asked to remember and
// notes, searchable by words, and the full-text index over them and over conversations. Each person
// and each group has notes of its own, see kernel/message/notes.ts.

export type MemoryHit = {
  /** File below the workspace, e.g. `memory/MEMORY.md`. */
  readonly source: string;
  /** 1-based line where the text begins. */
  readonly line: number;
  readonly text: string;
};

/** Whose notes are meant, see `TurnPerson`. */
export type NotesOf = {
  readonly notes: string;
  /** IANA zone of their day; the configured one unless given. */
  readonly timeZone?: string | undefined;
};

/** What came of something done, for the next reflection. */
export type Learning = {
  /** `correction`: a person said how it is right; `reaction`: they disliked an answer. */
  readonly kind: 'correction' | 'reaction' | 'tool';
  readonly tool?: string;
  readonly succeeded: boolean;
  readonly context: string;
  /** Of a tool: the kind of its failure, never its words. */
  readonly error?: string;
};

/** `notes` is the folder of whose notes are meant, see `TurnPerson`; the owner's unless given. */
export interface MemoryStore {
  /** Adds one fact. `known`: an identical one stands there already, nothing was written. */
  remember(fact: string, notes?: string): Promise<'added' | 'known'>;
  /** Adds one line to the notes of the person's day. */
  note(text: string, whose: NotesOf): Promise<'added' | 'known'>;
  /**
   * Keeps a line that untrusted content may have a part in: in no prompt, found by `recall` as an extract
   * of a conversation. By what it can be taken back; undefined: it stands there already.
   */
  noteUntrusted(text: string, whose: NotesOf): Promise<string | undefined>;
  /** Whether there was such a line. */
  takeBackUntrusted(id: string): Promise<boolean>;
  learn(learnings: readonly Learning[], whose: NotesOf): Promise<void>;
  /** The best matches first, within fixed limits of number and size. */
  recall(query: string, notes?: string): Promise<readonly MemoryHit[]>;
  /** The long-term memory and the notes of the last days as they go into the system prompt. */
  promptText(notes?: string): Promise<string>;
}

/** One piece of text that can be found: a message of a conversation, a passage of a note. */
export type IndexedPart = {
  /** Where in its source: the number of a turn, the line of a file. */
  readonly place: number;
  readonly role: 'user' | 'assistant' | 'note';
  /** It holds words of others, or of the agent, which may repeat them. */
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
  /** What it is called where it was found. */
  readonly label: string;
};

/** How far a source is indexed; the stamp is the indexer's. */
export type IndexState = { readonly stamp: string; readonly position: number };

export type FoundPart = IndexedPart & { readonly label: string; readonly source: string };

export type FindOptions = {
  /** Nothing outside of these is looked at. */
  readonly scopes: readonly string[];
  readonly limit: number;
  /** Epoch milliseconds: what is newer counts more. */
  readonly now: number;
};

/**
 * The full-text index: rebuilt from the files at any time, so a damaged one is made anew. Work is
 * done at once and in small steps.
 */
export interface TextIndex extends Disposable {
  /** Grows when the index was made anew: everything has to be indexed again. */
  readonly generation: number;
  state(source: string): IndexState | undefined;
  sources(prefix: string): readonly string[];
  /** Adds parts and notes how far the source is indexed; `replaces`: those it had are gone. */
  put(
    source: IndexedSource,
    state: IndexState,
    parts: readonly IndexedPart[],
    replaces: boolean,
  ): void;
  removePlaces(source: string, places: readonly number[]): void;
  remove(source: string): void;
  /** Leaves nothing of what was removed in the file; others get their turn between its steps. */
  scrub(): Promise<void>;
  /** Any words; best first. */
  find(words: string, options: FindOptions): readonly FoundPart[];
}
