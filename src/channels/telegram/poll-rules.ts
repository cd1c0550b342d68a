// What to do after a poll that failed: how long to wait, what to tell, when to give up. Pure.

import { backoffMs } from '../../lib/backoff.ts';
import { type CallFailure, describeFailure } from './failures.ts';

/**
 * Groups come as `message` too; `my_chat_member` says that the bot was put into one. Reactions only
 * come where they are asked for (Bot API, getUpdates), in groups only to a bot that is an admin.
 */
export const UPDATE_KINDS = [
  'message',
  'edited_message',
  'callback_query',
  'message_reaction',
  'my_chat_member',
] as const;

/** Another program polls with this token: it may leave at any time, so we come back for ever. */
const CONFLICT_MIN_MS = 5000;
const CONFLICT_MAX_MS = 60_000;
const NETWORK_MIN_MS = 1000;
const NETWORK_MAX_MS = 30_000;
/** One conflict is usual when a gateway is restarted; this many in a row are another program. */
const CONFLICTS_BEFORE_ALERT = 3;

export type Trouble = {
  readonly failure: CallFailure;
  /** Failed polls in a row, this one included. */
  readonly failures: number;
};

export type PollVerdict =
  | { readonly kind: 'stop'; readonly reason: string; readonly remedy: string }
  | {
      readonly kind: 'wait';
      readonly waitMs: number;
      readonly reason: string;
      readonly clearWebhook: boolean;
      /** What the owner is told, once per time of trouble. */
      readonly alert?: string;
    };

export function judgePoll({ failure, failures }: Trouble, random: () => number): PollVerdict {
  if (failure.kind === 'refused') {
    if (failure.code === 401 || failure.code === 404) return refusedToken(failure.code);
    if (failure.code === 409) return conflict(failure.description, failures);
    if (failure.retryAfterMs !== undefined) {
      const reason = 'Telegram asks us to slow down';
      return { kind: 'wait', waitMs: failure.retryAfterMs, reason, clearWebhook: false };
    }
  }
  const waitMs = backoffMs(failures, { minMs: NETWORK_MIN_MS, maxMs: NETWORK_MAX_MS, random });
  return { kind: 'wait', waitMs, reason: describeFailure(failure), clearWebhook: false };
}

function refusedToken(code: number): PollVerdict {
  return {
    kind: 'stop',
    reason: `Telegram does not accept the bot token (${code})`,
    remedy:
      'Get the current token from @BotFather (/mybots, then API Token) and run ' +
      '`nanobot channels login telegram`; where channels.telegram.apiRoot is set, check it too.',
  };
}

function conflict(description: string, failures: number): PollVerdict {
  const waitMs = Math.min(CONFLICT_MAX_MS, CONFLICT_MIN_MS * 2 ** (failures - 1));
  const clearWebhook = failures === 1;
  if (/webhook/i.test(description)) {
    const reason = 'a webhook was set for this bot, which keeps messages from us; removing it';
    return { kind: 'wait', waitMs, reason, clearWebhook };
  }
  const reason =
    'another program receives this bot’s messages with the same token; stop it, or give this ' +
    'gateway a bot of its own';
  return {
    kind: 'wait',
    waitMs,
    reason,
    clearWebhook,
    ...(failures === CONFLICTS_BEFORE_ALERT ? { alert: `Telegram: ${reason}.` } : {}),
  };
}
