// Where a letter goes: a mail to its address, a text for a person to the door they like best. Somebody
// nobody let in is never reached, and only an owner is told who could be.

import { chatsOf, isSameChat, type Person } from '../../kernel/access/person.ts';
import { type AccountRef, accountName } from '../../kernel/message/account.ts';
import { chatId } from '../../kernel/message/ids.ts';
import { type ChatRef, chatRefOf } from '../../kernel/message/message.ts';
import type { Persons } from '../people/persons.ts';
import type { Letter } from './rules/letter.ts';

const MAX_NAMED = 20;

export type Target =
  | { readonly kind: 'found'; readonly chat: ChatRef; readonly name: string }
  | { readonly kind: 'refused'; readonly text: string };

export type OwnMailbox = AccountRef & {
  /** Its own address before the others. */
  readonly addresses: readonly string[];
};

export type TargetDeps = {
  readonly persons: Pick<Persons, 'find' | 'inChat' | 'list'>;
  /** A chat there outlives the process, and messages go out there. */
  isReached(chat: ChatRef): boolean;
  /** By which mails go out, the first one first. */
  mailboxes(): readonly OwnMailbox[];
};

export type Targets = (letter: Letter, from: ChatRef, isOwner: boolean) => Promise<Target>;

const refused = (text: string): Target => ({ kind: 'refused', text });

export function createTargets({ persons, isReached, mailboxes }: TargetDeps): Targets {
  const chatFor = (person: Person) =>
    isLetIn(person) ? chatsOf(person).find(isReached) : undefined;

  async function meant(to: string): Promise<readonly { person: Person; chat?: ChatRef }[]> {
    const chat = chatRefOf(to);
    const inChat = chat === undefined ? undefined : await persons.inChat(chat);
    if (inChat !== undefined) return [{ person: inChat, ...(chat === undefined ? {} : { chat }) }];
    return (await persons.find(to)).map((person) => ({ person }));
  }

  async function whoCanBe(isOwner: boolean): Promise<string> {
    if (!isOwner) return '';
    const names = (await persons.list())
      .filter((person) => chatFor(person) !== undefined)
      .map(({ name, id }) => (name === '' ? id : `${name} (${id})`));
    const more = names.length > MAX_NAMED ? `, and ${names.length - MAX_NAMED} more` : '';
    const shown = names.slice(0, MAX_NAMED).join(', ');
    return names.length === 0 ? ' Nobody can be reached.' : ` Can be reached: ${shown}${more}.`;
  }

  return async (letter, from, isOwner) => {
    if (letter.kind === 'mail') {
      const all = mailboxes();
      if (all.length === 0) return refused('No mail can be sent: that channel is off.');
      const mailbox = mailboxFor(letter.from, from, all);
      if (mailbox === undefined) return refused(`No mailbox is meant by \`from\`.${namesOf(all)}`);
      const { channel, account } = mailbox;
      const chat = { channel, account, chat: chatId(letter.to) };
      return { kind: 'found', chat, name: letter.to };
    }
    const found = await meant(letter.to);
    const [one] = found;
    if (found.length > 1) {
      const ids = isOwner ? `: ${found.map(({ person }) => person.id).join(', ')}` : '';
      return refused(`Several people are meant by this${ids}. Name one by id.`);
    }
    const chat = one && isLetIn(one.person) ? (one.chat ?? chatFor(one.person)) : undefined;
    if (one === undefined || chat === undefined || !isReached(chat)) {
      return refused(`Nobody who can be reached is meant by this.${await whoCanBe(isOwner)}`);
    }
    if (isSameChat(chat, from)) return refused('That is this chat: leave out `to`.');
    return { kind: 'found', chat, name: one.person.name || one.person.id };
  };
}

/** The one that is named, else that of the conversation, else the first. */
function mailboxFor(
  named: string | undefined,
  from: ChatRef,
  all: readonly OwnMailbox[],
): OwnMailbox | undefined {
  if (named === undefined) {
    return all.find((each) => accountName(each) === accountName(from)) ?? all[0];
  }
  const wanted = named.trim().toLowerCase();
  const isMeant = (each: OwnMailbox) =>
    [`${accountName(each)}`, `${each.account}`, ...each.addresses].includes(wanted);
  return all.find(isMeant);
}

const namesOf = (all: readonly OwnMailbox[]) =>
  ` There are: ${all.map(({ account, addresses: [own = ''] }) => `${account} (${own})`).join(', ')}.`;

const isLetIn = ({ role }: Person) => role !== undefined && role !== 'blocked';
