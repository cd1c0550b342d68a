// CONTRACT of the care of session files outside the conversation: what `nanobot sessions` offers.
// All of it streams, so that neither one long session nor 100,000 of them fill the memory.

import type { SessionKey } from '../message/ids.ts';

export type SessionInfo = {
  readonly key: SessionKey;
  readonly files: number;
  readonly bytes: number;
  readonly messages: number;
  /** Epoch milliseconds, as is `updatedAt`. */
  readonly createdAt: number;
  readonly updatedAt: number;
};

export type SearchHit = {
  readonly session: SessionKey;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly role: 'user' | 'assistant' | 'tool' | 'summary';
  /** The words around the match, on one line. */
  readonly snippet: string;
};

export type FileCount = { readonly files: number; readonly bytes: number };

export type ArchiveReport = {
  readonly moved: FileCount;
  /** What lies in the folder after the move. */
  readonly active: FileCount;
  readonly archived: FileCount;
};

export interface SessionMaintenance {
  /** Newest first; messages are counted only for the sessions returned. */
  list(options?: { readonly limit?: number }): Promise<readonly SessionInfo[]>;
  /** Those of these sessions that there are, newest first. */
  of(sessions: readonly SessionKey[]): Promise<readonly SessionInfo[]>;
  /** The whole conversation, archive included, in pieces to be written one after the other. */
  export(session: SessionKey, format: 'md' | 'jsonl'): AsyncIterable<string>;
  /** Case-insensitive text search over all sessions, newest file first. */
  search(query: string, options: { readonly limit: number }): AsyncIterable<SearchHit>;
  /** Deletes the files, archived ones too, whose last entry is older, and their extracts. */
  purge(options: { readonly olderThanMs: number }): Promise<FileCount>;
  /** Moves files whose last entry is older to `archive/`, but never the newest of a session. */
  archive(options: { readonly olderThanMs: number }): Promise<ArchiveReport>;
  /** Deletes every session, the archive and the extracts included. */
  nuke(): Promise<FileCount & { readonly sessions: number }>;
  /** Writes a searchable extract to `memory/sessions/` for each session file that has no current one. */
  index(): Promise<{ readonly written: number; readonly present: number }>;
}
