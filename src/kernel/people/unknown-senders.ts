// Unknown senders: their messages until somebody decides about them, on disk, bounded per person
// and in total, deleted after a week; and the decisions, the same from the owner's chat, below the
// notice about them, from the page and from the command line, with or without a gateway beside it.

import { createLanes } from '../../lib/async.ts';
import { flag, kind, number, place, rowShape, text, texts } from '../../lib/json/json.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { type AdmittedRole, parseCommand, type Role } from '../access/admission.ts';
import { textWithAttachments } from '../message/attachment.ts';
import { type InboundMessage, idsOf, type PersonSender } from '../message/message.ts';
import { firstWords, shortName } from '../message/untrusted.ts';
import { type Asked, type Choice, LIFETIME_MS } from '../questions/question-rows.ts';
import { jsonRows, type OpenRows } from '../rows.ts';
import { hashOf, type Pairing, randomCode } from './pairing.ts';
import { PEOPLE_SCOPE } from './people-rows.ts';

const MAX_UNKNOWN_SENDERS = 100;
const MAX_HELD_MESSAGES = 10;
/** Of one person's messages together. */
const MAX_HELD_CHARS = 50_000;
export const UNKNOWN_SENDER_LIFETIME_MS = LIFETIME_MS.unknownSender;
/** Digits of an epoch time in a key, so that keys sort by time. */
const TIME_DIGITS = 15;
const COUNT_DIGITS = 2;

export type UnknownSender = {
  readonly channel: string;
  readonly userId: string;
  /** Every id they used. */
  readonly ids: readonly string[];
  readonly name: string;
  readonly excerpt: string;
  /** The id of the first message. */
  readonly firstId: string;
  /** Epoch milliseconds of the first and of the newest message. */
  readonly at: number;
  readonly lastAt: number;
  readonly heldChars: number;
  readonly heldMessages: number;
  /** Number of messages beyond what is kept of one person. */
  readonly lostMessages: number;
  readonly announced: boolean;
  /** Of the code they were given. */
  readonly code?: { readonly hash: string; readonly expiresAt: number };
};

const UNKNOWN_SENDER = rowShape<UnknownSender>({
  ...{ channel: text, userId: text, ids: texts, name: text, excerpt: text, firstId: text },
  ...{ at: number, lastAt: number, heldChars: number, heldMessages: number },
  ...{ lostMessages: number, announced: flag },
});
const HELD_MESSAGE = rowShape<InboundMessage>({
  ...{ id: text, chat: place, sender: kind, addressing: text, text, sentAt: number },
  receivedAt: number,
});

type UnknownSendersDeps = { readonly rows: OpenRows; readonly clock: Clock };

type HeldMessage = { readonly id: string; readonly message: InboundMessage };

export type UnknownSenders = ReturnType<typeof createUnknownSenders>;

export function createUnknownSenders({ rows, clock }: UnknownSendersDeps) {
  const strangers = rows({ ...jsonRows(UNKNOWN_SENDER), scope: PEOPLE_SCOPE, prefix: 'stranger:' });
  const messages = rows({ ...jsonRows(HELD_MESSAGE), scope: PEOPLE_SCOPE, prefix: 'held:' });
  /** Concurrent messages must not overwrite each other's count. */
  const lanes = createLanes();
  const oneByOne = <T>(task: () => Promise<T>) => lanes.run('strangers', task);

  async function list(): Promise<readonly UnknownSender[]> {
    const all = await strangers.list();
    return all.filter(({ lastAt }) => clock.now() - lastAt < UNKNOWN_SENDER_LIFETIME_MS);
  }

  async function known(
    channel: string,
    ids: readonly string[],
  ): Promise<UnknownSender | undefined> {
    return (await list()).find((one) => one.channel === channel && sharesId(one, ids));
  }

  async function hold(message: InboundMessage, sender: PersonSender) {
    const { channel } = message.chat;
    const ids = idsOf(sender);
    const before = (await known(channel, ids)) ?? newcomer(message, sender, clock.now());
    if (before.lastAt === 0 && (await list()).length >= MAX_UNKNOWN_SENDERS) return undefined;
    const kept = await messages.entries(heldPrefix(before));
    if (kept.some(([id]) => id.endsWith(`:${message.id}`))) return before;
    const chars = JSON.stringify(message).length;
    const fits = kept.length < MAX_HELD_MESSAGES && before.heldChars + chars <= MAX_HELD_CHARS;
    const id = `${heldPrefix(before)}${placeOf(clock.now(), kept)}:${message.id}`;
    return strangers.change(
      unknownSenderId(before),
      (now = before) => ({
        ...now,
        ids: [...new Set([...now.ids, ...ids])],
        lastAt: clock.now(),
        heldChars: now.heldChars + (fits ? chars : 0),
        heldMessages: kept.length + (fits ? 1 : 0),
        lostMessages: now.lostMessages + (fits ? 0 : 1),
      }),
      () => (fits ? [messages.write(id, message)] : []),
    );
  }

  /** Their messages, oldest first; each with the id it is stored under. */
  async function held(unknownSender: UnknownSender): Promise<readonly HeldMessage[]> {
    const found = await messages.entries(heldPrefix(unknownSender));
    return found.map(([id, message]) => ({ id, message }));
  }

  return {
    /** Stores the message; undefined if too many unknown senders wait already. */
    hold: (message: InboundMessage, sender: PersonSender) => oneByOne(() => hold(message, sender)),
    list,
    /** Changes the record of a sender who still waits. */
    async note(
      unknownSender: UnknownSender,
      change: Pick<Partial<UnknownSender>, 'announced' | 'code'>,
    ) {
      await strangers.change(
        unknownSenderId(unknownSender),
        (stored) => stored && { ...stored, ...change },
      );
    },
    held,
    /** Deletes these messages, and the sender once none of theirs is held. */
    forget: (unknownSender: UnknownSender, over: readonly HeldMessage[]) =>
      oneByOne(async () => {
        const ids = new Set(over.map(({ id }) => id));
        const isAll = (await held(unknownSender)).every(({ id }) => ids.has(id));
        await strangers.change(
          unknownSenderId(unknownSender),
          (stored) => (isAll ? 'remove' : stored && { ...stored }),
          () => [...ids].map((id) => messages.write(id, undefined)),
        );
      }),
    /** Deletes what is too old; returns how many rows. */
    async expire(): Promise<number> {
      const before = clock.now() - UNKNOWN_SENDER_LIFETIME_MS;
      return (await strangers.expire(before)) + (await messages.expire(before));
    },
  };
}

function newcomer(message: InboundMessage, sender: PersonSender, at: number): UnknownSender {
  return {
    channel: message.chat.channel,
    userId: sender.id,
    ids: [],
    name: shortName(sender.name),
    excerpt: firstWords(textWithAttachments(message)),
    firstId: message.id,
    at,
    lastAt: 0,
    heldChars: 0,
    heldMessages: 0,
    lostMessages: 0,
    announced: false,
  };
}

function sharesId(unknownSender: Pick<UnknownSender, 'ids'>, ids: readonly string[]): boolean {
  return ids.some((id) => unknownSender.ids.includes(id));
}

/** Sorts after what is stored already, also within a millisecond. */
function placeOf(now: number, kept: readonly unknown[]): string {
  return `${now}`.padStart(TIME_DIGITS, '0') + `${kept.length}`.padStart(COUNT_DIGITS, '0');
}

export const unknownSenderId = ({ channel, userId }: Pick<UnknownSender, 'channel' | 'userId'>) =>
  `${channel}:${userId}`;
const heldPrefix = ({ channel, userId }: UnknownSender) =>
  `${channel}:${encodeURIComponent(userId)}:`;

// The code that an unknown sender is given to pass to the owner: once per person, few open at a
// time, short-lived, stored as a hash. It grants nothing by itself; an owner must enter it.

export const UNKNOWN_SENDER_CODE_MINUTES = 30;
const CODE_LIFETIME_MS = UNKNOWN_SENDER_CODE_MINUTES * 60_000;
/**
 * Per channel; with the lifetime this bounds how many codes a flood of unknown senders gets in an
 * hour.
 */
const MAX_OPEN_CODES = 3;

export type UnknownSenderCodesDeps = {
  readonly strangers: UnknownSenders;
  readonly now: () => number;
  randomBytes(size: number): Uint8Array;
};

/** A code for the sender; undefined if they had one already, or too many are open. */
export async function issueUnknownSenderCode(
  unknownSender: UnknownSender,
  { strangers, now, randomBytes }: UnknownSenderCodesDeps,
): Promise<string | undefined> {
  if (unknownSender.code !== undefined) return undefined;
  const open = (await strangers.list()).filter(
    ({ channel, code }) => channel === unknownSender.channel && isOpen(code, now()),
  );
  if (open.length >= MAX_OPEN_CODES) return undefined;
  const code = randomCode(randomBytes);
  await strangers.note(unknownSender, {
    code: { hash: hashOf(code), expiresAt: now() + CODE_LIFETIME_MS },
  });
  return code;
}

function holdsCode({ code }: UnknownSender, typed: string, now: number): boolean {
  return isOpen(code, now) && code?.hash === hashOf(typed.toUpperCase());
}

const isOpen = (code: UnknownSender['code'], now: number) =>
  code !== undefined && code.expiresAt > now;

// Decisions about people: let in, answered once, blocked.

const NOTHING_LEFT = t`nothing is left to do here.`;

/** A sender who waits, or a person with an earlier decision. */
export type Subject = {
  readonly channel: string;
  readonly userId: string;
  readonly ids: readonly string[];
  readonly name: string;
  readonly role: Role | undefined;
  readonly waiting: UnknownSender | undefined;
};

export type DecisionsDeps = {
  readonly pairing: Pairing;
  readonly strangers: UnknownSenders;
  readonly now: () => number;
  /** Marks the question about a sender as decided, with the text below it; also by the CLI. */
  settled(question: string, words: string): Promise<unknown>;
  /** Queues held messages; one that is queued already changes nothing. */
  release(messages: readonly InboundMessage[]): Promise<void>;
};

export type Decisions = ReturnType<typeof createDecisions>;

/** Each step may be repeated after a crash. */
export function createDecisions({ pairing, strangers, now, release, settled }: DecisionsDeps) {
  const settle = (unknownSender: UnknownSender, words: string) =>
    settled(unknownSenderQuestion(unknownSender), decidedElsewhere(words));

  /**
   * Queues their messages without letting them in; returns how many messages. No command is carried
   * out later; `/start` brings the greeting, unless they have it.
   */
  async function answer(
    unknownSender: UnknownSender,
    { words = NOTHING_LEFT, isGreeted = false } = {},
  ): Promise<number> {
    await settle(unknownSender, words);
    const held = await strangers.held(unknownSender);
    const meant = held
      .map(({ message }) => message)
      .filter(({ text }) => {
        const command = parseCommand(text);
        return command === undefined || (command.name === 'start' && !isGreeted);
      });
    if (meant.length > 0) await release(meant);
    await strangers.forget(unknownSender, held);
    return meant.length;
  }

  /** Leaves their messages unanswered to the owner; decides nothing about them. */
  async function drop(unknownSender: UnknownSender, words = NOTHING_LEFT): Promise<void> {
    await settle(unknownSender, words);
    await strangers.forget(unknownSender, await strangers.held(unknownSender));
  }

  async function waitingAs(channel: string, ids: readonly string[]) {
    return (await strangers.list()).filter((one) => one.channel === channel && sharesId(one, ids));
  }

  /**
   * Queues messages that a person sent before they were let in by other means; returns how many.
   */
  async function answerHeld(
    channel: string,
    ids: readonly string[],
    isGreeted = false,
  ): Promise<number> {
    const words = t`they are let in.`;
    let answered = 0;
    for (const unknownSender of await waitingAs(channel, ids))
      answered += await answer(unknownSender, { words, isGreeted });
    return answered;
  }

  return {
    /** The subjects of an id or an unknown sender's code; `channel` undefined: on any. */
    async find(typed: string, channel: string | undefined): Promise<readonly Subject[]> {
      const id = typed.toLowerCase();
      const isMeant = (on: string) => channel === undefined || channel === on;
      const waiting = (await strangers.list()).filter(
        (one) =>
          isMeant(one.channel) &&
          (one.ids.some((other) => other.toLowerCase() === id) || holdsCode(one, typed, now())),
      );
      const { approved } = await pairing.list();
      const decided = approved.filter(
        (one) => isMeant(one.channel) && one.userId.toLowerCase() === id,
      );
      const isWaiting = (one: { readonly channel: string; readonly userId: string }) =>
        waiting.some(({ channel: on, ids }) => on === one.channel && ids.includes(one.userId));
      return [
        ...waiting.map((one): Subject => ({ ...one, role: undefined, waiting: one })),
        ...decided
          .filter((one) => !isWaiting(one))
          .map((one): Subject => ({ ...one, ids: [one.userId], waiting: undefined })),
      ];
    },
    /** Lets them in and queues their messages; returns how many. */
    async allow(
      { channel, userId, name }: Pick<Subject, 'channel' | 'userId' | 'name'>,
      role: AdmittedRole,
    ): Promise<number> {
      await pairing.approve({ channel, userId, name }, role);
      return answerHeld(channel, [userId]);
    },
    allowOnce: (unknownSender: UnknownSender) => answer(unknownSender),
    drop: (unknownSender: UnknownSender) => drop(unknownSender),
    async block({ channel, ids, name }: Pick<Subject, 'channel' | 'ids' | 'name'>) {
      await pairing.block({ channel, ids, name });
      for (const unknownSender of await waitingAs(channel, ids)) {
        await drop(unknownSender, t`they are blocked.`);
      }
    },
    answerHeld,
  };
}

// An owner's press of a button below the notice about an unknown sender has the same effect as the
// commands.

export const UNKNOWN_SENDER_CHOICES = [
  { label: t`Allow once`, action: 'once' },
  { label: t`Allow`, action: 'allow' },
  { label: t`Block`, action: 'block' },
  { label: t`Answer myself`, action: 'drop' },
] as const;

export const UNKNOWN_SENDER_SUBJECT = 'stranger';

/** The id of the question about them. */
export const unknownSenderQuestion = ({ firstId }: Pick<UnknownSender, 'firstId'>) =>
  `stranger/${firstId}`;

/** Added to the notice if the decision was made elsewhere. */
export const decidedElsewhere = (words: string) => t`**Decided elsewhere:** ${words}`;

type UnknownSenderAnswersDeps = {
  readonly strangers: Pick<UnknownSenders, 'list'>;
  readonly decisions: Decisions;
};

/** A handler of questions. */
export function createUnknownSenderAnswers({ strangers, decisions }: UnknownSenderAnswersDeps) {
  return {
    async answer(
      { rest }: Pick<Asked, 'rest'>,
      { action }: Pick<Choice, 'action'>,
    ): Promise<string> {
      const one = (await strangers.list()).find((each) => unknownSenderId(each) === rest);
      if (one === undefined) return t`They no longer wait: this was already decided.`;
      switch (action) {
        case 'once':
          return answeredText(await decisions.allowOnce(one), t`this once`);
        case 'allow':
          return answeredText(await decisions.allow(one, 'trusted'), t`from now on`);
        case 'block':
          await decisions.block(one);
          return t`Blocked: I ignore them from now on.`;
        case 'drop':
          await decisions.drop(one);
          return t`Left to you: I do not answer what they wrote.`;
        default:
          return t`Unknown choice.`;
      }
    },
  };
}

const answeredText = (messages: number, until: string) =>
  t`I answer them ${until} (${counted(messages)}).`;

export const counted = (messages: number) =>
  ngettext(msgid`${messages} message`, `${messages} messages`, messages);
