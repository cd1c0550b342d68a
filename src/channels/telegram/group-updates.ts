// What Telegram says of groups as such, before any message in them is read: that one has a new id, or
// that somebody put the bot into one. Pure.

import { type Fields, fieldsOf, integerOf, textOf } from '../../core/fields.ts';
import { howToList, plain } from '../../core/group-texts.ts';
import { nameOf } from './content.ts';
import type { Move } from './group-moves.ts';
import { TELEGRAM } from './ids.ts';

/** The group's new id: the old group says it, and so does the new one. */
export function moveOf(update: unknown): Move | undefined {
  const message = fieldsOf(fieldsOf(update)?.['message']);
  const chat = fieldsOf(message?.['chat']);
  const here = integerOf(chat?.['id']);
  if (message === undefined || here === undefined) return undefined;
  const title = textOf(chat?.['title']);
  const named = title === undefined ? {} : { title };
  const to = integerOf(message['migrate_to_chat_id']);
  if (to !== undefined) return { from: here, to, ...named };
  const from = integerOf(message['migrate_from_chat_id']);
  return from === undefined ? undefined : { from, to: here, ...named };
}

export type Joined = { readonly chat: number; readonly text: string };

/** Somebody made the bot a member of a group; `text` is for the owner. */
export function joinedOf(update: unknown): Joined | undefined {
  const change = fieldsOf(fieldsOf(update)?.['my_chat_member']);
  const chat = fieldsOf(change?.['chat']);
  const id = integerOf(chat?.['id']);
  if (change === undefined || chat === undefined || id === undefined || !isGroup(chat)) return;
  const [before, after] = [change['old_chat_member'], change['new_chat_member']].map(isMember);
  if (before || !after) return undefined;
  const from = fieldsOf(change['from']);
  const by = plain((from === undefined ? undefined : nameOf(from)) ?? 'Somebody');
  const title = plain(textOf(chat['title']) ?? 'a group');
  const text = `${by} put me into the Telegram group ${title} (${id}). I say nothing there. `;
  return { chat: id, text: text + howToList(TELEGRAM, String(id)) };
}

export const isGroup = (chat: Fields): boolean =>
  chat['type'] === 'group' || chat['type'] === 'supergroup';

function isMember(value: unknown): boolean {
  const member = fieldsOf(value);
  const status = member?.['status'];
  if (status === 'restricted') return member?.['is_member'] === true;
  return status === 'member' || status === 'administrator' || status === 'creator';
}
