// Links the channels of one person: a code shown on one channel and sent from the other, valid once
// and for a short time, stored as a hash. Its sender gets the role of its person, so a code gives
// no more than the channel it was shown on had.

import { createLanes } from '../../lib/async.ts';
import { listShape, number, place, rowShape, text } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import { LINK_COMMAND, type Role, type SettledVerdict } from '../access/admission.ts';
import { channelIdsText, mayVouchFor, type Person, personChannelOf } from '../access/person.ts';
import type { MessageBus } from '../bus/bus.ts';
import type { Gated } from '../intake/group-intake.ts';
import { type MessageId, messageId, type PersonId } from '../message/ids.ts';
import { type ChatRef, type InboundMessage, idsOf } from '../message/message.ts';
import { verbatim } from '../message/untrusted.ts';
import { jsonRows } from '../rows.ts';
import { type CodesDeps, equal, hashOf, randomCode } from './pairing.ts';
import { PEOPLE_SCOPE } from './people-rows.ts';
import type { Persons } from './persons.ts';
import type { Decisions } from './unknown-senders.ts';

const CODE_LENGTH = 8;
export const LINK_CODE_MINUTES = 10;
const LIFETIME_MS = LINK_CODE_MINUTES * 60_000;
/** Wrong codes, of all senders, after which all open ones are invalid. */
const MAX_TRIES = 10;
/** Wrong codes of one sender in a code's lifetime; further ones are not checked. */
const MAX_TRIES_OF_ONE = 5;
const MAX_REMEMBERED_SENDERS = 1000;
/** Codes of one person in an hour. */
const MAX_ISSUED = 5;
const ISSUED_WINDOW_MS = 3_600_000;

type LinkCode = {
  readonly hash: string;
  readonly person: PersonId;
  /** Where it was shown. */
  readonly chat: ChatRef;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly tries: number;
  /** The message that used it: the same one again gets the same result. */
  readonly usedBy?: MessageId;
};

const CODES = listShape(
  rowShape<LinkCode>({ hash: text, person: text, chat: place, at: number, tries: number }),
);

type LinkOutcome =
  | { readonly kind: 'linked'; readonly person: Person; readonly shownIn: ChatRef }
  | { readonly kind: 'wrong' }
  /** The sender has a higher role than the person who was shown the code. */
  | { readonly kind: 'turned_round' };

type LinksDeps = CodesDeps & { readonly persons: Persons };

export type Links = ReturnType<typeof createLinks>;

export function createLinks({ rows, clock, randomBytes, persons }: LinksDeps) {
  const codes = rows({ ...jsonRows(CODES), scope: PEOPLE_SCOPE, prefix: 'link-codes' });
  const lanes = createLanes();
  const wrong = new Map<string, { readonly since: number; readonly tries: number }>();
  /** A code must not be redeemed twice concurrently. */
  const oneByOne = <T>(task: () => Promise<T>) => lanes.run('codes', task);
  const recent = (all: readonly LinkCode[] = []) =>
    all.filter(({ at }) => clock.now() - at < ISSUED_WINDOW_MS);
  const isOpen = ({ at, tries, usedBy }: LinkCode) =>
    clock.now() - at < LIFETIME_MS && tries < MAX_TRIES && usedBy === undefined;

  function mayTry({ sender, chat }: InboundMessage): boolean {
    const before = wrong.get(senderKey(chat, sender));
    const isFresh = before !== undefined && clock.now() - before.since < LIFETIME_MS;
    return !isFresh || before.tries < MAX_TRIES_OF_ONE;
  }

  async function countWrong({ sender, chat }: InboundMessage) {
    const key = senderKey(chat, sender);
    const before = wrong.get(key);
    const isFresh = before !== undefined && clock.now() - before.since < LIFETIME_MS;
    wrong.delete(key);
    wrong.set(
      key,
      isFresh ? { ...before, tries: before.tries + 1 } : { since: clock.now(), tries: 1 },
    );
    const [oldest] = wrong.keys();
    if (wrong.size > MAX_REMEMBERED_SENDERS && oldest !== undefined) wrong.delete(oldest);
    await codes.change('', (all) =>
      recent(all).some(isOpen)
        ? recent(all).map((each) => (isOpen(each) ? { ...each, tries: each.tries + 1 } : each))
        : undefined,
    );
  }

  async function redeem(
    message: InboundMessage,
    code: string,
    role: Role | undefined,
  ): Promise<LinkOutcome> {
    const { sender } = message;
    // An unverified sender must not be able to link a channel of the person they claim to be.
    const isSure = sender.kind === 'person' && sender.verified !== 'unverified';
    if (!isSure || !mayTry(message)) return { kind: 'wrong' };
    const all = recent(await codes.get(''));
    const hash = hashOf(code.trim().toUpperCase());
    const match = all.find(
      (each) => equal(each.hash, hash) && (isOpen(each) || each.usedBy === message.id),
    );
    const giver = match === undefined ? undefined : await persons.get(match.person);
    const author = await persons.author(message);
    if (match === undefined || giver === undefined || author === undefined) {
      await countWrong(message);
      return { kind: 'wrong' };
    }
    const shownIn = match.chat;
    if (match.usedBy === message.id) return { kind: 'linked', person: giver, shownIn };
    if (!mayVouchFor(giver.role, role)) return { kind: 'turned_round' };
    const usedUp = all.map((each) => (each === match ? { ...each, usedBy: message.id } : each));
    const other = withChat(author, message.chat);
    const person = await persons.merge(giver.id, other, [codes.write('', usedUp)]);
    return person === undefined ? { kind: 'wrong' } : { kind: 'linked', person, shownIn };
  }

  return {
    /** Undefined if the person got too many recently. */
    issue: (person: Person, chat: ChatRef): Promise<string | undefined> =>
      oneByOne(async () => {
        const code = randomCode(randomBytes, CODE_LENGTH);
        const issued = { hash: hashOf(code), person: person.id, chat, at: clock.now(), tries: 0 };
        const isOne = await codes.change('', (all) =>
          recent(all).filter((each) => each.person === person.id).length >= MAX_ISSUED
            ? undefined
            : [...recent(all), issued],
        );
        return isOne === undefined ? undefined : code;
      }),
    /** `role`: the sender's current one. */
    redeem: (message: InboundMessage, code: string, role: Role | undefined) =>
      oneByOne(() => redeem(message, code, role)),
  };
}

/** As typed on the other channel. */
export const linkCommandOf = (code: string) => `/${LINK_COMMAND} ${code}`;

function senderKey(chat: ChatRef, sender: InboundMessage['sender']): string {
  return `${chat.channel}:${sender.kind === 'person' ? idsOf(sender).join(' ') : sender.source}`;
}

/** Adds the chat they write from, so that it is known from the first message on. */
function withChat(person: Person, chat: ChatRef): Person {
  const doors = person.doors.map((personChannel) =>
    personChannel.channel === chat.channel ? { ...personChannel, chat } : personChannel,
  );
  return { ...person, doors };
}

export const WRONG_CODE = t`This code is wrong or has expired. Send /link on your other channel for a new one.`;
const TURNED_ROUND = t`You have more rights here than on the other channel. Send /link here, then send the code there.`;

type LinkGateDeps = {
  readonly people: { readonly links: Links; readonly decisions: Pick<Decisions, 'answerHeld'> };
  readonly bus: Pick<MessageBus, 'send'>;
  readonly log: Logger;
  /** Sends an owner a notice. */
  tellOwner(text: string): void;
};

/** Redeems a code during admission; undefined if an unknown sender's code is invalid. */
export async function redeemLink(
  message: InboundMessage,
  code: string,
  otherwise: SettledVerdict,
  { people, bus, log, tellOwner }: LinkGateDeps,
): Promise<Gated | undefined> {
  const { chat, sender } = message;
  const role = otherwise.kind === 'admit' ? otherwise.role : undefined;
  const outcome = await people.links.redeem(message, code, role);
  if (outcome.kind === 'wrong' && otherwise.kind !== 'admit') return undefined;
  const reply = (markdown: string) =>
    bus.send({ id: messageId(`${message.id}/reply`), chat, markdown, replyTo: message.id });
  if (outcome.kind !== 'linked') {
    const text = outcome.kind === 'wrong' ? WRONG_CODE : TURNED_ROUND;
    return {
      entry: { kind: 'record', message, gate: `command /${LINK_COMMAND}` },
      afterwards: async () => void (await reply(text)),
    };
  }
  const { person, shownIn } = outcome;
  const there = personChannelOf(person, shownIn.channel);
  const ids = sender.kind === 'person' ? idsOf(sender) : [];
  const here = channelIdsText({ channel: chat.channel, ids });
  const undo = verbatim(`/unlink ${chat.channel}`);
  return {
    entry: { kind: 'record', message, gate: 'linked by code' },
    async afterwards() {
      log.warn('channels linked', { person: person.id, channel: chat.channel });
      const other = there === undefined ? shownIn.channel : channelIdsText(there);
      await reply(t`You are the same person here and on ${other}. Undo it with ${undo}.`);
      await bus.send({
        id: messageId(`${message.id}/linked`),
        chat: shownIn,
        markdown: t`You are the same person here and on ${here}. If that was not you: ${undo}.`,
      });
      if (person.role !== 'owner') {
        tellOwner(t`${verbatim(person.name)} (${person.id}) linked ${here}.`);
      }
      await people.decisions.answerHeld(chat.channel, ids, true);
    },
  };
}
