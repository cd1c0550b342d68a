// For setting the channel up: do this app id and secret work, and what is its bot called.

import { BACKOFF, ChannelError } from '../../kernel/message/errors.ts';
import { systemClock } from '../../lib/time/clock.ts';
import { type BotInfo, botInfo, createLarkApi, lastingTrouble } from './api.ts';
import { LarkCallError } from './failures.ts';
import { larkRoot } from './rules/reactions.ts';

export type ProvenLarkBot = BotInfo;

export type LarkCredentials = {
  readonly appId: string;
  readonly appSecret: string;
  /** `feishu`, `lark` or an address. */
  readonly domain: string;
};

/** @throws ChannelError in words for the person at the keyboard; never holds the secret */
export async function proveLark(
  { appId, appSecret, domain }: LarkCredentials,
  signal: AbortSignal,
): Promise<ProvenLarkBot> {
  const api = createLarkApi({ appId, appSecret, root: larkRoot(domain) }, systemClock);
  try {
    return await botInfo(api, signal);
  } catch (error) {
    if (!(error instanceof LarkCallError)) throw error;
    throw (
      lastingTrouble(error) ??
      new ChannelError('lark_unreachable', `${error.message}.`, { remedy: BACKOFF })
    );
  } finally {
    api.close();
  }
}
