// What may be wrong with the Telegram settings although each of them fits the schema.

import type { TelegramConfig } from '../../../kernel/config/config.ts';
import { strangeCallNames } from '../../../kernel/config/conflicts-groups.ts';
import type { ConfigProblem } from '../../../kernel/message/errors.ts';

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
