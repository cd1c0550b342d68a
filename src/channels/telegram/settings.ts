// The Telegram settings: their schema, and what the schema cannot check.

import { z } from 'zod';
import {
  allowFrom,
  groupSettings,
  groups,
  strangeCallNames,
  strangers,
} from '../../kernel/config/channel-fields.ts';
import { choice, flag, secret, text, texts } from '../../kernel/config/settings-fields.ts';
import type { ConfigProblem } from '../../kernel/message/errors.ts';

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

export function telegramConflicts(telegram: TelegramConfig): readonly ConfigProblem[] {
  const problems = [
    ...notNumericIds(telegram.allowFrom),
    ...notGroupIds('groups', telegram.groups),
    ...notGroupIds('groupSenderChats', telegram.groupSenderChats),
    ...strangeCallNames('channels.telegram', telegram.groupNames),
  ];
  if (!telegram.enabled) return problems;
  const path = 'channels.telegram.token';
  const remedy = 'Ask @BotFather for one, or set channels.telegram.enabled to false.';
  if (telegram.token === '') return [...problems, { path, problem: 'no token is set', remedy }];
  if (TELEGRAM_TOKEN.test(telegram.token)) return problems;
  return [...problems, { path, problem: 'this does not look like a bot token', remedy }];
}

function notGroupIds(key: string, ids: readonly string[]): readonly ConfigProblem[] {
  return ids.flatMap((id, index) => {
    if (/^-\d{1,19}$/.test(id)) return [];
    const problem = `"${id}" is no id of a group or channel; names can change hands`;
    const remedy = 'Write the number with its minus, like -1001234567890.';
    return [{ path: `channels.telegram.${key}.${index}`, problem, remedy }];
  });
}

function notNumericIds(allowFrom: readonly string[]): readonly ConfigProblem[] {
  return allowFrom.flatMap((id, index) => {
    if (id === '*' || /^\d+$/.test(id)) return [];
    const problem = `"${id}" is no user id; names can change hands`;
    const remedy = 'Write the numeric id; "nanobot pair list" shows it of whoever wrote.';
    return [{ path: `channels.telegram.allowFrom.${index}`, problem, remedy }];
  });
}
