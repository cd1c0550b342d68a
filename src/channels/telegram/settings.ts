// The Telegram settings: their schema, and what the schema cannot check.

import { z } from 'zod';
import {
  allowFrom,
  groupSettings,
  groups,
  strangeCallNames,
  strangers,
} from '../../kernel/config/channel-fields.ts';
import { type Problems, strangeItems, unless } from '../../kernel/config/problems.ts';
import { choice, flag, secret, text, texts } from '../../kernel/config/settings-fields.ts';

/** The emojis a bot may react with (Bot API, ReactionTypeEmoji). */
export const TELEGRAM_REACTIONS = [
  ...['👍', '👎', '❤', '🔥', '🥰', '👏', '😁', '🤔', '🤯', '😱', '🤬', '😢', '🎉'],
  ...['🤩', '🤮', '💩', '🙏', '👌', '🕊', '🤡', '🥱', '🥴', '😍', '🐳', '❤‍🔥', '🌚'],
  ...['🌭', '💯', '🤣', '⚡', '🍌', '🏆', '💔', '🤨', '😐', '🍓', '🍾', '💋', '🖕'],
  ...['😈', '😴', '😭', '🤓', '👻', '👨‍💻', '👀', '🎃', '🙈', '😇', '😨', '🤝', '✍'],
  ...['🤗', '🫡', '🎅', '🎄', '☃', '💅', '🤪', '🗿', '🆒', '💘', '🙉', '🦄', '😘'],
  ...['💊', '🙊', '😎', '👾', '🤷‍♂', '🤷', '🤷‍♀', '😡'],
] as const;

export const telegramSchema = z.strictObject({
  enabled: flag(false),
  token: secret().default('').describe('From @BotFather.'),
  apiRoot: text('https://api.telegram.org'),
  allowFrom: allowFrom.describe('Numeric Telegram user ids; empty = nobody, "*" = everybody.'),
  strangers,
  streaming: flag(true).describe('Show the answer while it is being written.'),
  quoteReplies: flag(false).describe('Answers quote the question; in groups they always do.'),
  ackReaction: choice(['', ...TELEGRAM_REACTIONS], '').describe(
    'Emoji set on a message while it is worked on; empty: none.',
  ),
  ...groupSettings,
  groups: groups.describe('Numeric ids of groups (-1001234567890); empty = no group.'),
  groupSenderChats: texts().describe(
    'Ids of chats in whose name people may speak: a group for its hidden admins.',
  ),
});
export type TelegramConfig = z.infer<typeof telegramSchema>;

const TELEGRAM_TOKEN = /^\d+:[A-Za-z0-9_-]+$/;

export function telegramConflicts(telegram: TelegramConfig): Problems {
  const path = 'channels.telegram';
  const problems = [
    ...strangeItems(
      `${path}.allowFrom`,
      telegram.allowFrom,
      (id) => id === '*' || /^\d+$/.test(id),
      (id) => `"${id}" is no user id; names can change hands`,
      'Write the numeric id; "nanobot pair list" shows it of whoever wrote.',
    ),
    ...strangeGroupIds(`${path}.groups`, telegram.groups),
    ...strangeGroupIds(`${path}.groupSenderChats`, telegram.groupSenderChats),
    ...strangeCallNames(path, telegram.groupNames),
  ];
  if (!telegram.enabled) return problems;
  const isUnset = telegram.token === '';
  const problem = isUnset ? 'no token is set' : 'this does not look like a bot token';
  const remedy = 'Ask @BotFather for one, or set channels.telegram.enabled to false.';
  const isFine = TELEGRAM_TOKEN.test(telegram.token);
  return [...problems, ...unless(isFine, `${path}.token`, problem, remedy)];
}

const strangeGroupIds = (path: string, ids: readonly string[]): Problems =>
  strangeItems(
    path,
    ids,
    (id) => /^-\d{1,19}$/.test(id),
    (id) => `"${id}" is no id of a group or channel; names can change hands`,
    'Write the number with its minus, like -1001234567890.',
  );
