// The agent's questions to the person of a chat. The turn that asks ends; a pressed button, a
// number or the next message starts another turn in the same session, which is told what it
// answers. Questions are stored, and each is answered once. ADR 0010 says why nothing waits in
// memory.

import { z } from 'zod';
import type { AskedPerson } from '../../agent/agent.ts';
import {
  answerNote,
  choiceMeant,
  expiredNote,
  type PersonQuestion,
  stillOpenNote,
} from '../../kernel/access/person.ts';
import { narrowed, type Rights } from '../../kernel/access/rights.ts';
import type { MessageBus, RowWrite } from '../../kernel/bus/bus.ts';
import type { AskTurn } from '../../kernel/guards.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import {
  type MessageId,
  messageId,
  type SessionKey,
  type UserId,
} from '../../kernel/message/ids.ts';
import {
  type ChatRef,
  type GroupRef,
  type InboundMessage,
  idsOf,
  type PersonSender,
} from '../../kernel/message/message.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import type { QuestionHandler } from '../../kernel/questions/question-rows.ts';
import { eraseDecided, isOpen, moveOn, openOf } from '../../kernel/questions/question-rows.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import { jsonRows, type OpenRows, type Rows } from '../../kernel/rows.ts';
import type { Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { createLanes } from '../../lib/async.ts';
import { flag, kind, number, object, place, rowShape, text, texts } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';

type AsksDeps = {
  readonly asks: Rows<Ask>;
  readonly bus: Pick<MessageBus, 'accept'>;
  readonly questions: Pick<Questions, 'ask' | 'withdraw'>;
  readonly clock: Clock;
  readonly log: Logger;
};

/** A message with the question it answers. */
export type Bound = {
  readonly message: InboundMessage;
  readonly isForeign: boolean;
  rightsFrom(rights: Rights): Rights;
};

export type Asks = ReturnType<typeof createAsks>;

export const ASK_SUBJECT = 'ask';
export const ASK_HOURS = 24;
const LIFETIME_MS = ASK_HOURS * 3_600_000;
/** Kept this long, so that an answer after a long stop still finds its question. */
const KEEP_MS = 30 * 86_400_000;
const MAX_OPEN = 500;

const SENT =
  t`The question was sent. End this turn now, without asking it again in your answer: the answer ` +
  t`comes as a message, within ${ASK_HOURS} hours or not at all. Write nothing more unless there is ` +
  t`something else to say.`;
const NOBODY = t`nobody is in this conversation who could be asked; ask in your answer instead`;
const TOO_MANY = t`too many questions wait for an answer; ask in your answer instead`;
const NO_LONGER = t`This can no longer be answered: it was already decided or has expired.`;

const questionId = (id: string) => `${ASK_SUBJECT}/${id}`;
const answerId = (id: string): MessageId => messageId(`${ASK_SUBJECT}/${id}/answer`);

export function createAsks(deps: AsksDeps) {
  const { asks, bus, questions, clock, log } = deps;
  const lanes = createLanes();

  async function ask(asked: AskedPerson, { session, turnId, newest }: AskTurn): Promise<string> {
    const { sender, chat, group } = newest;
    const id = `${turnId}/${asked.ordinal}`;
    const known = await asks.get(id);
    if (known !== undefined) {
      if (known.state.kind === 'open') await pose(known);
      return SENT;
    }
    if (sender.kind !== 'person' || sender.verified === 'unverified') {
      throw new ToolError('execution', NOBODY);
    }
    await asks.erase(({ at }) => at < clock.now() - KEEP_MS);
    if ((await openOf(asks)).length >= MAX_OPEN) throw new ToolError('execution', TOO_MANY);
    await replace(session);
    const { question, rights, isTainted } = asked;
    const ask: Ask = {
      ...{ id, session, chat, question, rights, isTainted },
      ...(group === undefined ? {} : { group }),
      asked: idsOf(sender),
      at: clock.now(),
      state: { kind: 'open' },
    };
    await pose(ask, [asks.write(id, ask)]);
    await forgetEarlier(session);
    log.info('question asked', { session });
    return SENT;
  }

  /** Replaces all open questions of the session. */
  async function replace(session: SessionKey): Promise<void> {
    for (const { id } of await asksOf(session)) {
      if (await moveOn(asks, id, ['open'], { kind: 'replaced' }))
        await questions.withdraw(questionId(id));
    }
  }

  async function asksOf(session: SessionKey): Promise<readonly Ask[]> {
    return (await asks.list()).filter((ask) => ask.session === session);
  }

  async function forgetEarlier(session: SessionKey): Promise<void> {
    const earlier = (await asksOf(session)).filter((each) => !isOpen(each));
    for (const { id } of earlier.slice(0, -KEPT_PER_SESSION)) await asks.change(id, () => 'remove');
  }

  async function pose({ id, chat, question, asked, at }: Ask, beside: readonly RowWrite[] = []) {
    const posed = {
      id: questionId(id),
      chat,
      markdown: question.text,
      choices: question.choices.map((label, index) => ({ label, action: String(index) })),
      approvers: asked,
      subject: `${ASK_SUBJECT}:${id}`,
      expiresInMs: Math.max(1, at + LIFETIME_MS - clock.now()),
    };
    await questions.ask(posed, beside);
  }

  async function answer(id: string, action: string, who: PersonSender): Promise<string> {
    const ask = await asks.get(id);
    const choice = ask?.question.choices[Number(action)];
    if (ask === undefined || choice === undefined) return NO_LONGER;
    const by = answerId(id);
    const isFirst = await moveOn(asks, id, ['open'], { kind: 'answered', by, choice });
    const { state } = (await asks.get(id)) ?? ask;
    if (!isFirst && !(state.kind === 'answered' && state.by === by)) return NO_LONGER;
    const message = answerMessage(ask, choice, who, clock.now());
    await bus.accept([{ kind: 'queue', message }]);
    return t`You chose ${verbatim(choice)}.`;
  }

  async function expired(id: string): Promise<void> {
    await moveOn(asks, id, ['open'], { kind: 'expired' });
  }

  async function noteFor(ask: Ask, message: InboundMessage): Promise<string | undefined> {
    const { id, question, state } = ask;
    const { sender, text } = message;
    if (state.kind === 'answered') {
      return state.by === message.id ? answerNote(question, state.choice) : undefined;
    }
    if (state.kind === 'expired') {
      if (state.toldIn !== undefined && state.toldIn !== message.id) return undefined;
      await asks.change(id, (each) =>
        each?.state.kind === 'expired' && each.state.toldIn === undefined
          ? { ...each, state: { ...each.state, toldIn: message.id } }
          : undefined,
      );
      return expiredNote(question);
    }
    const isTheirs =
      sender.kind === 'person' && idsOf(sender).some((one) => ask.asked.includes(one));
    if (state.kind !== 'open' || !isTheirs || !isAnswer(message, ask)) return undefined;
    const choice = choiceMeant(question, text);
    if (choice === undefined && !question.allowsWords) return stillOpenNote(question);
    const by = { by: message.id, ...(choice === undefined ? {} : { choice }) };
    if (!(await moveOn(asks, id, ['open'], { kind: 'answered', ...by }))) return undefined;
    await questions.withdraw(questionId(id));
    return answerNote(question, choice);
  }

  return {
    /**
     * Stores the question; returns the text for the model.
     * @throws ToolError where there is no person to ask
     */
    ask: (question: AskedPerson, turn: AskTurn): Promise<string> =>
      lanes.run(turn.session, () => ask(question, turn)),
    /** Returns the same for a repetition of the same message. */
    async bind(session: SessionKey, message: InboundMessage): Promise<Bound> {
      const own = message.sender.kind === 'person' ? await asksOf(session) : [];
      for (const ask of own.toReversed()) {
        const note = await noteFor(ask, message);
        if (note === undefined) continue;
        return {
          message: { ...message, note },
          isForeign: ask.isTainted,
          rightsFrom: (rights) => narrowed(rights, ask.rights),
        };
      }
      return { message, isForeign: false, rightsFrom: (rights) => rights };
    },
    drop: replace,
    /**
     * Erases answered questions of these chats (session keys without topics) that contain the
     * words.
     */
    forget: (chats: readonly string[], holds: Holds) =>
      eraseDecided(asks, chats, holds, {
        isOver: (ask) => !isOpen(ask),
        textOf: ({ question, state }) => ({ question, state }),
      }),
    handler: {
      answer,
      expired,
      /** Answered by words, or replaced by another question. */
      async settled(id) {
        const ask = await asks.get(id);
        return ask === undefined || isOpen(ask) ? undefined : t`Already answered.`;
      },
    } satisfies QuestionHandler,
  };
}

/** A message sent before the question is about something else. */
const isAnswer = (
  { sender, amends, reaction, redoes, receivedAt }: InboundMessage,
  { at }: Pick<Ask, 'at'>,
) =>
  receivedAt >= at &&
  sender.kind === 'person' &&
  sender.verified !== 'unverified' &&
  amends === undefined &&
  reaction === undefined &&
  redoes === undefined;

/** Sent in the person's name, so that its rights are those of the person. */
function answerMessage(
  ask: Ask,
  choice: string,
  sender: PersonSender,
  now: number,
): InboundMessage {
  const { id, chat, session, group } = ask;
  return {
    id: answerId(id),
    ...{ chat, session, sender },
    addressing: 'direct',
    ...(group === undefined ? {} : { group }),
    // The prefix keeps a label from being read as a command.
    text: t`My choice: ${choice}`,
    sentAt: now,
    receivedAt: now,
  };
}

// Stored questions of the agent, cached in memory, so that a message needs no read of the store. A
// question is settled once; the first to settle it wins.

type AskState =
  | { readonly kind: 'open' | 'replaced' }
  /** `by`: the message that brings the answer to the agent. */
  | { readonly kind: 'answered'; readonly by: MessageId; readonly choice?: string }
  /** `toldIn`: the message that tells the model. */
  | { readonly kind: 'expired'; readonly toldIn?: MessageId };

export type Ask = {
  /** `turnId/place of the call`: the same on every retry of the turn. */
  readonly id: string;
  readonly session: SessionKey;
  readonly chat: ChatRef;
  readonly group?: GroupRef;
  /** All ids of the person who was asked. */
  readonly asked: readonly UserId[];
  readonly question: PersonQuestion;
  /** Rights of the turn that asked: the answer adds none. */
  readonly rights: Rights;
  /** The question may contain untrusted content. */
  readonly isTainted: boolean;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly state: AskState;
};

const ASK = rowShape<Ask>({
  ...{ id: text, session: text, chat: place, asked: texts, rights: object, isTainted: flag },
  ...{ question: z.looseObject({ text, choices: texts }), at: number, state: kind },
});

/** Kept because the turn that takes an answer may be retried. */
const KEPT_PER_SESSION = 3;

/** Oldest first. */
export const openAsks = (rows: OpenRows): Rows<Ask> =>
  rows({
    ...jsonRows(ASK),
    ...{ scope: 'asks', prefix: 'ask:', isCached: true },
    order: (one, other) => one.at - other.at,
  });
