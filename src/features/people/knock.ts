// What happens when somebody writes who is not let in: their message is kept and the owner asked, or
// they are given a code for the owner. All of it is on disk before the channel acknowledges.

import type { InboundEntry, MessageBus } from '../../kernel/bus/bus.ts';
import type { Judge } from '../../kernel/intake/judge.ts';
import { accountName } from '../../kernel/message/account.ts';
import { messageId } from '../../kernel/message/ids.ts';
import { type InboundMessage, idsOf, type PersonSender } from '../../kernel/message/message.ts';
import { codeNotice } from '../../kernel/message/untrusted.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Decisions } from './decisions.ts';
import type { AnnounceStranger } from './owner-notices.ts';
import {
  issueStrangerCode,
  STRANGER_CODE_MINUTES,
  type StrangerCodesDeps,
} from './pairing-codes.ts';
import type { Stranger } from './strangers.ts';

export type KnockDeps = StrangerCodesDeps & {
  readonly bus: Pick<MessageBus, 'send' | 'trace'>;
  readonly decisions: Decisions;
  readonly judge: Judge;
  readonly announce: AnnounceStranger;
  readonly log: Logger;
};

/** The entry that records the message; its own id stays free for the day it is answered. */
export type Knock = (
  message: InboundMessage,
  sender: PersonSender,
  policy: 'silent' | 'pairing',
) => Promise<InboundEntry>;

export function createKnock(deps: KnockDeps): Knock {
  const { bus, strangers, decisions, judge, announce, log } = deps;

  async function giveCode(stranger: Stranger, message: InboundMessage) {
    const code = await issueStrangerCode(stranger, deps);
    if (code === undefined) return;
    await bus.send({
      id: messageId(`${message.id}/reply`),
      chat: message.chat,
      markdown: codeNotice(code, STRANGER_CODE_MINUTES),
      replyTo: message.id,
    });
  }

  return async (message, sender, policy) => {
    const { channel } = message.chat;
    const gate = 'held: sender not on the allow list';
    // It was answered once already and the platform offers it again.
    if ((await bus.trace(message.id)) !== undefined) return { kind: 'record', message, gate };
    const stranger = await strangers.hold(message, sender);
    log.info('message of a stranger', {
      channel,
      messageId: message.id,
      kept: stranger !== undefined,
    });
    const entry: InboundEntry = {
      kind: 'record',
      message: { ...message, id: messageId(`${message.id}/held`) },
      gate,
    };
    if (stranger === undefined) return { ...entry, gate: 'too many strangers wait' };
    // A decision made elsewhere in the meantime has not seen this message.
    if ((await judge(message)).kind === 'admit') {
      await decisions.answerHeld(channel, idsOf(sender));
    } else if (policy === 'pairing') await giveCode(stranger, message);
    else await announce(stranger, accountName(message.chat));
    return entry;
  };
}
