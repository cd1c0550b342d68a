// Erasing text on a person's request: what is left of an entry or a file. The text is removed, the
// order of the conversation stays.

import { withNodes } from '../../../agent/rules/context-marks.ts';
import type { SessionKey } from '../../message/ids.ts';
import type { SummaryNode, TranscriptEntry } from '../../message/transcript.ts';
import { foldText } from './earlier.ts';

/** Whether a text contains all of the words. */
export type Holds = (text: string) => boolean;

export const FORGOTTEN = '[forgotten]';

const WORD = /[\p{L}\p{N}]+/gu;
const MIN_CHARS = 3;
/** Scripts in which two letters are a word. */
const DENSE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]{2}/u;

/** Undefined if the words are too short to be specific. */
export function holdsWords(words: string): Holds | undefined {
  const wanted = foldText(words).match(WORD) ?? [];
  const isTelling = wanted.some((word) => [...word].length >= MIN_CHARS || DENSE.test(word));
  if (!isTelling) return undefined;
  return (text) => {
    const folded = foldText(text);
    return wanted.every((word) => folded.includes(word));
  };
}

/** The entry without them; undefined if it contains none. */
export function forgetIn(entry: TranscriptEntry, holds: Holds): TranscriptEntry | undefined {
  const after = withoutWords(entry, holds);
  return JSON.stringify(after) === JSON.stringify(entry) ? undefined : after;
}

/** The text of an entry, for showing what would be erased. */
export function wordsOfEntry(entry: TranscriptEntry, holds: Holds): string {
  const texts = textsOf(entry);
  return texts.find(holds) ?? texts.join(' ');
}

/** The lines that do not contain the words. */
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
      const linesOf = (text: string) => clean(holds(text) ? forgetLines(text, holds) : text).trim();
      const { untrusted, ...rest } = { ...entry, ...mediaWithout(entry, holds) };
      if (entry.nodes === undefined) {
        const parts = untrusted === undefined ? {} : { untrusted: linesOf(untrusted) || FORGOTTEN };
        return { ...rest, text: linesOf(entry.text) || FORGOTTEN, ...parts };
      }
      const isTouched = (node: SummaryNode) => holds(node.text) || holds(node.untrusted ?? '');
      const nodes = entry.nodes.map((node) => (isTouched(node) ? forgottenNode(node) : node));
      return withNodes(rest, nodes);
    }
    case 'turn_end':
      return { ...entry, answers: entry.answers.map(clean) };
    case 'reset':
    case 'undo':
    case 'restore':
      return entry;
  }
}

/** Removes all of its text; it is rebuilt from the current text of its messages. */
const forgottenNode = ({ untrusted: _, ...node }: SummaryNode): SummaryNode => ({
  ...node,
  text: FORGOTTEN,
});

/**
 * The summary without the text of nodes that cover one of these turns: it may paraphrase what was
 * erased there. Undefined if it has none.
 */
export function forgetNodes(
  entry: TranscriptEntry,
  turns: readonly number[],
): TranscriptEntry | undefined {
  if (entry.role !== 'summary' || entry.nodes === undefined) return undefined;
  const isOver = ({ from, before, text }: SummaryNode) =>
    text !== FORGOTTEN && turns.some((turn) => turn >= from && turn < before);
  if (!entry.nodes.some(isOver)) return undefined;
  return withNodes(
    entry,
    entry.nodes.map((node) => (isOver(node) ? forgottenNode(node) : node)),
  );
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
      return [entry.text, ...(entry.media ?? []).flatMap(({ name }) => name ?? [])];
    case 'summary':
      return [
        ...[entry.text, entry.untrusted ?? ''],
        ...(entry.media ?? []).flatMap(({ name }) => name ?? []),
      ];
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

/** Whether it belongs to one of these chats (session keys without topics). */
export const isOfChats = (
  { session }: { readonly session: SessionKey },
  chats: readonly string[],
): boolean => chats.includes(session.split('#', 1).join());
