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
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { AskTurn } from '../../kernel/guards.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { messageId, type SessionKey, type UserId } from '../../kernel/message/ids.ts';
import {
  type ChatRef,
  type GroupRef,
  type InboundMessage,
  idsOf,
} from '../../kernel/message/message.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import {
  type Asked,
  type Choice,
  LIFETIME_MS,
  payloadHandler,
  payloadOf,
} from '../../kernel/questions/question-rows.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import { createLanes } from '../../lib/async.ts';
import { flag, number, object, place, rowShape, text, texts } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';

type AsksDeps = Pick<Kernel, 'clock' | 'log'> & {
  readonly bus: Pick<MessageBus, 'accept'>;
  readonly questions: Pick<Questions, 'ask' | 'get' | 'known' | 'toTell' | 'withdraw' | 'drop'>;
};

/** A message with the notes about questions that it answers, or that ended before it. */
export type Bound = {
  readonly message: InboundMessage;
  readonly isForeign: boolean;
  rightsFrom(rights: Rights): Rights;
};

export type Asks = ReturnType<typeof createAsks>;

export const ASK_SUBJECT = 'ask';
export const ASK_HOURS = LIFETIME_MS.ask / 3_600_000;
const MAX_OPEN = 500;

const SENT =
  t`The question was sent. End this turn now, without asking it again in your answer: the answer ` +
  t`comes as a message, within ${ASK_HOURS} hours or not at all. Write nothing more unless there is ` +
  t`something else to say.`;
const NOBODY = t`nobody is in this conversation who could be asked; ask in your answer instead`;
const TOO_MANY = t`too many questions wait for an answer; ask in your answer instead`;
const ANSWERED = 'answered';
const NO_LONGER = t`This can no longer be answered: it was already decided or has expired.`;

const questionId = (id: string) => `${ASK_SUBJECT}/${id}`;
/** Of the message that brings a choice to the agent. */
const ANSWER = '/answer';

export function createAsks(deps: AsksDeps) {
  const { bus, questions, clock, log } = deps;
  const lanes = createLanes();

  async function ask(asked: AskedPerson, { session, turnId, newest }: AskTurn): Promise<string> {
    const { sender, chat, group } = newest;
    const id = `${turnId}/${asked.ordinal}`;
    const known = await questions.get(questionId(id));
    if (known?.outcome !== undefined) return SENT;
    if (sender.kind !== 'person' || sender.verified === 'unverified') {
      throw new ToolError('execution', NOBODY);
    }
    if (known === undefined) {
      const open = await openAsks();
      if (open.length >= MAX_OPEN) throw new ToolError('execution', TOO_MANY);
      await questions.drop(ASK_SUBJECT, session);
    }
    const { question, rights, isTainted } = asked;
    const ask: Ask = {
      ...{ chat, question, rights, isTainted, asked: idsOf(sender), at: clock.now() },
      ...(group === undefined ? {} : { group }),
    };
    await questions.ask({
      id: questionId(id),
      chat,
      markdown: question.text,
      choices: question.choices.map((label, index) => ({ label, action: String(index) })),
      approvers: ask.asked,
      subject: `${ASK_SUBJECT}:${id}`,
      session,
      payload: ask,
      expiresInMs: LIFETIME_MS.ask,
    });
    log.info('question asked', { session });
    return SENT;
  }

  async function openAsks(session?: SessionKey) {
    const all = await questions.known(ASK_SUBJECT, session);
    return all.filter(({ outcome, chosen }) => outcome === undefined && chosen === undefined);
  }

  async function answer(ask: Ask, { id, session }: Asked, { action, by }: Choice) {
    const choice = ask.question.choices[Number(action)];
    if (choice === undefined) return NO_LONGER;
    const { chat, group, question } = ask;
    const now = clock.now();
    const message: InboundMessage = {
      id: messageId(`${id}${ANSWER}`),
      ...{ chat, sender: by, addressing: 'direct' },
      ...(session === undefined ? {} : { session }),
      ...(group === undefined ? {} : { group }),
      // The prefix keeps a label from being read as a command.
      text: t`My choice: ${choice}`,
      note: answerNote(question, choice),
      ...{ sentAt: now, receivedAt: now },
    };
    // In the person's name, so that its rights are those of the person.
    await bus.accept([{ kind: 'queue', message }]);
    return { words: t`You chose ${verbatim(choice)}.`, outcome: ANSWERED };
  }

  /** The open question that these words answer, or would; it is answered by the first. */
  async function answered(session: SessionKey, message: InboundMessage) {
    for (const { id, payload } of await openAsks(session)) {
      const ask = payloadOf({ payload }, ASK);
      if (ask === undefined || !isAnswer(message, ask)) continue;
      const { question } = ask;
      const choice = choiceMeant(question, message.text);
      if (choice === undefined && !question.allowsWords)
        return { ask, note: stillOpenNote(question) };
      const note = answerNote(question, choice);
      await questions.withdraw(id, '', { outcome: ANSWERED, note, toldIn: message.id });
    }
    return undefined;
  }

  return {
    /**
     * Stores the question; returns the text for the model.
     * @throws ToolError where there is no person to ask
     */
    ask: (question: AskedPerson, turn: AskTurn): Promise<string> =>
      lanes.run(turn.session, () => ask(question, turn)),
    /**
     * The message with what the model is told of decided questions of the conversation. Returns the
     * same for a repetition of the same message.
     */
    async bind(session: SessionKey, message: InboundMessage): Promise<Bound> {
      const isPerson = message.sender.kind === 'person';
      const chosen = isPerson && message.id.endsWith(ANSWER);
      const pressed = chosen ? await questions.get(message.id.slice(0, -ANSWER.length)) : undefined;
      const stillOpen = isPerson ? await answered(session, message) : undefined;
      const isAsk = ({ subject }: { readonly subject: string }) =>
        subject.startsWith(`${ASK_SUBJECT}:`);
      const told = await questions.toTell(session, message.id, (each) => isPerson || !isAsk(each));
      const own = [...(pressed === undefined ? [] : [pressed]), ...told.filter(isAsk)];
      const asks = own.flatMap((each) => payloadOf(each, ASK) ?? []);
      if (stillOpen !== undefined) asks.push(stillOpen.ask);
      const notes = [...told.map(({ note }) => note), stillOpen?.note, message.note];
      const note = notes.filter((each) => each !== undefined).join('\n');
      return {
        message: note === '' ? message : { ...message, note },
        isForeign: asks.some(({ isTainted }) => isTainted),
        rightsFrom: (rights) => asks.reduce((narrow, ask) => narrowed(narrow, ask.rights), rights),
      };
    },
    handler: payloadHandler(ASK, {
      answer,
      expired: async ({ question }) => ({ words: '', note: expiredNote(question) }),
    }),
  };
}

/** A message sent before the question is about something else. */
const isAnswer = (
  { sender, amends, reaction, redoes, receivedAt }: InboundMessage,
  { at, asked }: Pick<Ask, 'at' | 'asked'>,
) =>
  receivedAt >= at &&
  sender.kind === 'person' &&
  sender.verified !== 'unverified' &&
  idsOf(sender).some((one) => asked.includes(one)) &&
  amends === undefined &&
  reaction === undefined &&
  redoes === undefined;

/** The payload of the question to the person. */
export type Ask = {
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
};

const ASK = rowShape<Ask>({
  ...{ chat: place, asked: texts, rights: object, isTainted: flag, at: number },
  question: z.looseObject({ text, choices: texts }),
});
