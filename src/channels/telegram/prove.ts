// For setting the channel up: does this token work, whose is it, and how does its owner get in.

import { BACKOFF, ChannelError, NEVER } from '../../kernel/message/errors.ts';
import { systemClock } from '../../lib/time/clock.ts';
import { createBotApi } from './client.ts';
import { BotCallError, describeFailure } from './failures.ts';

export type ProvenBot = { readonly id: number; readonly username: string; readonly name: string };

/** @throws ChannelError in words for the person at the keyboard; never holds the token */
export async function proveTelegram(
  token: string,
  apiRoot: string,
  signal: AbortSignal,
): Promise<ProvenBot> {
  if (!/^\d+:[\w-]+$/.test(token)) {
    throw new ChannelError(
      'telegram_token_malformed',
      'This is not a bot token: it looks like 123456:ABC-DEF.',
      {
        remedy: NEVER,
      },
    );
  }
  try {
    const me = await createBotApi({ token, apiRoot, clock: systemClock }).getMe(signal);
    return { id: me.id, username: me.username, name: me.first_name };
  } catch (error) {
    if (!(error instanceof BotCallError)) throw error;
    const { failure } = error;
    const isToken = failure.kind === 'refused' && (failure.code === 401 || failure.code === 404);
    throw isToken
      ? new ChannelError('telegram_token_refused', 'Telegram does not know this token.', {
          remedy: NEVER,
        })
      : new ChannelError('telegram_unreachable', `${describeFailure(failure)}.`, {
          remedy: BACKOFF,
        });
  }
}

/** Opening it sends `/start <code>` to the bot. */
export function pairingLink(username: string, code: string): string {
  return `https://t.me/${username}?start=${encodeURIComponent(code)}`;
}
