// The Telegram settings: their schema, and checks beyond the schema.

import { z } from 'zod';
import {
  allowFrom,
  answerSettings,
  choice,
  flag,
  groupSettings,
  groups,
  type Problems,
  proxy,
  secret,
  strangeCallNames,
  strangeItems,
  strangers,
  text,
  texts,
  unless,
} from '../../kernel/config/settings-fields.ts';
import { t } from '../../lib/texts.ts';

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
  enabled: flag(false).describe('Connect to Telegram.'),
  token: secret().default('').describe('Bot token from @BotFather.'),
  apiRoot: text('https://api.telegram.org').describe(
    'Address of the Bot API: that of Telegram, or of a server of your own.',
  ),
  proxy,
  allowFrom: allowFrom.describe(
    t`Numeric Telegram user ids that may talk to the agent. Empty: nobody; "*": everybody.`,
  ),
  strangers,
  ...answerSettings,
  ackReaction: choice(['', ...TELEGRAM_REACTIONS], '').describe(
    'Emoji on a message while the agent works on it. Empty: none.',
  ),
  ...groupSettings,
  groups: groups.describe(
    t`Numeric ids of groups (-1001234567890) in which the agent answers. Empty: no group.`,
  ),
  groupSenderChats: texts().describe(
    'Ids of chats in whose name people may write, e.g. a group for its anonymous admins.',
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
      (id) => t`"${id}" is not a user id; names can change owners`,
      t`Use the numeric id; "nanobot pair list" shows the ids of people who wrote.`,
    ),
    ...strangeGroupIds(`${path}.groups`, telegram.groups),
    ...strangeGroupIds(`${path}.groupSenderChats`, telegram.groupSenderChats),
    ...strangeCallNames(path, telegram.groupNames),
  ];
  if (!telegram.enabled) return problems;
  const isUnset = telegram.token === '';
  const problem = isUnset ? t`no token is set` : t`not a valid bot token`;
  const remedy = t`Get a token from @BotFather, or set channels.telegram.enabled to false.`;
  const isFine = TELEGRAM_TOKEN.test(telegram.token);
  return [...problems, ...unless(isFine, `${path}.token`, problem, remedy)];
}

const strangeGroupIds = (path: string, ids: readonly string[]): Problems =>
  strangeItems(
    path,
    ids,
    (id) => /^-\d{1,19}$/.test(id),
    (id) => t`"${id}" is not the id of a group or channel; names can change owners`,
    t`Use the number with its minus sign, e.g. -1001234567890.`,
  );
