// Enforces the limits on sent mail: checked before a mail is answered, so that no paid answer is
// held back, and before other mails are sent. Held mails are released in order.

import type { MessageId } from '../../kernel/message/ids.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { spanWords } from '../../kernel/message/message-limits.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import type { Admission, ChannelHost } from '../channel.ts';
import type { HeldMail, MailRegister } from './mail-register.ts';
import {
  type MailLimits,
  pacedBy,
  type Refusal,
  type ReplyRequest,
  refusalOf,
  type SentReply,
  type ThreadPace,
  type Wait,
  waitOf,
} from './rules/budget.ts';

/** How soon a changed setting applies to held mails. */
const RECHECK_MS = 30_000;
/** Pause between two released mails of a person. */
const STEP_MS = 500;
/** A held mail that does not ask again this long after its time was withdrawn. */
const GONE_MS = 10 * 60_000;
/** A turn that has sent no answer by then sends none. */
const TURN_MS = 60 * 60_000;
/** Pause between two notices about one person. */
const TELL_MS = 60 * 60_000;

type ReplyLimitsDeps = {
  readonly host: ChannelHost;
  readonly register: MailRegister;
  readonly limits: MailLimits;
  /** Path of the settings of the mailbox. */
  readonly path: string;
};

type Held = HeldMail & { readonly dueAt: number };

export type Sending = {
  /** It answers no mail. */
  readonly isLetter: boolean;
  /** An answer was admitted before the model call: it does not wait. A copy: now or never. */
  readonly as: 'answer' | 'own' | 'copy';
};

type Waiting = Extract<Admission, { readonly kind: 'wait' }>;

/** `reply` goes into the log. */
export type Claim =
  | { readonly kind: 'send'; readonly reply: SentReply }
  | Exclude<Admission, { readonly kind: 'answer' }>;

export class ReplyLimits {
  readonly #deps: ReplyLimitsDeps;
  /** Permitted but not yet in the log: counted, so that concurrent sends keep the limits. */
  readonly #underWay = new Set<SentReply>();
  /** In order of release. */
  readonly #held: Map<MessageId, Held>;
  readonly #toldAt = new Map<string, number>();

  private constructor(deps: ReplyLimitsDeps, held: readonly HeldMail[]) {
    this.#deps = deps;
    const dueAt = deps.host.clock.now();
    this.#held = new Map(held.map((mail) => [mail.id, { ...mail, dueAt }]));
  }

  static async open(deps: ReplyLimitsDeps): Promise<ReplyLimits> {
    return new ReplyLimits(deps, await deps.register.held());
  }

  /** What waits and why; undefined if nothing does. */
  waiting(): string | undefined {
    this.#forgetWithdrawn();
    const { size } = this.#held;
    if (size === 0) return undefined;
    const reasons = new Set([...this.#held.values()].map(({ reason }) => reason));
    const waiting = ngettext(msgid`${size} mail waits`, `${size} mails wait`, size);
    return `${waiting}: ${[...reasons].join('; ')}`;
  }

  /** Whether a mail is answered; asked before the model call. A begun turn does not wait. */
  async admit(message: InboundMessage, hasBegun: boolean): Promise<Admission> {
    const { register, host } = this.#deps;
    const { thread, chat: recipient } = message.chat;
    if (thread === undefined || message.sender.kind !== 'person') return { kind: 'answer' };
    const ended = await this.#paced(message, thread);
    if (ended.endedBy !== undefined) return this.#endedThread(message, ended.endedBy);
    const at = host.clock.now();
    const reply = { at, recipient, thread, textHash: '' };
    const request = { recipient, thread, ...(await this.#known(thread)) };
    const [sent, bounces] = await Promise.all([register.replies(), register.bounces()]);
    this.answered(thread);
    const counted = this.#counted(sent);
    const refusal = refusalOf(request, counted, bounces, this.#deps.limits, at);
    if (refusal !== undefined) {
      this.#tellRefused(recipient, refusal);
      return { kind: 'refuse', reason: refusal.reason };
    }
    const wait = hasBegun ? undefined : this.#hold(message.id, request, counted, at);
    if (wait !== undefined) return wait;
    this.#underWay.add(reply);
    return { kind: 'answer' };
  }

  /** Judges and counts in one step, so that no concurrent send comes in between. */
  async claim(id: MessageId, reply: SentReply, how: Sending): Promise<Claim> {
    const { register, limits } = this.#deps;
    const { recipient, thread, at } = reply;
    const known = await this.#known(thread);
    const to = how.isLetter ? 'letter' : known.to;
    const request = { ...reply, lastHumanAt: known.lastHumanAt, to };
    const [sent, bounces] = await Promise.all([register.replies(), register.bounces()]);
    const counted = this.#counted(sent, thread);
    const refusal = refusalOf(request, counted, bounces, limits, at);
    if (refusal !== undefined) {
      this.#tellRefused(recipient, refusal);
      return { kind: 'refuse', reason: refusal.reason };
    }
    const limit = how.as === 'copy' ? waitOf(request, counted, limits, at) : undefined;
    if (limit !== undefined) return { kind: 'refuse', reason: limit.reason };
    const wait = how.as === 'own' ? this.#hold(id, request, counted, at) : undefined;
    if (wait !== undefined) return wait;
    const mine = to === 'unproven' ? { ...reply, isUnproven: true as const } : reply;
    this.#underWay.add(mine);
    return { kind: 'send', reply: mine };
  }

  /** Called when the mail is in the log or was not sent. */
  release(replies: Iterable<SentReply>): void {
    for (const one of replies) this.#underWay.delete(one);
  }

  /** The answer of a turn is in the log. */
  answered(thread: string): void {
    for (const one of this.#underWay) if (isOfTurn(one, thread)) this.#underWay.delete(one);
  }

  /** `besides`: the thread whose turn is not counted. */
  #counted(sent: readonly SentReply[], besides?: string): readonly SentReply[] {
    const now = this.#deps.host.clock.now();
    for (const one of this.#underWay) if (now - one.at > TURN_MS) this.#underWay.delete(one);
    return [...sent, ...this.#underWay].filter(
      (one) => besides === undefined || !isOfTurn(one, besides),
    );
  }

  async #known(thread: string): Promise<Pick<ReplyRequest, 'to' | 'lastHumanAt'>> {
    const known = await this.#deps.register.thread(thread);
    const isProven = known !== undefined && known.level !== 'unverified';
    return { to: isProven ? 'proven' : 'unproven', lastHumanAt: known?.lastHumanAt ?? 0 };
  }

  #forgetWithdrawn(): void {
    const now = this.#deps.host.clock.now();
    for (const { id, dueAt } of this.#held.values()) if (now - dueAt > GONE_MS) this.#forget(id);
  }

  #forget(id: MessageId): void {
    if (this.#held.delete(id)) void this.#noted(this.#deps.register.noteReleased(id));
  }

  /** Holds the mail if a limit applies or an earlier mail of the same person waits. */
  #hold(
    id: MessageId,
    request: ReplyRequest,
    counted: readonly SentReply[],
    now: number,
  ): Waiting | undefined {
    const { register, limits, host } = this.#deps;
    const { recipient } = request;
    this.#forgetWithdrawn();
    const known = this.#held.get(id);
    const earlier = this.#lastBefore(id, recipient);
    const wait = waitOf(request, counted, limits, now);
    if (wait === undefined && earlier === undefined) {
      this.#forget(id);
      return undefined;
    }
    const reason = wait?.reason ?? earlier?.reason ?? '';
    const soonest = now + Math.min(wait?.delayMs ?? 0, RECHECK_MS);
    const dueAt =
      earlier === undefined ? soonest : Math.max(soonest, earlier.dueAt + STEP_MS, now + STEP_MS);
    const since = known?.since ?? now;
    this.#held.set(id, { id, recipient, reason, since, dueAt });
    if (known === undefined) {
      void this.#noted(register.noteHeld({ id, recipient, reason, since }));
      host.log.warn('mail held by a limit', { messageId: id, reason });
      if (earlier === undefined && wait !== undefined) this.#tellHeld(recipient, wait);
    }
    return { kind: 'wait', until: dueAt, reason: t`held: ${reason}` };
  }

  #lastBefore(id: MessageId, recipient: string): Held | undefined {
    let last: Held | undefined;
    for (const one of this.#held.values()) {
      if (one.id === id) return last;
      if (one.recipient === recipient) last = one;
    }
    return last;
  }

  /** Rows of held mails serve display and order; without the rows the mails are only released. */
  async #noted(write: Promise<void>): Promise<void> {
    await write.catch((error) => this.#deps.host.log.warn('held mail not stored', { error }));
  }

  /** Counted once for each mail. */
  async #paced(message: InboundMessage, thread: string): Promise<ThreadPace> {
    const { register, limits } = this.#deps;
    const before = await register.pace(thread);
    const answers = this.#counted(await register.replies(), thread)
      .filter((reply) => reply.thread === thread && reply.recipient === message.chat.chat)
      .map(({ at }) => at);
    const pace = pacedBy(before, message, answers, limits);
    if (pace !== before) await register.notePace(thread, pace);
    return pace;
  }

  #endedThread(message: InboundMessage, endedBy: string): Admission {
    const { limits, host } = this.#deps;
    const { chat: recipient } = message.chat;
    const reason = t`the thread was ended: two machines answering each other`;
    if (endedBy !== message.id) return { kind: 'refuse', reason };
    const why =
      t`${limits.loopMails} mails in a row came within ${spanWords(limits.loopSecs * 1000)} of my ` +
      t`answers, as when two machines answer each other`;
    host.alert(
      t`A thread with ${recipient} has ended for good: ${why}. Other threads with them continue ` +
        t`(${this.#deps.path}.limits.loopMails, loopSecs).`,
    );
    const notice =
      t`I am ending this thread: ${why}. I no longer answer in it. If you are a person, write me a ` +
      t`new mail that is not a reply.`;
    return { kind: 'refuse', reason, notice };
  }

  #tellHeld(recipient: string, { reason, key, delayMs }: Wait): void {
    const { host, path } = this.#deps;
    const now = host.clock.now();
    for (const [told, at] of this.#toldAt) if (now - at > TELL_MS) this.#toldAt.delete(told);
    if (this.#toldAt.has(recipient)) return;
    this.#toldAt.set(recipient, now);
    host.alert(
      t`Mails of ${recipient} wait, and no model was asked yet: there are no more than ${reason} ` +
        t`(${path}.limits.${key}). They are answered in their order, the first in ${spanWords(delayMs)}; ` +
        t`a higher limit counts within a minute.`,
    );
  }

  #tellRefused(recipient: string, { reason, alert }: Refusal): void {
    if (alert) this.#deps.host.alert(t`${recipient} is not answered by mail: ${reason}.`);
  }
}

/** Represents the answer of a running turn. */
const isOfTurn = ({ thread, textHash }: SentReply, wanted: string) =>
  thread === wanted && textHash === '';
