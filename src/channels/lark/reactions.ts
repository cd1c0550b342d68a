// The sign we set on people's messages while we work. To take one away Lark wants the id it has given it.
// open.feishu.cn/document/server-docs/im-v1/message-reaction/create

import type { LarkConfig } from '../../kernel/config/config.ts';
import { listOf, textOf } from '../../lib/json/json.ts';
import type { Reactions } from '../channel.ts';
import type { LarkApi } from './api.ts';
import { at } from './content.ts';
import { isNotThere, LarkCallError, toDeliveryError } from './failures.ts';
import { isId, larkMessageId } from './ids.ts';
import { larkReaction } from './rules/reactions.ts';

export function createReactions(
  api: LarkApi,
  appId: string,
  acknowledgement: LarkConfig['ackReaction'],
): Reactions {
  const path = (message: string) => `im/v1/messages/${message}/reactions`;

  async function set(message: string, name: string, signal: AbortSignal) {
    const data = { reaction_type: { emoji_type: name } };
    await api.call({ method: 'POST', path: path(message), data, signal });
  }

  /** Also what an earlier process had set. */
  async function clear(message: string, signal: AbortSignal) {
    const params = { page_size: '50' };
    const answer = await api.call({ method: 'GET', path: path(message), params, signal });
    for (const one of listOf(at(answer, 'data', 'items'))) {
      const id = textOf(at(one, 'reaction_id'));
      if (at(one, 'operator', 'operator_id') !== appId || !isId(id)) continue;
      await api.call({ method: 'DELETE', path: `${path(message)}/${id}`, signal });
    }
  }

  return {
    ...(acknowledgement === '' ? {} : { acknowledgement }),
    async react(to, emoji, signal) {
      const message = larkMessageId(to);
      if (message === undefined) return;
      const name = emoji === undefined ? undefined : larkReaction(emoji);
      try {
        if (name === undefined) await clear(message, signal);
        else await set(message, name, signal);
      } catch (error) {
        if (error instanceof LarkCallError && isNotThere(error)) return;
        throw toDeliveryError(error, true);
      }
    },
  };
}
