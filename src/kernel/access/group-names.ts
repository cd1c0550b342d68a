// Names by which the agent is called in a group, as people configure them: plain words, with `*` for
// any letters of a word. Matched word by word in bounded time; there are no regular expressions.

import { headOf } from '../../lib/text/cut.ts';
import type { ChannelName } from '../message/ids.ts';
import type { InboundMessage } from '../message/message.ts';

/** Who is called is said early; a longer text is searched up to here, UTF-16 units. */
const MAX_SEARCHED = 4000;
const WORD = /[\p{L}\p{N}\p{M}_]+/gu;
const PATTERN_WORD = /[\p{L}\p{N}\p{M}_*]+/gu;

/** Whether one of the names stands in the text as whole words, in any case. */
export function callsByName(text: string, names: readonly string[]): boolean {
  if (names.length === 0) return false;
  const words = wordsOf(text.slice(0, MAX_SEARCHED), WORD);
  return names.some((name) => {
    const pattern = wordsOf(name, PATTERN_WORD);
    if (pattern.length === 0) return false;
    return words.some((_, at) => pattern.every((part, n) => isMatch(words[at + n], part)));
  });
}

/** A name must hold a letter or a digit: `*` alone would be every word. */
export function isCallName(name: string): boolean {
  return wordsOf(name, PATTERN_WORD).some((part) => /[^*_]/.test(part));
}

const wordsOf = (text: string, word: RegExp): readonly string[] =>
  text.normalize('NFKC').toLowerCase().match(word) ?? [];

/** Goes back to the last `*` only, so the time is at most the product of both lengths. */
function isMatch(word: string | undefined, pattern: string): boolean {
  if (word === undefined) return false;
  let at = 0;
  let star: { readonly next: number; from: number } | undefined;
  let next = 0;
  while (at < word.length) {
    if (pattern[next] === '*') {
      next += 1;
      star = { next, from: at };
    } else if (pattern[next] === word[at]) {
      next += 1;
      at += 1;
    } else if (star !== undefined) {
      star.from += 1;
      at = star.from;
      next = star.next;
    } else return false;
  }
  return /^\**$/.test(pattern.slice(next));
}

// What the owner is told about groups.

/** How a group is opened to the agent. */
export function howToList(channel: ChannelName, group: string): string {
  return `To let me speak there add "${group}" to \`channels.${channel}.groups\`.`;
}

export function unlistedGroupText({ chat, group }: InboundMessage): string {
  const name = group?.title === undefined ? '' : ` (${plain(group.title)})`;
  return (
    `I was called in a group that is not listed${name}, and said nothing there. ` +
    howToList(chat.channel, chat.chat)
  );
}

const MAX_TITLE_CHARS = 60;

/** A title is written by strangers: no Markdown, no lines. */
export function plain(title: string): string {
  return headOf(title.replace(/[\p{C}\p{Z}`*_~[\]()<>#|\\]+/gu, ' '), MAX_TITLE_CHARS).trim();
}
