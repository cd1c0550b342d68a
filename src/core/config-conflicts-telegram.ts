// What may be wrong with the Telegram settings although each of them fits the schema.

import type { TelegramConfig } from './config.ts';
import type { ConfigProblem } from './errors.ts';

const TELEGRAM_TOKEN = /^\d+:[A-Za-z0-9_-]+$/;

export function telegramConflicts(telegram: TelegramConfig): readonly ConfigProblem[] {
  const problems = notNumericIds(telegram.allowFrom);
  if (!telegram.enabled) return problems;
  const path = 'channels.telegram.token';
  const remedy = 'Ask @BotFather for one, or set channels.telegram.enabled to false.';
  if (telegram.token === '') return [...problems, { path, problem: 'no token is set', remedy }];
  if (TELEGRAM_TOKEN.test(telegram.token)) return problems;
  return [...problems, { path, problem: 'this does not look like a bot token', remedy }];
}

function notNumericIds(allowFrom: readonly string[]): readonly ConfigProblem[] {
  return allowFrom.flatMap((id, index) => {
    if (id === '*' || /^\d+$/.test(id)) return [];
    const problem = `"${id}" is no user id; names can change hands`;
    const remedy = 'Write the numeric id. The bot tells it to whoever writes to it.';
    return [{ path: `channels.telegram.allowFrom.${index}`, problem, remedy }];
  });
}
