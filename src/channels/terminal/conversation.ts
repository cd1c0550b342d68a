// CONTRACT of a conversation from this terminal: with a gateway in this process or one elsewhere on
// this machine.

import { appendFile, readFile } from 'node:fs/promises';
import { writeAtomic } from '../../lib/files/files.ts';
import type { DoorEvent } from '../door.ts';

export interface Conversation {
  /** Resolves when the message is durable. `clientId` makes a repeat harmless. */
  submit(clientId: string, text: string): Promise<void>;
  /** Everything said in the chat after `afterSeq`, then what comes, until aborted. */
  events(afterSeq: number, signal: AbortSignal): AsyncIterable<DoorEvent>;
  /** Stops what runs in the chat. */
  stop(): Promise<void>;
}

// What was typed in earlier conversations, one JSON text a line, newest last.

const MAX_ENTRIES = 1000;
const PRIVATE_FILE = 0o600;

export interface History {
  /** Newest first, as line editors want it. */
  readonly entries: readonly string[];
  add(text: string): Promise<void>;
}

/** A file that cannot be read begins anew; lines that are damaged are passed over. */
export async function openHistory(path: string): Promise<History> {
  const stored = await readFile(path, 'utf8').catch(() => '');
  const lines = stored.split('\n').filter((line) => line !== '');
  if (lines.length > 2 * MAX_ENTRIES) {
    await writeAtomic(path, `${lines.slice(-MAX_ENTRIES).join('\n')}\n`);
  }
  let entries = lines.slice(-MAX_ENTRIES).flatMap(parseEntry).reverse();
  return {
    get entries() {
      return entries;
    },
    async add(text) {
      if (text === '' || text === entries[0]) return;
      entries = [text, ...entries].slice(0, MAX_ENTRIES);
      await appendFile(path, `${JSON.stringify(text)}\n`, { mode: PRIVATE_FILE });
    },
  };
}

function parseEntry(line: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'string' ? [value] : [];
  } catch {
    return [];
  }
}
