// Messages that are not for the agent but have their place in the order of the session: an edit of a
// message that was answered before, and a reaction to a message of ours. Neither has an effect outside.

import type { Agent } from '../../agent/agent.ts';
import { isSameChat } from '../access/person.ts';
import type { MessageBus, QueuedMessage, Turn, TurnResult } from '../bus/bus.ts';
import { againQuestion, reactionNote } from '../message/change.ts';
import {
  type MessageId,
  messageId,
  sessionOfTurn,
  type TurnId,
  turnOfAnswer,
} from '../message/ids.ts';
import { type InboundMessage, idsOf, sessionKeyOf } from '../message/message.ts';
import type { QuestionHandler, Questions } from '../questions/questions.ts';
import { type Answer, createRedo, type RedoDeps } from './redo.ts';
import type { TurnStage } from './stages.ts';

export type EditsDeps = RedoDeps & {
  readonly bus: Pick<MessageBus, 'sentAs' | 'inbound' | 'trace'>;
  readonly agent: Pick<Agent, 'remark'>;
  readonly questions: Pick<Questions, 'ask' | 'open' | 'withdraw'>;
  /** What an edit of an answered message leads to. */
  afterAnswer(): 'offer' | 'edit' | 'ignore';
};

const AGAIN = 'again:';
/** An offer older than this is about something nobody remembers. */
const OFFER_MS = 24 * 3_600_000;

export function editsStage(deps: EditsDeps): TurnStage {
  const { bus, agent, questions } = deps;
  const redo = createRedo(deps);

  async function changed(turn: Turn, answer: Answer): Promise<TurnResult> {
    const { seq, message } = turn.messages[0];
    const { amends, sender, chat } = message;
    if (amends !== undefined) await withdrawOffers(message);
    if (amends?.kind !== 'edited') return { throughSeq: seq, outbound: [] };
    const when = (await isDuringAnswer(message, amends.id)) ? 'during' : 'after';
    const wanted = deps.afterAnswer();
    if (wanted === 'edit') return redo(turn, answer);
    if ((wanted === 'offer' || when === 'during') && sender.kind === 'person') {
      await questions.ask({
        id: `again/${message.id}`,
        chat,
        markdown: againQuestion(amends, when),
        choices: [{ label: 'Answer again', action: 'again' }],
        approvers: idsOf(sender),
        subject: `${AGAIN}${message.id}`,
        expiresInMs: OFFER_MS,
      });
    }
    return { throughSeq: seq, outbound: [] };
  }

  /** It came too late for the turn that answers the message, and before that turn was over. */
  async function isDuringAnswer({ receivedAt }: InboundMessage, id: MessageId): Promise<boolean> {
    const trace = await bus.trace(id);
    const answeredAt = trace?.state === 'done' ? trace.steps.at(-1)?.at : undefined;
    return answeredAt !== undefined && receivedAt <= answeredAt;
  }

  /** Of the same message as it was before: of one that is deleted nothing is to be answered. */
  async function withdrawOffers({ id, amends, chat }: InboundMessage): Promise<void> {
    for (const { id: question, subject } of await questions.open()) {
      if (!subject.startsWith(AGAIN) || subject === AGAIN + id) continue;
      const earlier = await bus.inbound(messageId(subject.slice(AGAIN.length)));
      if (earlier === undefined) continue;
      const isSame = earlier.amends?.id === amends?.id && isSameChat(earlier.chat, chat);
      if (isSame) await questions.withdraw(question);
    }
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

  return {
    name: 'edits',
    async run(turn, next) {
      const [queued] = turn.messages;
      if (queued.message.amends !== undefined) return changed(turn, next);
      return queued.message.reaction === undefined ? next(turn) : reacted(turn.id, queued);
    },
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
