// CONTRACT of memory, which outlasts a conversation: facts and notes, and the full-text index of
// notes and conversations. Each person and each group has notes of its own, see
// kernel/message/untrusted.ts.

export type MemoryHit = {
  /** File relative to the workspace, e.g. `memory/MEMORY.md`. */
  readonly source: string;
  /** 1-based line where the text begins. */
  readonly line: number;
  readonly text: string;
};

/** The notes folder, see `TurnPerson`. */
type NotesOf = {
  readonly notes: string;
  /** IANA zone that defines the day; default: the configured one. */
  readonly timeZone?: string | undefined;
};

/** An outcome, for the next reflection. */
export type Learning = {
  /** `correction`: a person corrected the agent; `reaction`: a person disliked an answer. */
  readonly kind: 'correction' | 'reaction' | 'tool';
  readonly tool?: string;
  readonly succeeded: boolean;
  readonly context: string;
  /** Of a tool: the kind of its failure, never its message. */
  readonly error?: string;
};

/** `notes`: the notes folder, see `TurnPerson`; default: the owner's. */
export interface MemoryStore {
  /** Adds one fact. `known`: an identical one exists, nothing was written. */
  remember(fact: string, notes?: string): Promise<'added' | 'known'>;
  /** Adds one line to the notes of the person's day. */
  note(text: string, whose: NotesOf): Promise<'added' | 'known'>;
  /**
   * Stores a line that untrusted content may have influenced: it is in no prompt, and `recall`
   * returns it as an extract of a conversation. Returns the id for taking it back; undefined: the
   * line exists already.
   */
  noteUntrusted(text: string, whose: NotesOf): Promise<string | undefined>;
  /** Whether the line existed. */
  takeBackUntrusted(id: string): Promise<boolean>;
  learn(learnings: readonly Learning[], whose: NotesOf): Promise<void>;
  /** The best matches first, limited in number and size. */
  recall(query: string, notes?: string): Promise<readonly MemoryHit[]>;
  /** The long-term memory and the notes of the last days, as they go into the system prompt. */
  promptText(notes?: string): Promise<string>;
}
