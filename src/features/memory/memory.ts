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
