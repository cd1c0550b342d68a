// Performs the next step of each bridged mail: shows it, also again after a while, or archives it. At most a number of mails are shown per hour; the others are
// counted and reported in one line. Every step is idempotent.

import { ArchiveError } from '../../channels/channel.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { messageId } from '../../kernel/message/ids.ts';
import { type ChatRef, sessionKeyOf } from '../../kernel/message/message.ts';
import { LIFETIME_MS } from '../../kernel/questions/question-rows.ts';
import type { Question, Questions } from '../../kernel/questions/questions.ts';
import { jsonRow, number, rowShape } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { sleepOrWoken } from '../../lib/time/clock.ts';
import type { BridgeSummaries } from './bridge-summaries.ts';
import {
  type BridgedMail,
  type BridgeRows,
  changeMail,
  expireDone,
  type MailAnswer,
} from './bridge-summaries.ts';
import {
  DRAFT_CHOICES,
  MAIL_CHOICES,
  mailDraftText,
  mailNoteText,
  moreMailsText,
  subjectOf,
} from './rules/bridge.ts';

/** The subject kind of the questions. */
export const MAIL_SUBJECT = 'mail';
const MAX_SHOWN = 20;
const WINDOW_MS = 3_600_000;
/** Timers take at most 2^31 ms. */
const MAX_SLEEP_MS = 86_400_000;
const COUNT_KEY = 'count';

type BridgeServiceDeps = Pick<Kernel, 'clock' | 'log'> & {
  readonly rows: BridgeRows;
  readonly state: KeyValueStore;
  readonly bus: Pick<MessageBus, 'send'>;
  readonly questions: Pick<Questions, 'ask'>;
  readonly summaries: BridgeSummaries;
  ownerChat(): Promise<ChatRef>;
  /** Takes the mail out of the inbox; one that is gone already is no error. */
  archive(mail: BridgedMail, signal: AbortSignal): Promise<void>;
};

/** In the hour since `since`: number of mails shown, and of mails over the limit. */
type Count = { readonly since: number; readonly shown: number; readonly more: number };

const COUNT = rowShape<Count>({ since: number, shown: number, more: number });

export class BridgeService {
  readonly #deps: BridgeServiceDeps;
  #changed = Promise.withResolvers<void>();

  constructor(deps: BridgeServiceDeps) {
    this.#deps = deps;
  }

  /** Wakes the service. */
  changed(): void {
    this.#changed.resolve();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { rows, clock } = this.#deps;
    while (!signal.aborted) {
      this.#changed = Promise.withResolvers<void>();
      await this.#tellMore();
      const failures = await this.#attendAll(await rows.mails.list(), signal);
      if (signal.aborted) return;
      if (failures.length > 0) throw failures[0];
      const waitMs = Math.min(MAX_SLEEP_MS, Math.max(0, (await this.#dueAt()) - clock.now()));
      await sleepOrWoken(clock, waitMs, this.#changed.promise, signal);
    }
  }

  /** A mail that cannot be processed now does not delay the others. */
  async #attendAll(mails: readonly BridgedMail[], signal: AbortSignal) {
    const failures: unknown[] = [];
    for (const mail of mails) {
      if (signal.aborted) break;
      await this.#attend(mail, signal).catch((error: unknown) => failures.push(error));
    }
    return failures;
  }

  async #attend(mail: BridgedMail, signal: AbortSignal): Promise<void> {
    const { stage } = mail;
    const now = this.#deps.clock.now();
    switch (stage.kind) {
      case 'waiting':
        return this.#show(mail, signal);
      case 'snoozed':
        if (stage.until <= now) await this.#show(mail, signal);
        return;
      case 'shown':
        return;
      case 'archiving':
        return this.#archive(mail, stage.chat, signal);
    }
  }

  async #show(mail: BridgedMail, signal: AbortSignal): Promise<void> {
    const { rows, ownerChat, summaries, questions } = this.#deps;
    // Counted before the summary, so that no model is called for mails over the limit.
    const isCounted = mail.round > 0 || (mail.summary !== undefined && mail.summary.kind !== 'due');
    if (!isCounted && !(await this.#mayShow(mail))) return;
    if (mail.summary?.kind === 'due' || mail.summary?.kind === 'wanted') {
      return summaries.advance(mail, signal);
    }
    const chat = await ownerChat();
    const shown = { ...mail, round: mail.round + 1, stage: { kind: 'shown', chat } as const };
    await questions.ask(mailQuestion(shown, chat), [rows.mails.write(mail.id, shown)]);
  }

  /** Counts a mail; one over the limit is thereby done. */
  async #mayShow(mail: BridgedMail): Promise<boolean> {
    const { rows, state, clock } = this.#deps;
    const now = clock.now();
    const stored = await this.#storedCount();
    const isOver = stored === undefined || now - stored.since >= WINDOW_MS;
    const count = isOver ? { since: now, shown: 0, more: 0 } : stored;
    const mayShow = count.shown < MAX_SHOWN;
    const next = mayShow
      ? { ...count, shown: count.shown + 1 }
      : { ...count, more: count.more + 1 };
    if (!mayShow) await changeMail(rows, mail.id, () => 'done');
    await state.set(COUNT_KEY, JSON.stringify(next));
    return mayShow;
  }

  async #storedCount(): Promise<Count | undefined> {
    return jsonRow(await this.#deps.state.get(COUNT_KEY), COUNT);
  }

  /** Runs once the hour is over. */
  async #tellMore(): Promise<void> {
    const { state, clock, bus, rows, ownerChat } = this.#deps;
    const stored = await this.#storedCount();
    if (stored === undefined) return;
    const { since, more } = stored;
    if (clock.now() - since < WINDOW_MS) return;
    if (more > 0) {
      const id = messageId(`bridge/more/${since}`);
      await bus.send({ id, chat: await ownerChat(), markdown: moreMailsText(more) });
    }
    await state.delete(COUNT_KEY);
    await expireDone(rows, clock.now());
  }

  async #dueAt(): Promise<number> {
    const mails = await this.#deps.rows.mails.list();
    const due = mails.flatMap(({ stage }) => ('until' in stage ? [stage.until] : []));
    const counted = await this.#storedCount();
    return Math.min(...due, (counted?.since ?? Number.POSITIVE_INFINITY) + WINDOW_MS);
  }

  async #archive(mail: BridgedMail, chat: ChatRef, signal: AbortSignal): Promise<void> {
    const { rows, bus, log, archive } = this.#deps;
    try {
      await archive(mail, signal);
    } catch (error) {
      if (!(error instanceof ArchiveError)) throw error;
      if (signal.aborted) return;
      log.warn('mail not archived', { messageId: mail.id, code: error.code, error });
      const id = messageId(`bridge/${mail.id}/kept`);
      const markdown = t`I could not archive ${subjectOf(mail.note)}: ${error.reason}.`;
      await bus.send({ id, chat, markdown });
    }
    await changeMail(rows, mail.id, () => 'done');
  }
}

export function mailQuestion(mail: BridgedMail, chat: ChatRef): Question {
  return {
    id: `mail/${mail.id}/${mail.round}`,
    chat,
    markdown: mailNoteText(mail.note, mail.summary),
    choices: MAIL_CHOICES,
    approvers: 'owners',
    subject: `${MAIL_SUBJECT}:${mail.id}`,
    expiresInMs: LIFETIME_MS.mail,
  };
}

/** About the answer that an owner wrote; it takes the place of the question about the mail. */
export function answerQuestion(mail: BridgedMail, chat: ChatRef, answer: MailAnswer): Question {
  return {
    ...mailQuestion(mail, chat),
    ...{ session: sessionKeyOf(chat), payload: answer },
    markdown: mailDraftText(mail.note, answer.text, answer.hasFiles),
    choices: DRAFT_CHOICES,
    expiresInMs: LIFETIME_MS.mailAnswer,
  };
}

/** Waits for the text of the answer, below what was shown. */
export function textQuestion(shown: Question, answer: MailAnswer): Question {
  const own = { session: sessionKeyOf(shown.chat), payload: answer, choices: [] };
  return { ...shown, ...own, hears: 'any', expiresInMs: LIFETIME_MS.mailText };
}
