// Whether a message in a group is for the bot: it is named, it is answered, or a command names it. Pure.

import { type Fields, fieldsOf, integerOf, listOf, textOf } from '../../core/fields.ts';
import type { InboundMessage } from '../../core/message.ts';

export type BotNames = {
  readonly botId: number;
  /** Without `@`; undefined until Telegram has said it. */
  readonly username: string | undefined;
};

const COMMAND = /^\/[a-z0-9_]+(?:@([a-z0-9_]+))?(?=\s|$)/i;

export function addressingOf(fields: Fields, bot: BotNames): InboundMessage['addressing'] {
  const text = textOf(fields['text']) ?? textOf(fields['caption']) ?? '';
  const command = COMMAND.exec(text.trimStart());
  // Several bots may stand in a group: a command is for the one it names.
  if (command !== null) return isOurName(command[1], bot) ? 'mention' : 'ambient';
  const entities = [...listOf(fields['entities']), ...listOf(fields['caption_entities'])];
  if (entities.some((entity) => isMention(fieldsOf(entity), text, bot))) return 'mention';
  const original = answeredBy(fields);
  const author = integerOf(fieldsOf(original?.['from'])?.['id']);
  return author === bot.botId ? 'reply' : 'ambient';
}

/** The message this one answers. In a topic every message seems to answer the topic's first. */
export function answeredBy(fields: Fields): Fields | undefined {
  const original = fieldsOf(fields['reply_to_message']);
  return original?.['forum_topic_created'] === undefined ? original : undefined;
}

function isMention(entity: Fields | undefined, text: string, bot: BotNames): boolean {
  if (entity?.['type'] === 'text_mention') {
    return integerOf(fieldsOf(entity['user'])?.['id']) === bot.botId;
  }
  const offset = integerOf(entity?.['offset']);
  const length = integerOf(entity?.['length']);
  if (entity?.['type'] !== 'mention' || offset === undefined || length === undefined) return false;
  return isOurName(text.slice(offset + 1, offset + length), bot);
}

const isOurName = (name: string | undefined, { username }: BotNames) =>
  name !== undefined && name.toLowerCase() === username?.toLowerCase();
