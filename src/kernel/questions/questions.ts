// Questions that people answer by a press or a number, over restarts: each choice has a random token,
// good once, in one chat, for those who may decide. What an answer does, its handler knows. Only what
// a person sent is ever an answer; nothing the agent writes comes here. Cases T09 and A07.

import { createLanes } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import { type Clock, sleepOrWoken } from '../../lib/time/clock.ts';
import type { AdmittedRole } from '../access/admission.ts';
import type { MessageBus, RowWrite } from '../bus/bus.ts';
import type { Contributed } from '../contributions.ts';
import type { SpendButtons } from '../delivery/undelivered.ts';
import { type AccountName, accountName, type MessageId, messageId } from '../message/ids.ts';
import type { ChatRef, InboundMessage, PersonSender } from '../message/message.ts';
import type { AuditLog } from '../observe/telemetry.ts';
import {
  byToken,
  expireUsed,
  mayDecide,
  numberedIn,
  type OpenQuestion,
  type Question,
  type QuestionHandler,
  type QuestionRows,
  textOf,
} from './question-rows.ts';

export type { Answered, Question, QuestionHandler } from './question-rows.ts';

type QuestionsDeps = {
  readonly rows: QuestionRows;
  readonly bus: Pick<MessageBus, 'send'>;
  readonly clock: Clock;
  readonly log: Logger;
  randomBytes(size: number): Uint8Array;
  /** By kind of subject. */
  handlers(): Readonly<Record<string, QuestionHandler>>;
  /** Nobody has to press below this question any more. */
  spendButtons: SpendButtons;
  /** Whether choices can be pressed on the channel; elsewhere their numbers are the answers. */
  hasButtons(account: AccountName): boolean;
};

/** 192 bits. */
const TOKEN_BYTES = 24;
const NUMBER = /^\s*([1-9]\d?)[.)]?\s*$/;
const NO_LONGER = 'This can no longer be answered: it was already decided or has expired.';
const NOT_YET = 'Your answer is saved, but could not be carried out yet. I try again.';
const NOT_YOURS = 'This is not yours to decide.';

export type Questions = ReturnType<typeof createQuestions>;

export function createQuestions(deps: QuestionsDeps) {
  const { rows, bus, clock, log } = deps;
  /** Two presses at once must not both count. */
  const lanes = createLanes();
  let changed = Promise.withResolvers<void>();
  const newToken = () => Buffer.from(deps.randomBytes(TOKEN_BYTES)).toString('base64url');

  async function send({ id, round, chat, markdown, choices }: OpenQuestion) {
    const shown = choices.map(({ label, token }) => ({ label, token }));
    await bus.send({ id: textOf({ id, round }), chat, markdown, choices: shown });
  }

  async function pose(
    question: Omit<OpenQuestion, 'choices' | 'isNumbered'>,
    choices: Choices,
    beside: readonly RowWrite[] = [],
  ) {
    const withTokens = choices.map((choice) => ({ ...choice, token: newToken() }));
    const open = { ...question, choices: withTokens, isNumbered: true };
    await rows.open.change(
      open.id,
      () => open,
      () => beside,
    );
    await send(open);
    changed.resolve();
  }

  async function close(open: OpenQuestion, outcome?: string) {
    const buttons = deps.spendButtons(textOf(open), outcome);
    await rows.open.change(
      open.id,
      () => 'remove',
      () => buttons.rows,
    );
    buttons.begin();
  }

  async function ask({ choices, expiresInMs, ...question }: Question) {
    const known = await rows.open.get(question.id);
    if (known !== undefined) return send(known);
    const askedAt = clock.now();
    return pose({ ...question, round: 0, askedAt, expiresAt: askedAt + expiresInMs }, choices);
  }

  async function carryOut(open: OpenQuestion): Promise<string> {
    const { chosen } = open;
    if (chosen === undefined) return NO_LONGER;
    const { handler, rest } = handlerOf(open);
    const at = chosen.isOutside === true ? undefined : open.chat;
    const answered = (await handler?.answer(rest, chosen.action, chosen.by, at)) ?? NO_LONGER;
    if (typeof answered !== 'string') await ask(answered.next);
    await close(open);
    log.info('question answered', { question: open.id, action: chosen.action });
    return typeof answered === 'string' ? answered : answered.words;
  }

  function handlerOf({ subject }: OpenQuestion) {
    const colon = subject.indexOf(':');
    const handlers = deps.handlers();
    const kind = subject.slice(0, colon);
    const handler = Object.hasOwn(handlers, kind) ? handlers[kind] : undefined;
    return { handler, rest: subject.slice(colon + 1) };
  }

  /** Notes the choice; why it does not count, or undefined. */
  async function choose(token: string, chosen: Omit<Chosen, 'action'>, isTheirs: IsTheirs) {
    const open = await byToken(rows, token);
    const choice = open?.choices.find((each) => each.token === token);
    if (open === undefined || choice === undefined || open.chosen !== undefined) return NO_LONGER;
    if (!isTheirs(open)) {
      log.warn('question answered by another person', { question: open.id });
      return NOT_YOURS;
    }
    if (open.expiresAt <= clock.now()) return NO_LONGER;
    const { action } = choice;
    await rows.open.change(open.id, (each) => each && { ...each, chosen: { ...chosen, action } });
    return undefined;
  }

  async function decide(token: string, chosen: Omit<Chosen, 'action'>, isTheirs: IsTheirs) {
    // Carried out, and answered, by a process that had it before.
    if (chosen.message !== undefined && (await rows.used.get(chosen.message))?.token === token)
      return '';
    const known = await byToken(rows, token);
    const isNoted = chosen.message !== undefined && known?.chosen?.message === chosen.message;
    const refusal = isNoted ? undefined : await choose(token, chosen, isTheirs);
    if (refusal !== undefined) return refusal;
    const open = await byToken(rows, token);
    return open === undefined ? NO_LONGER : carriedOut(open);
  }

  async function carriedOut(open: OpenQuestion) {
    try {
      return await carryOut(open);
    } catch (error) {
      log.error('decision not carried out yet', { question: open.id, error });
      // The press gets its words now; those of the outcome follow as a message of their own.
      const { message: _press, ...chosen } = open.chosen ?? {};
      if ('action' in chosen) {
        await rows.open.change(open.id, (each) => each && { ...each, chosen });
      }
      changed.resolve();
      return NOT_YET;
    }
  }

  async function recover() {
    await expireUsed(rows, clock.now());
    for (const open of await rows.open.list()) if (open.chosen === undefined) await send(open);
  }

  /** Carries out what was chosen and could not be done then. */
  async function finish(open: OpenQuestion) {
    const { chosen } = open;
    const { token } = open.choices.find(({ action }) => action === chosen?.action) ?? {};
    if (chosen?.message !== undefined && token !== undefined) {
      await rows.used.change(chosen.message, () => ({ token }));
    }
    const markdown = await carryOut(open);
    // The name of the reply to the press: where that comes once more, its reply is no second one.
    const id = messageId(
      open.chosen?.message === undefined
        ? `question/${open.id}/answer`
        : `${open.chosen.message}/reply`,
    );
    if (markdown !== '') await bus.send({ id, chat: open.chat, markdown });
  }

  async function expire(open: OpenQuestion) {
    const { handler, rest } = handlerOf(open);
    await handler?.expired?.(rest);
    await close(open);
    log.info('question expired', { question: open.id });
  }

  /** As it stands now: it may have been answered or asked again meanwhile. */
  async function takeUp(id: string) {
    const open = await rows.open.get(id);
    if (open === undefined || !isDue(open, clock.now())) return;
    await (open.chosen === undefined ? expire(open) : finish(open));
  }

  /** Something else was written below the question. */
  async function wordsBetween(id: string) {
    await rows.open.change(id, (open) => open && { ...open, isNumbered: false });
  }

  const oneByOne = <T>(task: () => Promise<T>) => lanes.run('questions', task);

  return {
    /** Sends the question with its choices; durable when resolved. */
    ask: (question: Question) => oneByOne(() => ask(question)),
    /** Asks an open question anew, here; what was to be pressed before is no longer good. */
    askAgain: (id: string, chat: ChatRef): Promise<'asked' | 'closed'> =>
      oneByOne(async () => {
        const open = await rows.open.get(id);
        if (open === undefined || open.chosen !== undefined) return 'closed';
        const buttons = deps.spendButtons(textOf(open));
        await pose({ ...open, chat, round: open.round + 1 }, open.choices, buttons.rows);
        buttons.begin();
        return 'asked';
      }),
    /** Notes what a press chose, so that it is carried out whatever becomes of this process. */
    async choose({ id, press, sender, chat }: InboundMessage, role: AdmittedRole): Promise<void> {
      if (press === undefined || sender.kind !== 'person') return;
      const isTheirs = (open: OpenQuestion) => mayDecide(open, sender, chat, role);
      await oneByOne(() => choose(press, { by: sender, message: id }, isTheirs));
    },
    /** Carries it out: the words for who pressed; undefined where the message is no press. */
    async press(
      { id, press, sender, chat }: InboundMessage,
      role: AdmittedRole,
    ): Promise<string | undefined> {
      if (press === undefined) return undefined;
      if (sender.kind !== 'person') return NOT_YOURS;
      const isTheirs = (open: OpenQuestion) => mayDecide(open, sender, chat, role);
      return oneByOne(() => decide(press, { by: sender, message: id }, isTheirs));
    },
    /**
     * The token that a number stands for, as the next words after a question on a channel without
     * buttons; undefined where the message is none. Other words go to the agent, and from then on
     * numbers too.
     */
    async numbered({ id, chat, text, addressing, group }: InboundMessage) {
      if (addressing !== 'direct' || group !== undefined) return undefined;
      const used = await rows.used.get(id);
      if (used !== undefined) return used.token;
      const open = await numberedIn(rows, chat);
      if (open === undefined || deps.hasButtons(accountName(chat))) return undefined;
      const number = Number(NUMBER.exec(text)?.[1] ?? 0);
      const choice = open.choices[number - 1];
      if (choice === undefined) await oneByOne(() => wordsBetween(open.id));
      return choice?.token;
    },
    /** Of what a thumb can mean below this text, a question where there are no buttons; else none. */
    async tokensOf(text: MessageId): Promise<readonly string[]> {
      const open = (await rows.open.list()).find((one) => textOf(one) === text);
      if (open === undefined || deps.hasButtons(accountName(open.chat))) return [];
      const meant = open.choices.filter(({ hasNoThumb }) => hasNoThumb !== true);
      return meant.map(({ token }) => token);
    },
    /** What waits for an answer, oldest first. */
    open: async () => (await rows.open.list()).filter(({ chosen }) => chosen === undefined),
    /** An owner's choice made outside any chat, by what only the question's readers know. */
    answer: (token: string, owner: PersonSender): Promise<string> =>
      oneByOne(() =>
        decide(token, { by: owner, isOutside: true }, (open) => open.approvers === 'owners'),
      ),
    /** It needs no answer any more; `outcome` is added to its text where the platform can. */
    withdraw: (id: string, outcome?: string): Promise<void> =>
      oneByOne(async () => {
        const open = await rows.open.get(id);
        if (open !== undefined) await close(open, outcome);
      }),
    /** Takes up what a process that is gone left, then closes questions when their time is up. */
    async run(signal: AbortSignal): Promise<void> {
      for (const handler of Object.values(deps.handlers())) await handler.takeUp?.();
      await oneByOne(recover);
      while (!signal.aborted) {
        changed = Promise.withResolvers<void>();
        await eachDue(await rows.open.list(), clock.now(), ({ id }) => oneByOne(() => takeUp(id)));
        const dueAt = Math.min(...(await rows.open.list()).map(({ expiresAt }) => expiresAt));
        const waitMs = Math.min(MAX_SLEEP_MS, Math.max(0, dueAt - clock.now()));
        await sleepOrWoken(clock, waitMs, changed.promise, signal);
      }
    },
  };
}

type Choices = Question['choices'];
type Chosen = NonNullable<OpenQuestion['chosen']>;
type IsTheirs = (open: OpenQuestion) => boolean;

// Which questions have to be taken up.

/** Timers take no more than 2^31 ms. */
const MAX_SLEEP_MS = 86_400_000;

/** It was answered and what that does was not done yet, or its time is over. */
const isDue = ({ chosen, expiresAt }: OpenQuestion, now: number) =>
  chosen !== undefined || expiresAt <= now;

/** One that cannot be taken up now does not keep the others. @throws what it threw */
async function eachDue(
  all: readonly OpenQuestion[],
  now: number,
  takeUp: (open: OpenQuestion) => Promise<void>,
): Promise<void> {
  const results = await Promise.allSettled(all.filter((open) => isDue(open, now)).map(takeUp));
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

// The handlers of answers to questions, as features contribute them. Decisions among them are entered in the
// audit file, whether they came by a button, a number or the page.

export type Handlers = Readonly<Record<string, QuestionHandler>>;

/** By the kind of the subject, as contributed so far. */
export function auditedHandlers(
  contributed: Pick<Contributed, 'answers'>,
  audit: AuditLog,
): Handlers {
  const wrapped = [...contributed.answers()].map(([subject, { handler, audited: kind }]) => {
    if (kind === undefined) return [subject, handler] as const;
    const answer: QuestionHandler['answer'] = async (rest, action, who, at) => {
      const words = await handler.answer(rest, action, who, at);
      audit.note({ kind, fields: { subject, about: rest, action, by: who.id } });
      return words;
    };
    return [subject, { ...handler, answer }] as const;
  });
  return Object.fromEntries(wrapped);
}
