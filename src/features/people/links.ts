// Joins the doors of one person: a code shown on one door and sent from the other, good once and for
// a short while, kept as a hash. Whoever sends it is from then on what its person is, so a code gives
// no more than the door it was shown on had.

import { LINK_COMMAND, type Role } from '../../kernel/access/admission.ts';
import { mayVouchFor, type Person } from '../../kernel/access/person.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { MessageId, PersonId } from '../../kernel/message/ids.ts';
import { type ChatRef, type InboundMessage, idsOf } from '../../kernel/message/message.ts';
import { createLanes } from '../../lib/async.ts';
import { jsonRow, listShape, number, place, rowShape, text } from '../../lib/json/json.ts';
import { type CodesDeps, equal, hashOf, randomCode } from './pairing.ts';
import type { Persons } from './persons.ts';

const CODE_LENGTH = 8;
export const LINK_CODE_MINUTES = 10;
const LIFETIME_MS = LINK_CODE_MINUTES * 60_000;
/** Wrong codes, by whomever, before all open ones are worthless. */
const MAX_TRIES = 10;
/** Wrong codes of one sender in a code's lifetime; more are not looked at. */
const MAX_TRIES_OF_ONE = 5;
const MAX_REMEMBERED_SENDERS = 1000;
/** Codes of one person in an hour. */
const MAX_ISSUED = 5;
const ISSUED_WINDOW_MS = 3_600_000;
const KEY = 'link-codes';

type LinkCode = {
  readonly hash: string;
  readonly person: PersonId;
  /** Where it was shown. */
  readonly chat: ChatRef;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly tries: number;
  /** The message that used it: the same one again finds the same. */
  readonly usedBy?: MessageId;
};

const CODES = listShape(
  rowShape<LinkCode>({ hash: text, person: text, chat: place, at: number, tries: number }),
);

export type LinkOutcome =
  | { readonly kind: 'linked'; readonly person: Person; readonly shownIn: ChatRef }
  | { readonly kind: 'wrong' }
  /** Whoever sends it may do more than whoever was shown it. */
  | { readonly kind: 'turned_round' };

export type LinksDeps = Omit<CodesDeps, 'rows'> & {
  readonly state: KeyValueStore;
  readonly persons: Persons;
};

export interface Links {
  /** Undefined where the person was shown too many of late. */
  issue(person: Person, chat: ChatRef): Promise<string | undefined>;
  /** `role`: what the sender is now. */
  redeem(message: InboundMessage, code: string, role: Role | undefined): Promise<LinkOutcome>;
}

export function createLinks({ state, clock, randomBytes, persons }: LinksDeps): Links {
  const lanes = createLanes();
  const wrong = new Map<string, { readonly since: number; readonly tries: number }>();
  const oneByOne = <T>(task: () => Promise<T>) => lanes.run(KEY, task);

  async function codes(): Promise<readonly LinkCode[]> {
    const all = jsonRow((await state.get(KEY)) ?? '', CODES) ?? [];
    return all.filter(({ at }) => clock.now() - at < ISSUED_WINDOW_MS);
  }

  const rowOf = (all: readonly LinkCode[]) => ({ key: KEY, value: JSON.stringify(all) });
  const isOpen = ({ at, tries, usedBy }: LinkCode) =>
    clock.now() - at < LIFETIME_MS && tries < MAX_TRIES && usedBy === undefined;

  function mayTry({ sender, chat }: InboundMessage): boolean {
    const before = wrong.get(senderKey(chat, sender));
    const isFresh = before !== undefined && clock.now() - before.since < LIFETIME_MS;
    return !isFresh || before.tries < MAX_TRIES_OF_ONE;
  }

  async function countWrong({ sender, chat }: InboundMessage, all: readonly LinkCode[]) {
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
    if (!all.some(isOpen)) return;
    const tried = all.map((each) => (isOpen(each) ? { ...each, tries: each.tries + 1 } : each));
    await state.set(KEY, rowOf(tried).value);
  }

  async function redeem(
    message: InboundMessage,
    code: string,
    role: Role | undefined,
  ): Promise<LinkOutcome> {
    const { sender } = message;
    // Whoever only pretends to be somebody must not get hold of their door.
    const isSure = sender.kind === 'person' && sender.verified !== 'unverified';
    if (!isSure || !mayTry(message)) return { kind: 'wrong' };
    const all = await codes();
    const hash = hashOf(code.trim().toUpperCase());
    const match = all.find(
      (each) => equal(each.hash, hash) && (isOpen(each) || each.usedBy === message.id),
    );
    const giver = match === undefined ? undefined : await persons.get(match.person);
    const author = await persons.author(message);
    if (match === undefined || giver === undefined || author === undefined) {
      await countWrong(message, all);
      return { kind: 'wrong' };
    }
    const shownIn = match.chat;
    if (match.usedBy === message.id) return { kind: 'linked', person: giver, shownIn };
    if (!mayVouchFor(giver.role, role)) return { kind: 'turned_round' };
    const usedUp = all.map((each) => (each === match ? { ...each, usedBy: message.id } : each));
    const other = withChat(author, message.chat);
    const person = await persons.merge(giver.id, other, [rowOf(usedUp)]);
    return person === undefined ? { kind: 'wrong' } : { kind: 'linked', person, shownIn };
  }

  return {
    issue: (person, chat) =>
      oneByOne(async () => {
        const all = await codes();
        if (all.filter((each) => each.person === person.id).length >= MAX_ISSUED) return undefined;
        const code = randomCode(randomBytes, CODE_LENGTH);
        const issued = { hash: hashOf(code), person: person.id, chat, at: clock.now(), tries: 0 };
        await state.set(KEY, rowOf([...all, issued]).value);
        return code;
      }),
    redeem: (message, code, role) => oneByOne(() => redeem(message, code, role)),
  };
}

/** As it is typed on the other door. */
export const linkCommandOf = (code: string) => `/${LINK_COMMAND} ${code}`;

function senderKey(chat: ChatRef, sender: InboundMessage['sender']): string {
  return `${chat.channel}:${sender.kind === 'person' ? idsOf(sender).join(' ') : sender.source}`;
}

/** Where they write from now, so that it is known from the first message on. */
function withChat(person: Person, chat: ChatRef): Person {
  const doors = person.doors.map((door) =>
    door.channel === chat.channel ? { ...door, chat } : door,
  );
  return { ...person, doors };
}
