// CONTRACT of what the agent keeps beyond one conversation: facts it was asked to remember and
// notes, searchable by words. Shared by all chats of this home.

export type MemoryHit = {
  /** File below the workspace, e.g. `memory/MEMORY.md`. */
  readonly source: string;
  /** 1-based line where the text begins. */
  readonly line: number;
  readonly text: string;
};

export interface MemoryStore {
  /** Adds one fact. `known`: an identical one stands there already, nothing was written. */
  remember(fact: string): Promise<'added' | 'known'>;
  /** The best matches first, within fixed limits of number and size. */
  recall(query: string): Promise<readonly MemoryHit[]>;
  /** The long-term memory as it goes into the system prompt; empty when there is none. */
  promptText(): Promise<string>;
}
