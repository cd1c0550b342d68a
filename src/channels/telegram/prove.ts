// For setup: whether a token works, which bot it belongs to, and how its owner gets in.

import { BACKOFF, ChannelError, NEVER } from '../../kernel/message/errors.ts';
import { t } from '../../lib/texts.ts';
import { systemClock } from '../../lib/time/clock.ts';
import {
  BotCallError,
  CALL_DEADLINE_MS,
  createBotLink,
  describeFailure,
  type LineOptions,
} from './client.ts';

export type ProvenBot = {
  readonly id: number;
  readonly username: string;
  readonly name: string;
  /** Telegram's clock minus this machine's in ms, as far as its answer says it. */
  readonly aheadMs?: number;
};

/** @throws ChannelError as a text for the person; never contains the token */
export async function proveTelegram(
  token: string,
  { apiRoot, proxy = '' }: Pick<LineOptions, 'apiRoot' | 'proxy'>,
  signal: AbortSignal,
): Promise<ProvenBot> {
  if (!/^\d+:[\w-]+$/.test(token)) {
    const problem = t`This is not a bot token. A token looks like 123456:ABC-DEF.`;
    throw new ChannelError('telegram_token_malformed', problem, { remedy: NEVER });
  }
  try {
    let aheadMs: number | undefined;
    const onDate = (date: number) => {
      aheadMs = date - systemClock.now();
    };
    const link = createBotLink({ token, apiRoot, proxy, clock: systemClock, onDate });
    const me = await link.api.getMe(signal);
    const { id, username, first_name: name } = me;
    return { id, username, name, ...(aheadMs === undefined ? {} : { aheadMs }) };
  } catch (error) {
    if (!(error instanceof BotCallError)) throw error;
    const { failure } = error;
    const isToken = failure.kind === 'refused' && (failure.code === 401 || failure.code === 404);
    const unknown = t`Telegram refused this token.`;
    if (isToken) throw new ChannelError('telegram_token_refused', unknown, { remedy: NEVER });
    const problem = `${describeFailure(failure)}.`;
    throw new ChannelError('telegram_unreachable', problem, { remedy: BACKOFF });
  }
}

/**
 * The host to which a webhook of the bot sends its messages instead of us; undefined: there is none.
 * `remove`: removes it; the messages that wait stay. @throws BotCallError
 */
export async function webhookOf(
  token: string,
  { apiRoot, proxy = '' }: Pick<LineOptions, 'apiRoot' | 'proxy'>,
  signal: AbortSignal,
): Promise<{ readonly host: string; remove(): Promise<void> } | undefined> {
  const { api } = createBotLink({ token, apiRoot, proxy, clock: systemClock });
  const { url = '' } = await api.getWebhookInfo(signal);
  if (url === '') return undefined;
  return {
    host: URL.parse(url)?.host ?? '?',
    async remove() {
      await api.deleteWebhook({}, AbortSignal.timeout(CALL_DEADLINE_MS));
    },
  };
}

/** Opening it sends `/start <code>` to the bot. */
export function pairingLink(username: string, code: string): string {
  return `https://t.me/${username}?start=${encodeURIComponent(code)}`;
}
