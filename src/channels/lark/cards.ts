// The cards our texts go out in (JSON 2.0): Markdown, and buttons whose press comes back as an event.
// open.feishu.cn/document/feishu-cards/card-json-v2-structure

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { NativeId } from '../../kernel/message/ids.ts';
import type { Choice } from '../../kernel/message/message.ts';
import { splitMarkdown } from '../../lib/markup/split.ts';
import { type Run, runsText } from '../../lib/markup/writer.ts';
import { headOf } from '../../lib/text/cut.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { isGone, toDeliveryError } from './failures.ts';
import type { Messages } from './messages.ts';
import { renderLark } from './rules/markup.ts';

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

// Cards with buttons that can still be pressed. To take the buttons away Lark wants the whole card again,
// so it is kept without them until then.

export type OpenCards = {
  keep(id: NativeId, card: Card): Promise<void>;
  /** It says `now` from then on, where that is given. @throws DeliveryError */
  close(id: NativeId, signal: AbortSignal, now?: string): Promise<void>;
  /** Forgets cards nobody has pressed for long. */
  expire(): Promise<void>;
};

const PREFIX = 'card:';
/** A card can be changed for 14 days (im-v1/message/patch). */
const LIFETIME_MS = 14 * 24 * 3_600_000;

export function createOpenCards(
  messages: Messages,
  clock: Clock,
  state: () => KeyValueStore | undefined,
): OpenCards {
  return {
    async keep(id, { runs }) {
      await state()?.set(PREFIX + id, cardJson({ runs }));
    },
    async close(id, signal, now) {
      const kept = await state()?.get(PREFIX + id);
      if (kept === undefined) return;
      const [whole, ...more] = now === undefined ? [] : splitMarkdown(now, TEXT_UNITS);
      const isOne = whole !== undefined && more.length === 0;
      try {
        await messages.change(id, isOne ? cardJson({ runs: whole.runs }) : kept, signal);
      } catch (error) {
        if (!isGone(error)) throw toDeliveryError(error, true);
      }
      await state()?.delete(PREFIX + id);
    },
    async expire() {
      await state()?.expire(PREFIX, clock.now() - LIFETIME_MS);
    },
  };
}
