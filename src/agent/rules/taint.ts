// What makes a call out to the net a way to carry words away: an address that the model put together
// itself, long enough to hold something, at a host nobody in the conversation named.

import type { TranscriptEntry } from '../../kernel/message/transcript.ts';

/** What an address may hold beside its host before it is looked at, characters. */
const MAX_FREE_CHARS = 64;
/** What all shorter addresses of a conversation may hold together, characters. */
const MAX_FREE_CHARS_IN_SUM = 512;

export type KnownTexts = {
  /** What the person themself wrote. */
  readonly own: readonly string[];
  /** What the conversation was shown of others: who wrote an address there did not know our secrets. */
  readonly foreign: readonly string[];
};

/** What a model is shown, by who wrote it. */
export function knownTextsOf(view: readonly TranscriptEntry[]): KnownTexts {
  const shown = view.filter((entry) => entry.role === 'user' || entry.role === 'tool');
  const textsOf = (entries: typeof shown) => entries.map(({ text }) => text);
  return {
    own: textsOf(shown.filter(isTheirs)),
    foreign: textsOf(shown.filter(({ isForeign }) => isForeign === true)),
  };
}

/** A message of the person's; what a remark of ours repeats of an answer, they did not write. */
const isTheirs = (entry: TranscriptEntry) =>
  entry.role === 'user' && entry.seq !== undefined && entry.isForeign !== true;

/**
 * Whether asking for this address could tell its host something that it does not know, by itself or
 * together with the addresses that the conversation asked for `earlier`.
 */
export function carriesData(
  url: string,
  known: KnownTexts,
  earlier: readonly string[] = [],
): boolean {
  const chars = dataChars(url, known);
  if (chars === 0 || chars > MAX_FREE_CHARS) return chars > 0;
  const others = [...new Set(earlier)].filter((other) => other !== url);
  // A longer one was shown to an owner.
  const free = others
    .map((other) => dataChars(other, known))
    .filter((count) => count <= MAX_FREE_CHARS);
  return free.reduce((sum, count) => sum + count, chars) > MAX_FREE_CHARS_IN_SUM;
}

/** The characters that the model chose; 0 where the host was named or others wrote the address. */
function dataChars(url: string, { own, foreign }: KnownTexts): number {
  if (!URL.canParse(url)) return Number.POSITIVE_INFINITY;
  const { host, hostname, pathname, search, username, password } = new URL(url);
  // A name can be made of data as well; what belongs to everybody is the end of it.
  const labels = hostname.split('.').slice(0, -2).join('.');
  const data = [labels, username, password, pathname, search].join('');
  if (own.some((text) => names(text, host))) return 0;
  return foreign.some((text) => holdsWhole(text, url)) ? 0 : data.length;
}

/** As a whole name: "example.org" does not stand in "example.org.evil.test". */
function names(text: string, host: string): boolean {
  const lower = text.toLowerCase();
  for (let at = lower.indexOf(host); at !== -1; at = lower.indexOf(host, at + 1)) {
    const before = lower[at - 1] ?? '';
    const behind = lower.slice(at + host.length, at + host.length + 2);
    if (!/[a-z0-9_-]/.test(before) && !/^(?:[a-z0-9_-]|[.:][a-z0-9_-])/.test(behind)) return true;
  }
  return false;
}

/** Not as the beginning of a longer address. */
function holdsWhole(text: string, url: string): boolean {
  for (let at = text.indexOf(url); at !== -1; at = text.indexOf(url, at + 1)) {
    const end = text[at + url.length] ?? ' ';
    if (/[\s"'<>)\]}|\\^`,;]/.test(end)) return true;
    if (/[.!?]/.test(end) && /^(?:\s|$)/.test(text.slice(at + url.length + 1))) return true;
  }
  return false;
}
