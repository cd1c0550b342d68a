// The simulated Bot API as a process of its own, so that a benchmark can tell its CPU from the
// gateway's. Forked with an IPC channel: it reports its address, takes `say`, and tells of every
// message of the bot as it appears or changes, with times by the server's own clock.

import { startBotApi } from './bot-api.ts';
import { nowMs } from './bot-api-ledger.ts';

export type ToBotApi =
  | { readonly type: 'say'; readonly user: number; readonly text: string }
  | { readonly type: 'report' };

export type FromBotApi =
  | { readonly type: 'ready'; readonly apiRoot: string; readonly token: string }
  /** A message of a person became available to the bot. */
  | { readonly type: 'said'; readonly user: number; readonly text: string; readonly at: number }
  /** The bot's message stands in the chat; `edits` is 0 when it is new. */
  | {
      readonly type: 'seen';
      readonly chat: number;
      readonly messageId: number;
      readonly text: string;
      readonly edits: number;
      readonly at: number;
    }
  /** Times of the polls so far, to find the first. */
  | {
      readonly type: 'report';
      readonly violations: readonly string[];
      readonly firstPollAt: number | undefined;
      readonly calls: number;
    };

const tell = (message: FromBotApi) => void process.send?.(message);

const api = await startBotApi({
  onMessage: (chat, message) => {
    if (message.from !== 'bot') return;
    const { id: messageId, text, edits, changedAt: at } = message;
    tell({ type: 'seen', chat, messageId, text, edits, at });
  },
});

process.on('message', (message: ToBotApi) => {
  if (message.type === 'say') {
    const { user, text } = message;
    const at = nowMs();
    api.say(user, text);
    tell({ type: 'said', user, text, at });
    return;
  }
  const firstPollAt = api.calls.find(({ method }) => method === 'getUpdates')?.at;
  tell({ type: 'report', violations: api.violations, firstPollAt, calls: api.calls.length });
});
process.on('disconnect', () => process.exit(0));
tell({ type: 'ready', apiRoot: api.apiRoot, token: api.token });
