// Messages that are no question for the agent but stand in the session's order like one: a change of
// something answered before, and a reaction to something we sent. Neither runs a tool or asks a model.

import type { Revisions } from '../agent/revise.ts';
import type { MessageBus, QueuedMessage, TurnResult } from '../bus/bus.ts';
import { againQuestion } from '../core/change.ts';
import { messageId, type TurnId } from '../core/ids.ts';
import { idsOf, sessionKeyOf } from '../core/message.ts';
import { reactionNote } from '../core/reaction.ts';
import { sessionOfTurn, turnOfAnswer } from '../core/turn-id.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { QuestionHandler, Questions } from './questions.ts';

export type AsidesDeps = {
  readonly bus: Pick<MessageBus, 'sentAs'>;
  readonly agent: Pick<Revisions, 'remark'>;
  readonly questions: Pick<Questions, 'ask'>;
  /** What a change of an answered message leads to. */
  afterAnswer(): 'offer' | 'ignore';
};

/** The dispatcher for what is for the agent; the rest is dealt with here. */
export function withAsides(dispatcher: Dispatcher, asides: Asides): Dispatcher {
  return {
    ...dispatcher,
    handle: (turn) => asides(turn.id, turn.messages[0]) ?? dispatcher.handle(turn),
  };
}

/** Undefined where the message is one for the agent. */
export type Asides = (id: TurnId, queued: QueuedMessage) => Promise<TurnResult> | undefined;

/** An offer older than this is about something nobody remembers. */
const OFFER_MS = 24 * 3_600_000;

export function createAsides(deps: AsidesDeps): Asides {
  const { bus, agent, questions } = deps;

  async function changed({ seq, message }: QueuedMessage): Promise<TurnResult> {
    const { amends, sender, chat } = message;
    const isOffered = amends?.kind === 'edited' && deps.afterAnswer() === 'offer';
    if (isOffered && sender.kind === 'person') {
      await questions.ask({
        id: `again/${message.id}`,
        chat,
        markdown: againQuestion(amends),
        choices: [{ label: 'Answer again', action: 'again' }],
        approvers: idsOf(sender),
        subject: `again:${message.id}`,
        expiresInMs: OFFER_MS,
      });
    }
    return { throughSeq: seq, outbound: [] };
  }

  async function reacted(id: TurnId, { seq, message }: QueuedMessage): Promise<TurnResult> {
    const { reaction, chat } = message;
    const sent = reaction && (await bus.sentAs(sessionKeyOf(chat), reaction.to));
    if (sent !== undefined) {
      const turn = turnOfAnswer(sent.id);
      await agent.remark(turn === undefined ? sessionKeyOf(sent.chat) : sessionOfTurn(turn), {
        turnId: turn ?? id,
        messageId: message.id,
        text: reactionNote(message, sent.markdown),
      });
    }
    return { throughSeq: seq, outbound: [] };
  }

  return (id, queued) => {
    if (queued.message.amends !== undefined) return changed(queued);
    return queued.message.reaction === undefined ? undefined : reacted(id, queued);
  };
}

/** Answers "Answer again": a message of its own, the same for every press, because the person asks. */
export function createAgainHandler(deps: {
  readonly bus: Pick<MessageBus, 'accept' | 'inbound'>;
  readonly now: () => number;
}): QuestionHandler {
  return {
    async answer(id) {
      const change = await deps.bus.inbound(messageId(id));
      if (change === undefined) return 'I no longer have that message. Please send it again.';
      const { amends: _changed, ...said } = change;
      const message = { ...said, id: messageId(`${id}~again`), receivedAt: deps.now() };
      await deps.bus.accept([{ kind: 'queue', message }]);
      return '';
    },
  };
}
