// CONTRACT of what the agent keeps beyond one conversation: facts it was asked to remember and
// notes, searchable by words. Each person and each group has its own, see core/notes.ts.

export type MemoryHit = {
  /** File below the workspace, e.g. `memory/MEMORY.md`. */
  readonly source: string;
  /** 1-based line where the text begins. */
  readonly line: number;
  readonly text: string;
};

/** `notes` is the folder of whose notes are meant, see `TurnPerson`; the owner's unless given. */
export interface MemoryStore {
  /** Adds one fact. `known`: an identical one stands there already, nothing was written. */
  remember(fact: string, notes?: string): Promise<'added' | 'known'>;
  /** The best matches first, within fixed limits of number and size. */
  recall(query: string, notes?: string): Promise<readonly MemoryHit[]>;
  /** The long-term memory as it goes into the system prompt; empty when there is none. */
  promptText(notes?: string): Promise<string>;
}
