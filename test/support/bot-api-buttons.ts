// Buttons below messages of the simulated Telegram, and what pressing one tells the bot.

import type { Button, Chat, Person, SeenMessage } from './bot-api-ledger.ts';

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

type Rows = readonly (readonly Button[])[];

/** Telegram's limit of `callback_data`, bytes. */
const MAX_DATA_BYTES = 64;

export function buttonsOf(
  payload: Readonly<Record<string, unknown>>,
): Rows | undefined | 'invalid' {
  const markup = payload['reply_markup'];
  if (markup === undefined) return undefined;
  const rows = isRecord(markup) ? markup['inline_keyboard'] : undefined;
  if (!Array.isArray(rows)) return 'invalid';
  const isGood = rows.flat().every((button: unknown) => {
    if (!isRecord(button) || typeof button['text'] !== 'string' || button['text'] === '')
      return false;
    const bytes = Buffer.byteLength(String(button['callback_data'] ?? ''));
    return bytes >= 1 && bytes <= MAX_DATA_BYTES;
  });
  return isGood ? (rows as Rows) : 'invalid';
}

export const sameButtons = (one: Rows | undefined, other: Rows | undefined) =>
  JSON.stringify(one ?? []) === JSON.stringify(other ?? []);

/** The newest message with a button of that label. */
export function buttonRows(chat: Chat, label: string) {
  for (const seen of chat.messages.toReversed()) {
    const button = seen.buttons?.flat().find(({ text }) => text === label);
    if (button !== undefined) return { seen, button };
  }
  throw new Error(`no button ${label} stands in chat ${chat.id}`);
}

/** An old message comes as InaccessibleMessage: chat and id, and `date` 0. */
export function callbackQuery(
  message: { readonly message_id: number; readonly chat: unknown },
  about: {
    readonly from: Person;
    readonly seen: SeenMessage;
    readonly button: Button;
    readonly isOld: boolean;
  },
) {
  const { from, seen, button, isOld } = about;
  const { message_id, chat } = message;
  return {
    id: `${Math.floor(performance.now() * 1_000_000)}${message_id}`,
    from: { is_bot: false, ...from },
    message: isOld
      ? { message_id, chat, date: 0 }
      : { ...message, reply_markup: { inline_keyboard: seen.buttons } },
    chat_instance: '1',
    data: button.callback_data,
  };
}
