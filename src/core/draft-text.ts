// What an owner reads before a text goes to somebody else: all of it, and nothing that looks like
// something else. What would not fit on one screen is not asked at all. Case X05.

import { fenced, MAX_SHOWN_CHARS, shownText } from './approval-text.ts';
import { verbatim } from './stranger-words.ts';

export type DraftToShow = {
  /** Whom it goes to, in words fit for a person. */
  readonly to: string;
  readonly channel: string;
  /** Addresses of copies. */
  readonly cc?: readonly string[];
  readonly subject?: string | undefined;
  readonly markdown: string;
  /** Who asks, in words of ours or escaped. */
  readonly asker: string;
  readonly isTainted: boolean;
  readonly hours: number;
};

/** Undefined where the draft is too long to be shown whole. */
export function draftText(draft: DraftToShow): string | undefined {
  const subject = draft.subject === undefined ? [] : [`Subject: ${draft.subject}`];
  const { cc = [] } = draft;
  const copies = cc.length === 0 ? [] : [`Cc: ${cc.join(', ')}`];
  const lines = [`To: ${draft.to} (${draft.channel})`, ...copies, ...subject];
  const head = lines.map((line) => shownText(line).replace(/\n/g, '\\n'));
  const shown = [...head, '', shownText(draft.markdown)].join('\n');
  if (shown.length > MAX_SHOWN_CHARS) return undefined;
  const warning = draft.isTainted
    ? ['Careful: the conversation holds words of others, who may have wanted this.']
    : [];
  return [
    `**Send this?** Asked by ${draft.asker}.`,
    ...warning,
    '',
    fenced(shown),
    '',
    `Expires in ${draft.hours} hours.`,
  ].join('\n');
}

/** What is shown while an owner writes another text. */
export function editText(to: string): string {
  return (
    `Write the new text for ${verbatim(shownText(to))} as your next message here; I show it to you ` +
    'again before it goes out. /cancel leaves the text as it is.'
  );
}
