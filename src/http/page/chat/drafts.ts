// What is typed and not sent, by chat: kept in this browser, so that a reload loses nothing.

import { storedObject } from './parts.tsx';

const KEY = 'nanobot.drafts';
const MAX_DRAFTS = 50;

export const draftOf = (chat: string): string => read()[chat] ?? '';

/** An empty text forgets it. */
export function keepDraft(chat: string, text: string): void {
  const { [chat]: _earlier, ...others } = read();
  const newest = Object.entries(others).slice(1 - MAX_DRAFTS);
  const all = Object.fromEntries(text === '' ? newest : [...newest, [chat, text]]);
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch {
    // The storage is full: the text stays in the field.
  }
}

const read = () => storedObject<string>(KEY);
