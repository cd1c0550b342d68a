// The extract of a conversation that memory search reads: front matter, then a bullet per message.

import { headOf } from '../cut.ts';
import type { SessionKey } from '../ids.ts';
import type { TranscriptEntry } from '../transcript.ts';

const MAX_MESSAGE_CHARS = 500;

/** `day` as `YYYY-MM-DD`. */
export function extractHeader(key: SessionKey, day: string): string {
  return `---\nsession_key: ${JSON.stringify(key)}\nday: ${day}\nstatus: indexed\n---\n\n`;
}

/** Undefined for entries without words of a person or the agent. */
export function extractLine(entry: TranscriptEntry): string | undefined {
  if (entry.role !== 'user' && entry.role !== 'assistant') return undefined;
  const text = entry.text.replace(/\s+/g, ' ').trim();
  if (text === '') return undefined;
  const cut = headOf(text, MAX_MESSAGE_CHARS);
  return `- ${entry.role}: ${cut}${cut.length < text.length ? '…' : ''}`;
}
