// Questions to people, across restarts: asked, answered or expired, carried out by the handler of their
// kind, and closed. Only what a person sent is ever an answer; nothing that the agent writes comes
// here. Cases T09 and A07.

import type { Channel } from '../../channels/channel.ts';
import { createLanes } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import { type Clock, sleepOrWoken } from '../../lib/time/clock.ts';
import type { MessageBus, RowWrite } from '../bus/bus.ts';
import type { Contributed } from '../contributions.ts';
import type { SpendButtons } from '../delivery/undelivered.ts';
import { MediaError, type MediaStore } from '../media/media.ts';
import type { OutboundAttachment } from '../message/attachment.ts';
import { type AccountName, accountName, type SessionKey } from '../message/ids.ts';
import type { ChatRef } from '../message/message.ts';
import type { AuditLog } from '../observe/telemetry.ts';
import { createAnswers, NO_LONGER, type Pressed } from './answers.ts';
import { createDecisions } from './decisions.ts';
import {
  type Answered,
  type Asked,
  type EndedQuestion,
  type Ending,
  EXPIRED,
  isUndecided,
  type OpenQuestion,
  type Question,
  type QuestionHandler,
  type QuestionRows,
  questionsOf,
  removeOld,
  settle,
  textOf,
  WITHDRAWN,
} from './question-rows.ts';
import { questionText } from './rules/question-text.ts';

export type { Question } from './question-rows.ts';

type QuestionsDeps = {
  readonly rows: QuestionRows;
  readonly bus: Pick<MessageBus, 'outbound' | 'send' | 'sentAs'>;
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
const NOT_YET = t`Your answer is saved, but could not be carried out yet. I try again.`;
const NOBODY = t`Expired: nobody answered in time.`;
/** Larger than any tool's result. */
const MAX_FILE_BYTES = 50_000_000;
/** Interval of checks for questions settled elsewhere. */
const LOOK_MS = 2000;
/** The outcome of a choice older than this is no longer reported. */
const UNDER_WAY_MS = 86_400_000;

export type Questions = ReturnType<typeof createQuestions>;

export function createQuestions(deps: QuestionsDeps) {
  const { rows, bus, clock, log } = deps;
  /** Of two concurrent presses only one may count. */
  const lanes = createLanes();
  let changed = Promise.withResolvers<void>();
  const hasButtons = (chat: ChatRef) => deps.channel(accountName(chat))?.choices !== undefined;
  const newToken = () => Buffer.from(deps.randomBytes(TOKEN_BYTES)).toString('base64url');

  async function send(open: OpenQuestion) {
    if (isInEarlierText(open)) return;
    const { id, round, chat, markdown, tail, attachments, choices } = open;
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
   * the platform cannot change texts; `isUnderWay`: it ends when the outcome is known.
   */
  async function close(
    open: OpenQuestion,
    { shown, said, isUnderWay, ...ending }: Ending & Close,
  ): Promise<void> {
    const now = shown === '' ? '' : `${open.markdown}\n\n${shown}`;
    const buttons = deps.spendButtons(textOf(open), { now, said });
    await (isUnderWay === true
      ? rows.open.change(
          open.id,
          (each) => each && { ...each, underWay: shown },
          () => buttons.rows,
        )
      : end(open, ending, buttons.rows));
    buttons.begin();
  }

  const end = (
    { id, subject, session, payload }: OpenQuestion,
    ending: Ending,
    beside: readonly RowWrite[] = [],
  ) => {
    const ended: EndedQuestion = { id, subject, session, payload, at: clock.now(), ...ending };
    const kept = session === undefined ? [] : [rows.ended.write(id, ended)];
    return rows.open.change(
      id,
      () => 'remove',
      () => [...beside, ...kept],
    );
  };

  async function ask(asked: Question, beside: readonly RowWrite[] = []) {
    const known = await rows.open.get(asked.id);
    if (known !== undefined) return known.chosen === undefined ? send(known) : undefined;
    if ((await rows.ended.get(asked.id)) !== undefined) return;
    await pose({ ...(await askedNow(asked)), round: 0 }, asked.choices, beside);
  }

  async function askedNow(asked: Question) {
    const { id, chat, approvers, orOwners, subject, session, payload, hears, expiresInMs } = asked;
    const askedAt = clock.now();
    const there = deps.channel(accountName(chat));
    const text = await worded(asked, there === undefined || there.attachments !== undefined);
    const own = { id, chat, approvers, orOwners, subject, session, payload, hears };
    return { ...own, ...text, askedAt, expiresAt: askedAt + expiresInMs };
  }

  /** The next question in the place of this one. */
  async function replace(open: OpenQuestion, next: Question, words: string) {
    const now = words === '' ? '' : `${open.markdown}\n\n${words}`;
    const buttons = deps.spendButtons(textOf(open), { now, said: words });
    const round = isInEarlierText(next) ? open.round : open.round + 1;
    await pose({ ...(await askedNow(next)), round }, next.choices, buttons.rows);
    buttons.begin();
  }

  async function carryOut(open: OpenQuestion): Promise<string> {
    const { chosen } = open;
    if (chosen === undefined || open.underWay !== undefined) return NO_LONGER;
    const { action, by, said } = chosen;
    const { handler, asked } = handlerOf(open);
    const at = chosen.isOutside === true ? undefined : open.chat;
    const answered = (await handler?.answer(asked, { action, by, at, said })) ?? NO_LONGER;
    const words = await answeredWith(open, answered, action);
    log.info('question answered', { question: open.id, action });
    return words;
  }

  /** Shows the text, asks what comes next, and closes the question unless that takes its place. */
  async function answeredWith(open: OpenQuestion, answered: Answered, outcome: string) {
    const how = typeof answered === 'string' ? { words: answered } : answered;
    const { words, next, ...ending } = how;
    if (next?.id === open.id) await replace(open, next, words);
    else {
      if (next !== undefined) await ask(next);
      await close(open, { outcome, ...ending, shown: words, said: words });
    }
    return words;
  }

  function handlerOf(open: OpenQuestion) {
    const { subject } = open;
    const colon = subject.indexOf(':');
    const handlers = deps.handlers();
    const kind = subject.slice(0, colon);
    const handler = Object.hasOwn(handlers, kind) ? handlers[kind] : undefined;
    const asked: Asked = { ...open, rest: subject.slice(colon + 1) };
    return { handler, asked };
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
    for (const open of (await rows.open.list()).filter(isUndecided)) await send(open);
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
    const { handler, asked } = handlerOf(open);
    const told = (await handler?.expired?.(asked)) ?? { words: '' };
    const { words, next: _next, ...ending } = typeof told === 'string' ? { words: told } : told;
    const shown = told === '' ? '' : words || NOBODY;
    await close(open, { outcome: EXPIRED, ...ending, shown, said: words });
    log.info('question expired', { question: open.id });
  }

  /** In its current state: it may have been answered or asked again meanwhile. */
  async function takeUp(id: string) {
    const open = await rows.open.get(id);
    if (open === undefined || dueAt(open) > clock.now()) return;
    const { chosen, underWay, withdrawn } = open;
    if (withdrawn !== undefined) {
      // A question that is still being sent would keep its buttons.
      if ((await bus.outbound(textOf(open)))?.parts.length === 0) return;
      await close(open, { outcome: WITHDRAWN, shown: withdrawn, said: '' });
    } else if (underWay !== undefined) await end(open, { outcome: EXPIRED });
    else await (chosen === undefined ? expire(open) : finish(open));
  }

  /** Finds questions that were settled by other means than an answer, also by another process. */
  async function lookForSettled(): Promise<void> {
    for (const open of await rows.open.list()) {
      const { handler, asked } = handlerOf(open);
      const words = isUndecided(open) ? await handler?.settled?.(asked) : undefined;
      if (words !== undefined) await settle(rows, open.id, words);
      if (words !== undefined || open.withdrawn !== undefined) changed.resolve();
    }
  }

  async function withdraw(id: string, shown: string, ending: Partial<Ending> = {}) {
    const open = await rows.open.get(id);
    if (open === undefined || open.chosen !== undefined) return false;
    await close(open, { outcome: WITHDRAWN, ...ending, shown, said: '' });
    return true;
  }

  const oneByOne = <T>(task: () => Promise<T>) => lanes.run('questions', task);

  return {
    ...createDecisions(rows, clock),
    ...createAnswers({ rows, bus, clock, log, hasButtons, oneByOne, carriedOut }),
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
    removeOld: () => removeOld(rows, clock.now()),
    /** Open questions that a choice answers, oldest first. */
    open: async () =>
      (await rows.open.list()).filter((each) => isUndecided(each) && each.choices.length > 0),
    /**
     * It needs no answer any more; `shown` is added to its text if the platform supports it. Returns
     * whether it was open.
     */
    withdraw: (id: string, shown = '', ending?: Partial<Ending>): Promise<boolean> =>
      oneByOne(() => withdraw(id, shown, ending)),
    /** Withdraws the undecided questions of a kind in a conversation. */
    async drop(kind: string, session: SessionKey, shown = ''): Promise<void> {
      for (const each of await questionsOf(rows.open, session))
        if (each.subject.startsWith(`${kind}:`)) await oneByOne(() => withdraw(each.id, shown));
    },
    /**
     * The outcome of a choice that was running: shown below the question from then on. `said`: the
     * text of a message if the platform cannot change texts.
     */
    outcome: (id: string, shown: string, said: string): Promise<void> =>
      oneByOne(async () => {
        const open = await rows.open.get(id);
        const { underWay } = open ?? {};
        const outcome = open?.chosen?.action ?? '';
        if (open !== undefined && underWay !== undefined)
          await close(open, { outcome, shown: `${underWay} ${shown}`, said });
      }),
    /**
     * Until aborted, closes questions that are settled elsewhere: the command line decides in a
     * process of its own.
     */
    async watch(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        await lookForSettled();
        await clock.sleep(LOOK_MS, signal).catch(() => undefined);
      }
    },
    /** Resumes what an earlier process left, then closes questions when they expire. */
    async run(signal: AbortSignal): Promise<void> {
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

type Close = { readonly shown: string; readonly said: string; readonly isUnderWay?: true };

/** The text that it replaced says what to write; a question of the agent may have no choices, too. */
const isInEarlierText = ({ choices, hears }: Pick<Question, 'choices' | 'hears'>) =>
  choices.length === 0 && hears !== undefined;

type Choices = Question['choices'];

// Which questions are due.

/** Timers take no more than 2^31 ms. */
const MAX_SLEEP_MS = 86_400_000;

const LEAST_SLEEP_MS = 1000;

/** When it is due: at once if it was answered and the effect has not run yet. */
function dueAt({ chosen, expiresAt, underWay, withdrawn }: OpenQuestion): number {
  if (withdrawn !== undefined) return 0;
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

/** By the kind of the subject, as contributed so far. */
export function auditedHandlers(contributed: Pick<Contributed, 'answers'>, audit: AuditLog) {
  const wrapped = [...contributed.answers()].map(([subject, { handler, audited: kind }]) => {
    if (kind === undefined) return [subject, handler] as const;
    const answer: QuestionHandler['answer'] = async (asked, choice) => {
      const answered = await handler.answer(asked, choice);
      const { action, by } = choice;
      audit.note({ kind, fields: { subject, about: asked.rest, action, by: by.id } });
      return answered;
    };
    return [subject, { ...handler, answer }] as const;
  });
  return Object.fromEntries(wrapped);
}
