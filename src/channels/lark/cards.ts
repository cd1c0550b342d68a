// The cards our texts go out in (JSON 2.0): Markdown, and buttons whose press comes back as an event.
// open.feishu.cn/document/feishu-cards/card-json-v2-structure

import { headOf } from '../../core/cut.ts';
import { renderLark } from '../../core/markup/lark.ts';
import { type Run, runsText } from '../../core/markup/writer.ts';
import type { Choice } from '../../core/message.ts';

/** As seen; what is sent for it stays below the 30 KB of a card (im-v1/message/create). */
export const TEXT_UNITS = 4000;
/** Labels longer than this, all together, stand below each other. */
const ROW_CHARS = 32;
const SUMMARY_CHARS = 80;

export type Card = {
  readonly runs: readonly Run[];
  readonly choices?: readonly Choice[];
  /** The thread it stands in: a press does not say. */
  readonly thread?: string;
};

/** `isPlain`: without markup, where Lark does not take it. */
export function cardJson({ runs, choices = [], thread }: Card, isPlain = false): string {
  const text = isPlain
    ? { tag: 'div', text: { tag: 'plain_text', content: runsText(runs) } }
    : { tag: 'markdown', content: renderLark(runs) };
  const summary = headOf(runsText(runs).trim(), SUMMARY_CHARS);
  return JSON.stringify({
    schema: '2.0',
    // Only a card that is the same for all can be changed later.
    config: { update_multi: true, summary: { content: summary } },
    body: { elements: [text, ...buttonRows(choices, thread)] },
  });
}

function buttonRows(choices: readonly Choice[], thread: string | undefined): readonly unknown[] {
  const buttons = choices.map(({ label, token }) => ({
    tag: 'button',
    text: { tag: 'plain_text', content: label },
    behaviors: [
      { type: 'callback', value: { token, label, ...(thread === undefined ? {} : { thread }) } },
    ],
  }));
  const isShort = choices.map(({ label }) => label).join('').length <= ROW_CHARS;
  if (!isShort || buttons.length < 2) return buttons;
  const columns = buttons.map((button) => ({ tag: 'column', width: 'auto', elements: [button] }));
  return [{ tag: 'column_set', flex_mode: 'flow', columns }];
}
