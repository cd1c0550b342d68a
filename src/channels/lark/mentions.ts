// Who is named in a message: Lark writes `@_user_1` into the text and says beside it who that is. Pure.

import { type Fields, fieldsOf, listOf, textOf } from '../../core/fields.ts';
import type { Quote } from '../../core/message.ts';
import { at } from './fields.ts';

export type Mentions = {
  /** Our bot is among them. */
  readonly isOurs: boolean;
  /** The text with names in place of the keys; without our own name at its beginning. */
  named(text: string): string;
};

export function mentionsOf(message: Fields, botId: string): Mentions {
  const all = listOf(message['mentions']).flatMap((mention) => {
    const fields = fieldsOf(mention);
    const key = textOf(fields?.['key']);
    if (key === undefined) return [];
    // In events an object of ids, in messages that were fetched a text.
    const id = textOf(at(fields?.['id'], 'open_id')) ?? textOf(fields?.['id']);
    return [{ key, isOurs: id === botId, name: `@${textOf(fields?.['name']) ?? 'somebody'}` }];
  });
  // `@_user_1` is the beginning of `@_user_12`.
  const byLength = all.toSorted((one, other) => other.key.length - one.key.length);
  return {
    isOurs: all.some(({ isOurs }) => isOurs),
    named(text) {
      const own = all.find(({ isOurs }) => isOurs)?.key;
      const named = byLength.reduce(
        (done, { key, name }) => done.replaceAll(key, () => name),
        own === undefined ? text : withoutLead(text, own),
      );
      return named.replaceAll('@_all', '@all');
    },
  };
}

/** A text that says nothing else keeps it. */
function withoutLead(text: string, key: string): string {
  const rest = text.trimStart();
  if (!rest.startsWith(key) || /^\d/.test(rest.slice(key.length))) return text;
  return rest.slice(key.length).trim() === '' ? text : rest.slice(key.length).trimStart();
}

export const quoteOf = (text: string, author: string | undefined): Quote =>
  author === undefined ? { text } : { author, text };
