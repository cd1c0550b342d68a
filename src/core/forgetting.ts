// What a person wants forgotten, and what is left of an entry or a file then: the words are gone, the
// order of the conversation stays.

import { foldText } from './index-text.ts';
import type { TranscriptEntry } from './transcript.ts';

/** Whether a text holds all of the words. */
export type Holds = (text: string) => boolean;

export const FORGOTTEN = '[forgotten]';

const WORD = /[\p{L}\p{N}]+/gu;
const MIN_CHARS = 3;
/** Scripts in which two letters are a word. */
const DENSE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]{2}/u;

/** Undefined where the words are too short to mean anything in particular. */
export function holdsWords(words: string): Holds | undefined {
  const wanted = foldText(words).match(WORD) ?? [];
  const isTelling = wanted.some((word) => [...word].length >= MIN_CHARS || DENSE.test(word));
  if (!isTelling) return undefined;
  return (text) => {
    const folded = foldText(text);
    return wanted.every((word) => folded.includes(word));
  };
}

/** The entry without them; undefined where it holds none. */
export function forgetIn(entry: TranscriptEntry, holds: Holds): TranscriptEntry | undefined {
  const after = withoutWords(entry, holds);
  return JSON.stringify(after) === JSON.stringify(entry) ? undefined : after;
}

/** What an entry says, for showing what would be forgotten. */
export function wordsOfEntry(entry: TranscriptEntry, holds: Holds): string {
  const texts = textsOf(entry);
  return texts.find(holds) ?? texts.join(' ');
}

/** The lines without those that hold the words. */
export function forgetLines(text: string, holds: Holds): string {
  return text
    .split('\n')
    .filter((line) => !holds(line))
    .join('\n');
}

function withoutWords(entry: TranscriptEntry, holds: Holds): TranscriptEntry {
  const clean = (text: string) => (holds(text) ? FORGOTTEN : text);
  switch (entry.role) {
    case 'user':
      return { ...entry, text: clean(entry.text), ...mediaWithout(entry, holds) };
    case 'assistant': {
      const isTouched = textsOf(entry).some(holds);
      const toolCalls = entry.toolCalls.map((call) =>
        holds(call.arguments) ? { ...call, arguments: '{}' } : call,
      );
      return { ...entry, text: clean(entry.text), toolCalls, ...(isTouched && { thinking: [] }) };
    }
    case 'tool': {
      const { whole, ...rest } = entry;
      const isTouched = holds(entry.text) || (whole !== undefined && holds(whole));
      return isTouched
        ? { ...rest, text: FORGOTTEN, ...mediaWithout(entry, holds) }
        : { ...entry, ...mediaWithout(entry, holds) };
    }
    case 'summary': {
      const text = holds(entry.text) ? forgetLines(entry.text, holds) : entry.text;
      return { ...entry, text: clean(text).trim() || FORGOTTEN, ...mediaWithout(entry, holds) };
    }
    case 'turn_end':
      return { ...entry, answers: entry.answers.map(clean) };
    case 'reset':
    case 'undo':
    case 'restore':
      return entry;
  }
}

function mediaWithout(entry: Pick<TranscriptEntry & { role: 'user' }, 'media'>, holds: Holds) {
  if (entry.media === undefined) return {};
  const media = entry.media.map(({ name, ...rest }) =>
    name === undefined || holds(name) ? rest : { ...rest, name },
  );
  return { media };
}

function textsOf(entry: TranscriptEntry): readonly string[] {
  switch (entry.role) {
    case 'user':
    case 'summary':
      return [entry.text, ...(entry.media ?? []).flatMap(({ name }) => name ?? [])];
    case 'assistant': {
      const calls = entry.toolCalls.map((call) => call.arguments);
      return [entry.text, ...calls, ...entry.thinking.map(({ text }) => text)];
    }
    case 'tool':
      return [
        entry.text,
        entry.whole ?? '',
        ...(entry.media ?? []).flatMap(({ name }) => name ?? []),
      ];
    case 'turn_end':
      return entry.answers;
    case 'reset':
    case 'undo':
    case 'restore':
      return [];
  }
}
