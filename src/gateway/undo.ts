// `/undo`: takes the last answer out of the chat, where the platform lets us, and the exchange out of
// what the model is shown. A repeat of the command after a crash takes back nothing further.

import type { Agent } from '../agent/agent.ts';
import type { MessageBus, SentText } from '../bus/bus.ts';
import type { Channel } from '../channels/channel.ts';
import { type AccountName, accountName } from '../core/account.ts';
import { isSameSender } from '../core/change.ts';
import { DeliveryError } from '../core/errors.ts';
import type { TurnId } from '../core/ids.ts';
import type { Logger } from '../lib/logger.ts';
import type { CommandOrigin } from './command.ts';

export type UndoDeps = {
  readonly agent: Pick<Agent, 'lastTurn' | 'takeBack'>;
  readonly bus: Pick<MessageBus, 'inbound' | 'takeBack' | 'draft' | 'forgetDraft'>;
  readonly log: Logger;
  channel(name: AccountName): Channel | undefined;
};

const RETRACT_DEADLINE_MS = 30_000;
const NOTHING = 'There is no answer to take back.';
const NOT_YOURS = 'Only my owner or whoever asked can take that answer back.';
const FORGOTTEN = 'I take no account of the last exchange any more.';

export function createUndo(deps: UndoDeps): (origin: CommandOrigin) => Promise<string> {
  const { agent, bus } = deps;
  return async (origin) => {
    const { session, message } = origin;
    const last = await agent.lastTurn(session, message.id);
    if (last === undefined) return NOTHING;
    if (!last.isTakenBack) {
      const asked = last.askedBy === undefined ? undefined : await bus.inbound(last.askedBy);
      const isTheirs = asked === undefined || isSameSender(asked.sender, message.sender);
      // Among several, an answer that nobody is known to have asked for is the owner's to take back.
      const isSure = asked !== undefined || message.group === undefined;
      if (origin.role !== 'owner' && !(isTheirs && isSure)) return NOT_YOURS;
      await agent.takeBack(session, last.turnId, message.id);
    }
    return `${FORGOTTEN} ${await retractAll(last.turnId, message.chat, deps)}`;
  };
}

async function retractAll(
  turnId: TurnId,
  chat: CommandOrigin['message']['chat'],
  deps: UndoDeps,
): Promise<string> {
  const { bus } = deps;
  const { sent, isUnderWay } = await bus.takeBack(turnId);
  const draft = isUnderWay ? undefined : (await bus.draft(turnId))?.nativeId;
  const draftText = draft === undefined ? [] : [{ chat, parts: [draft] }];
  const texts = [...sent, ...draftText].filter(({ parts }) => parts.length > 0);
  const kept = await keptParts(texts, deps);
  if (draft !== undefined) await bus.forgetDraft(turnId);
  const late = isUnderWay ? ' A part of it was on its way and may still arrive.' : '';
  if (kept === 'nothing') return `What I said is gone from this chat.${late}`;
  return `What I said still stands in this chat: ${kept}.${late}`;
}

/** Why something still stands in the chat. */
async function keptParts(
  texts: readonly Pick<SentText, 'chat' | 'parts'>[],
  { channel, log }: UndoDeps,
): Promise<string> {
  let kept = 'nothing';
  for (const { chat, parts } of texts) {
    const retracting = channel(accountName(chat))?.retracting;
    if (retracting === undefined) return 'here nothing can be taken away';
    try {
      await retracting.retract(chat, parts, AbortSignal.timeout(RETRACT_DEADLINE_MS));
    } catch (error) {
      if (!(error instanceof DeliveryError)) throw error;
      log.info('answer not taken away', { channel: chat.channel, error });
      kept = 'some of it could not be taken away (it may be too old)';
    }
  }
  return kept;
}
