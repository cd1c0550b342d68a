// What is typed and not sent, by chat: kept in this browser, so that a reload loses nothing.

const KEY = 'nanobot.drafts';
const MAX_DRAFTS = 50;

type Drafts = Readonly<Record<string, string>>;

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

function read(): Drafts {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}');
    return typeof stored === 'object' && stored !== null ? (stored as Drafts) : {};
  } catch {
    return {};
  }
}
