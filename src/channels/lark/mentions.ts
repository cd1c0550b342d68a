// Who is named in a message: Lark writes `@_user_1` into the text and says beside it who that is. Pure.

import { type Fields, fieldsOf, listOf, textOf } from '../../core/fields.ts';
import { plain } from '../../core/group-texts.ts';
import type { Quote } from '../../core/message.ts';
import { at } from './fields.ts';

export type Mentions = {
  /** Our bot is among them. */
  readonly isOurs: boolean;
  /** The text with names in place of the keys; without our own name at its beginning. */
  named(text: string): string;
};

export function mentionsOf(message: Fields, botId: string): Mentions {
  const mentioned = listOf(message['mentions']).flatMap((mention) => {
    const fields = fieldsOf(mention);
    const key = textOf(fields?.['key']);
    if (key === undefined) return [];
    // In events an object of ids, in messages that were fetched a text.
    const id = textOf(at(fields?.['id'], 'open_id')) ?? textOf(fields?.['id']);
    return [{ key, isOurs: id === botId, name: `@${nameIn(fields)}` }];
  });
  const all = [{ key: '@_all', isOurs: false, name: '@all' }, ...mentioned];
  const names = new Map(all.map(({ key, name }) => [key, name]));
  const isOwn = new Set(all.filter((one) => one.isOurs).map(({ key }) => key));
  return {
    isOurs: isOwn.size > 0,
    named(text) {
      const lead = keyAt(text.trimStart(), names);
      const rest = lead !== undefined && isOwn.has(lead) ? text.trimStart().slice(lead.length) : '';
      // A text that says nothing else keeps our name.
      return (rest.trim() === '' ? text : rest.trimStart()).replace(KEY, (found) => {
        const key = keyAt(found, names);
        if (key === undefined) return found;
        return `${names.get(key)}${found.slice(key.length)}`;
      });
    },
  };
}

/** Names are chosen by their bearers and become part of what the sender says: one short line. */
const nameIn = (mention: Fields | undefined) =>
  plain(textOf(mention?.['name']) ?? '') || 'somebody';

const KEY = /@_(?:all|user_\d{1,6})/g;

/** The longest key that begins the text: behind `@_user_1` may stand a digit of the text. */
function keyAt(text: string, names: ReadonlyMap<string, string>): string | undefined {
  const found = /^@_(?:all|user_\d{1,6})/.exec(text)?.[0] ?? '';
  for (let end = found.length; end > 0; end -= 1) {
    if (names.has(found.slice(0, end))) return found.slice(0, end);
  }
  return undefined;
}

export const quoteOf = (text: string, author: string | undefined): Quote =>
  author === undefined ? { text } : { author, text };
