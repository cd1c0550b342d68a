// Questions that people answer by a press or a number, across restarts: each choice has a random
// token, valid once, in one chat, for those who may decide. The handler knows the effect of an
// answer. Only what a person sent is ever an answer; nothing that the agent writes comes here.
// Cases T09 and A07.

import type { Channel } from '../../channels/channel.ts';
import { createLanes } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import { type Clock, sleepOrWoken } from '../../lib/time/clock.ts';
import type { AdmittedRole } from '../access/admission.ts';
import type { MessageBus, RowWrite } from '../bus/bus.ts';
import type { Contributed } from '../contributions.ts';
import type { SpendButtons } from '../delivery/undelivered.ts';
import { MediaError, type MediaStore } from '../media/media.ts';
import type { OutboundAttachment } from '../message/attachment.ts';
import { type AccountName, accountName, type MessageId } from '../message/ids.ts';
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
import { questionText } from './rules/question-text.ts';

export type { Answered, Question, QuestionHandler } from './question-rows.ts';

type QuestionsDeps = {
  readonly rows: QuestionRows;
  readonly bus: Pick<MessageBus, 'outbound' | 'send'>;
  readonly clock: Clock;
  readonly log: Logger;
  randomBytes(size: number): Uint8Array;
  /** By kind of subject. */
  handlers(): Readonly<Record<string, QuestionHandler>>;
  /** Removes the buttons of a question that is closed. */
  spendButtons: SpendButtons;
  /** On channels without buttons, the numbers of choices are the answers. */
  channel(account: AccountName): Pick<Channel, 'choices' | 'attachments'> | undefined;
  readonly media: Pick<MediaStore, 'put'>;
};

/** 192 bits. */
const TOKEN_BYTES = 24;
const NUMBER = /^\s*([1-9]\d?)[.)]?\s*$/;
const NO_LONGER = t`This can no longer be answered: it was already decided or has expired.`;
const NOT_YET = t`Your answer is saved, but could not be carried out yet. I try again.`;
const NOT_YOURS = t`This is not yours to decide.`;
const EXPIRED = t`Expired: nobody answered in time.`;
/** Larger than any tool's result. */
const MAX_FILE_BYTES = 50_000_000;
/** Interval of checks for questions settled elsewhere. */
const LOOK_MS = 2000;
/** The outcome of a choice older than this is no longer reported. */
const UNDER_WAY_MS = 86_400_000;

/** `isSaid`: the text is in the chat already, below the question or as a message. */
export type Pressed = { readonly words: string; readonly isSaid: boolean };

export type Questions = ReturnType<typeof createQuestions>;

export function createQuestions(deps: QuestionsDeps) {
  const { rows, bus, clock, log } = deps;
  /** Of two concurrent presses only one may count. */
  const lanes = createLanes();
  let changed = Promise.withResolvers<void>();
  const hasButtons = (chat: ChatRef) => deps.channel(accountName(chat))?.choices !== undefined;
  const newToken = () => Buffer.from(deps.randomBytes(TOKEN_BYTES)).toString('base64url');

  async function send({ id, round, chat, markdown, tail, attachments, choices }: OpenQuestion) {
    const shown = choices.map(({ label, token }) => ({ label, token }));
    const text = tail === undefined ? markdown : `${markdown}\n\n${tail}`;
    const files = attachments === undefined ? {} : { attachments };
    await bus.send({ id: textOf({ id, round }), chat, markdown: text, ...files, choices: shown });
  }

  /** The sentence, with the subject. */
  async function worded(asked: Question, hasFiles: boolean) {
    const { id, markdown, matter, expiresInMs } = asked;
    if (matter === undefined) return { markdown };
    const { file, ...text } = questionText(markdown, matter, expiresInMs, hasFiles);
    if (file === undefined) return text;
    try {
      const content = Buffer.from(file.text);
      const { id: media, sizeBytes } = await deps.media.put(content, { maxBytes: MAX_FILE_BYTES });
      const attachment: OutboundAttachment = {
        ...{ kind: 'document', media, sizeBytes, name: file.name, mimeType: 'text/plain' },
      };
      return { ...text, attachments: [attachment] };
    } catch (error) {
      if (!(error instanceof MediaError)) throw error;
      log.warn('text of a question not stored as a file', { question: id, error });
      return worded(asked, false);
    }
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

  /**
   * Closes the question. `shown`: what is below it from then on; `said`: the text of a message if
   * the platform cannot change texts.
   */
  async function close(open: OpenQuestion, shown: string, said: string, underWay?: string) {
    const now = shown === '' ? '' : `${open.markdown}\n\n${shown}`;
    const buttons = deps.spendButtons(textOf(open), { now, said });
    await rows.open.change(
      open.id,
      (each) => (underWay === undefined ? 'remove' : each && { ...each, underWay }),
      () => buttons.rows,
    );
    buttons.begin();
  }

  async function ask(asked: Question, beside: readonly RowWrite[] = []) {
    const { id, chat, choices, approvers, subject, expiresInMs } = asked;
    const known = await rows.open.get(id);
    if (known !== undefined) return known.chosen === undefined ? send(known) : undefined;
    const askedAt = clock.now();
    const times = { round: 0, askedAt, expiresAt: askedAt + expiresInMs };
    const there = deps.channel(accountName(chat));
    const text = await worded(asked, there === undefined || there.attachments !== undefined);
    return pose({ id, chat, ...text, approvers, subject, ...times }, choices, beside);
  }

  async function carryOut(open: OpenQuestion): Promise<string> {
    const { chosen } = open;
    if (chosen === undefined || open.underWay !== undefined) return NO_LONGER;
    const { handler, rest } = handlerOf(open);
    const at = chosen.isOutside === true ? undefined : open.chat;
    const answered = (await handler?.answer(rest, chosen.action, chosen.by, at)) ?? NO_LONGER;
    const { words, next, isUnderWay } =
      typeof answered === 'string' ? { words: answered } : answered;
    if (next !== undefined) await ask(next);
    await close(open, words, words, isUnderWay === true ? words : undefined);
    log.info('question answered', { question: open.id, action: chosen.action });
    return words;
  }

  function handlerOf({ subject }: OpenQuestion) {
    const colon = subject.indexOf(':');
    const handlers = deps.handlers();
    const kind = subject.slice(0, colon);
    const handler = Object.hasOwn(handlers, kind) ? handlers[kind] : undefined;
    return { handler, rest: subject.slice(colon + 1) };
  }

  /** Records the choice; returns why it does not count, or undefined. */
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

  async function decide(
    token: string,
    chosen: Omit<Chosen, 'action'>,
    isTheirs: IsTheirs,
  ): Promise<Pressed> {
    // An earlier process executed and answered it.
    if (chosen.message !== undefined && (await rows.used.get(chosen.message))?.token === token)
      return { words: '', isSaid: true };
    const known = await byToken(rows, token);
    const isNoted = chosen.message !== undefined && known?.chosen?.message === chosen.message;
    const refusal = isNoted ? undefined : await choose(token, chosen, isTheirs);
    if (refusal !== undefined) return { words: refusal, isSaid: false };
    const open = await byToken(rows, token);
    return open === undefined ? { words: NO_LONGER, isSaid: false } : carriedOut(open);
  }

  async function carriedOut(open: OpenQuestion): Promise<Pressed> {
    try {
      return { words: await carryOut(open), isSaid: true };
    } catch (error) {
      log.error('decision not carried out yet', { question: open.id, error });
      changed.resolve();
      return { words: NOT_YET, isSaid: false };
    }
  }

  async function recover() {
    await expireUsed(rows, clock.now());
    for (const open of await rows.open.list()) if (open.chosen === undefined) await send(open);
  }

  /** Executes a choice that could not be executed earlier. */
  async function finish(open: OpenQuestion) {
    const { chosen } = open;
    const { token } = open.choices.find(({ action }) => action === chosen?.action) ?? {};
    if (chosen?.message !== undefined && token !== undefined) {
      await rows.used.change(chosen.message, () => ({ token }));
    }
    await carryOut(open);
  }

  async function expire(open: OpenQuestion) {
    const { handler, rest } = handlerOf(open);
    const told = await handler?.expired?.(rest);
    const words = typeof told === 'string' ? told : '';
    await close(open, words || EXPIRED, words);
    log.info('question expired', { question: open.id });
  }

  /** In its current state: it may have been answered or asked again meanwhile. */
  async function takeUp(id: string) {
    const open = await rows.open.get(id);
    if (open === undefined || dueAt(open) > clock.now()) return;
    if (open.underWay !== undefined) await rows.open.change(id, () => 'remove');
    else await (open.chosen === undefined ? expire(open) : finish(open));
  }

  /** Something else was written below the question. */
  async function wordsBetween(id: string) {
    await rows.open.change(id, (open) => open && { ...open, isNumbered: false });
  }

  /** Closes questions that were settled by other means than an answer. */
  async function closeSettled(): Promise<void> {
    for (const open of await rows.open.list()) {
      const { handler, rest } = handlerOf(open);
      if (handler?.settled === undefined || open.chosen !== undefined) continue;
      // A question that is still being sent would keep its buttons.
      if ((await bus.outbound(textOf(open)))?.parts.length === 0) continue;
      const words = await handler.settled(rest, open.id);
      if (words !== undefined) await oneByOne(() => withdraw(open.id, words));
    }
  }

  async function withdraw(id: string, outcome: string) {
    const open = await rows.open.get(id);
    if (open !== undefined && open.underWay === undefined) await close(open, outcome, '');
  }

  const oneByOne = <T>(task: () => Promise<T>) => lanes.run('questions', task);

  return {
    /**
     * Sends the question with its choices; durable when resolved, together with these rows if it is
     * new.
     */
    ask: (question: Question, beside?: readonly RowWrite[]) =>
      oneByOne(() => ask(question, beside)),
    /** Asks an open question again, here; its earlier buttons become invalid. */
    askAgain: (id: string, chat: ChatRef): Promise<'asked' | 'closed'> =>
      oneByOne(async () => {
        const open = await rows.open.get(id);
        if (open === undefined || open.chosen !== undefined) return 'closed';
        const buttons = deps.spendButtons(textOf(open));
        await pose({ ...open, chat, round: open.round + 1 }, open.choices, buttons.rows);
        buttons.begin();
        return 'asked';
      }),
    /** Records the choice of a press, so that it is executed whatever happens to this process. */
    async choose({ id, press, sender, chat }: InboundMessage, role: AdmittedRole): Promise<void> {
      if (press === undefined || sender.kind !== 'person') return;
      const isTheirs = (open: OpenQuestion) => mayDecide(open, sender, chat, role);
      await oneByOne(() => choose(press, { by: sender, message: id }, isTheirs));
    },
    /**
     * Executes it: returns the text for the person who pressed; undefined if the message is no
     * press.
     */
    async press(
      { id, press, sender, chat }: InboundMessage,
      role: AdmittedRole,
    ): Promise<Pressed | undefined> {
      if (press === undefined) return undefined;
      if (sender.kind !== 'person') return { words: NOT_YOURS, isSaid: false };
      const isTheirs = (open: OpenQuestion) => mayDecide(open, sender, chat, role);
      return oneByOne(() => decide(press, { by: sender, message: id }, isTheirs));
    },
    /**
     * The token that a number means, as the next text after a question on a channel without
     * buttons; undefined if the message is none. Other text goes to the agent, and from then on
     * numbers too.
     */
    async numbered({ id, chat, text, addressing, group }: InboundMessage) {
      if (addressing !== 'direct' || group !== undefined) return undefined;
      const used = await rows.used.get(id);
      if (used !== undefined) return used.token;
      const open = await numberedIn(rows, chat);
      if (open === undefined || hasButtons(chat)) return undefined;
      const number = Number(NUMBER.exec(text)?.[1] ?? 0);
      const choice = open.choices[number - 1];
      if (choice === undefined) await oneByOne(() => wordsBetween(open.id));
      return choice?.token;
    },
    /**
     * The tokens that a thumb reaction to this text can mean, for a question without buttons; else
     * none.
     */
    async tokensOf(text: MessageId): Promise<readonly string[]> {
      const open = (await rows.open.list()).find((one) => textOf(one) === text);
      if (open === undefined || open.chosen !== undefined || hasButtons(open.chat)) return [];
      const meant = open.choices.filter(({ hasNoThumb }) => hasNoThumb !== true);
      return meant.map(({ token }) => token);
    },
    /** Open questions, oldest first. */
    open: async () => (await rows.open.list()).filter(({ chosen }) => chosen === undefined),
    /**
     * An owner's choice made outside any chat, by a token that only readers of the question know.
     */
    answer: (token: string, owner: PersonSender): Promise<string> =>
      oneByOne(async () => {
        const isTheirs = ({ approvers }: OpenQuestion) => approvers === 'owners';
        return (await decide(token, { by: owner, isOutside: true }, isTheirs)).words;
      }),
    /** It needs no answer any more; `outcome` is added to its text if the platform supports it. */
    withdraw: (id: string, outcome = ''): Promise<void> => oneByOne(() => withdraw(id, outcome)),
    /**
     * The outcome of a choice that was running: shown below the question from then on. `said`: the
     * text of a message if the platform cannot change texts.
     */
    outcome: (id: string, shown: string, said: string): Promise<void> =>
      oneByOne(async () => {
        const open = await rows.open.get(id);
        const { underWay } = open ?? {};
        if (open !== undefined && underWay !== undefined)
          await close(open, `${underWay} ${shown}`, said);
      }),
    /**
     * Until aborted, closes questions that are settled elsewhere: the command line decides in a
     * process of its own.
     */
    async watch(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        await closeSettled();
        await clock.sleep(LOOK_MS, signal).catch(() => undefined);
      }
    },
    /** Resumes what an earlier process left, then closes questions when they expire. */
    async run(signal: AbortSignal): Promise<void> {
      for (const handler of Object.values(deps.handlers())) await handler.takeUp?.();
      await oneByOne(recover);
      while (!signal.aborted) {
        changed = Promise.withResolvers<void>();
        await eachDue(await rows.open.list(), clock.now(), ({ id }) => oneByOne(() => takeUp(id)));
        const nextAt = Math.min(...(await rows.open.list()).map(({ expiresAt }) => expiresAt));
        const waitMs = Math.min(MAX_SLEEP_MS, Math.max(LEAST_SLEEP_MS, nextAt - clock.now()));
        await sleepOrWoken(clock, waitMs, changed.promise, signal);
      }
    },
  };
}

type Choices = Question['choices'];
type Chosen = NonNullable<OpenQuestion['chosen']>;
type IsTheirs = (open: OpenQuestion) => boolean;

// Which questions are due.

/** Timers take no more than 2^31 ms. */
const MAX_SLEEP_MS = 86_400_000;

const LEAST_SLEEP_MS = 1000;

/** When it is due: at once if it was answered and the effect has not run yet. */
function dueAt({ chosen, expiresAt, underWay }: OpenQuestion): number {
  if (underWay !== undefined) return expiresAt + UNDER_WAY_MS;
  return chosen === undefined ? expiresAt : 0;
}

/** A question that fails does not stop the others. @throws its error */
async function eachDue(
  all: readonly OpenQuestion[],
  now: number,
  takeUp: (open: OpenQuestion) => Promise<void>,
): Promise<void> {
  const results = await Promise.allSettled(all.filter((open) => dueAt(open) <= now).map(takeUp));
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

// The handlers of answers to questions, as features contribute them. Their decisions are recorded
// in the audit file, whether they came by a button, a number or the page.

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
