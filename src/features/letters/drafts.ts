// Letters: sent at once where the configuration allows it for an owner's request, otherwise shown
// to an owner in full with Send, Edit and Drop. The id of a sent letter derives from turn and call,
// so that it is sent once, also after a crash. Cases A09, E28 and X04.

import type { LetterToPost } from '../../agent/agent.ts';
import type { AdmittedRole } from '../../kernel/access/admission.ts';
import { chatsOf, isSameChat, type Person } from '../../kernel/access/person.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { AskingTurn } from '../../kernel/guards.ts';
import {
  type AccountRef,
  accountName,
  chatId,
  type MessageId,
  messageId,
} from '../../kernel/message/ids.ts';
import {
  type ChatRef,
  chatRefOf,
  type InboundMessage,
  type Letter,
  sessionKeyOf,
} from '../../kernel/message/message.ts';
import type { Persons } from '../../kernel/people/persons.ts';
import {
  type Answered,
  type Chooser,
  type Question,
  rowOf,
} from '../../kernel/questions/question-rows.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import type { Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { createLanes } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { ToolOutcome } from '../../tools/tool.ts';
import { type AllowRules, TERMS } from '../approvals/index.ts';
import {
  type Draft,
  type DraftRows,
  editedBy,
  eraseLetters,
  hashOfDraft,
  isWaiting,
  removeOldDrafts,
} from './draft-rows.ts';
import {
  alwaysSent,
  DRAFT_HOURS,
  DRAFT_TEXTS,
  fullness,
  isSameLetter,
  outcomeOf,
  placesOf,
  questionId,
  questionOf,
  redactedLetter,
  standingOf,
  toldOf,
  whoGets,
} from './letters.ts';
import { mustAsk, recipientsOf, type SendMoment } from './rules/letter.ts';

type DraftsDeps = {
  readonly rows: DraftRows;
  readonly bus: Pick<MessageBus, 'accept' | 'send'>;
  readonly questions: Pick<Questions, 'ask' | 'open' | 'withdraw'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly targets: Targets;
  readonly standing: AllowRules;
  /** Whether any message was delivered there, in any topic and of any kind. */
  hasWrittenTo(chat: ChatRef): Promise<boolean>;
  /** The chat in which an owner is asked who is not in the asking chat. */
  ownerChat(): Promise<ChatRef>;
  /** The current settings for letters of this kind. */
  policy(kind: Letter['kind'], turn: AskingTurn): Pick<SendMoment, 'policy' | 'hours' | 'minute'>;
  /** Stored texts contain no secrets. */
  redact(text: string): string;
};

export type Drafts = ReturnType<typeof createDrafts>;

const { NOT_KNOWN, TOO_LATE } = DRAFT_TEXTS;

const ok = (text: string): ToolOutcome => ({ status: 'ok', text });
const failed = (text: string): ToolOutcome => ({ status: 'failed', text });

export function createDrafts(deps: DraftsDeps) {
  const { rows, bus, questions, clock, log, standing } = deps;
  const { drafts, written } = rows;
  const lanes = createLanes();
  const oneByOne = <T>(task: () => Promise<T>) => lanes.run('drafts', task);

  async function post(posted: LetterToPost, turn: AskingTurn): Promise<ToolOutcome> {
    const { rights, isTainted, ordinal } = posted;
    const id = `${turn.turnId}/${ordinal}`;
    const known = await drafts.get(id);
    if (known !== undefined) return ok(toldOf(known));
    const letter = redactedLetter(posted.letter, deps.redact);
    const { isOwnerHere, ...from } = turn;
    const all = await drafts.list();
    const same = all.find((one) => isWaiting(one) && isSameLetter(one, letter, turn));
    if (same !== undefined) return ok(toldOf(same));
    const target = await deps.targets(letter, turn.chat, isOwnerHere);
    if (target.kind === 'refused') return failed(target.text);
    const { chat, name } = target;
    const newTo = await unknownSendersTo(letter, chat);
    const now = clock.now();
    const full = fullness(all, { letter, newTo, turn, isTainted, now });
    if (full !== undefined) return failed(full);
    const shownIn = isOwnerHere ? turn.chat : await deps.ownerChat();
    const draft: Draft = {
      ...{ id, letter, chat, name, newTo, turn: from, rights, isTainted, shownIn },
      ...{ version: 0, at: now, state: 'open' },
    };
    await removeOldDrafts(rows, now);
    const isKnown = newTo.length === 0;
    const moment = { ...deps.policy(letter.kind, turn), isOwners: isOwnerHere, isTainted, isKnown };
    if (!mustAsk(moment) || (await isCovered(draft))) {
      await send(draft);
      log.info('letter sent', { to: accountName(chat), session: turn.session });
      return ok(toldOf({ ...draft, state: 'sent' }));
    }
    await questions.ask(questionOf(draft, now, standing.days()), [drafts.write(id, draft)]);
    log.info('letter shown to an owner', { to: accountName(chat), session: turn.session });
    return ok(toldOf(draft));
  }

  /** An allow rule covers letters to these people; never in a tainted conversation. */
  async function isCovered(draft: Draft): Promise<boolean> {
    const call = draft.isTainted ? undefined : standingOf(draft);
    return call !== undefined && standing.covers(call);
  }

  /** Recipients who got no message before, by letter or otherwise. */
  async function unknownSendersTo(letter: Letter, chat: ChatRef): Promise<readonly string[]> {
    const found: string[] = [];
    for (const [to, there] of placesOf(letter, chat)) {
      const isWritten = (await written.get(sessionKeyOf(there))) !== undefined;
      if (!isWritten && !(await deps.hasWrittenTo(there))) found.push(to);
    }
    return found;
  }

  /** Idempotent. */
  async function send(draft: Draft): Promise<void> {
    const { id, chat, letter } = draft;
    const [, ...copies] = recipientsOf(letter);
    const { markdown } = letter;
    const copied = copies.length === 0 ? {} : { copies };
    const mail = letter.kind === 'mail' ? { subject: letter.subject, ...copied } : {};
    await bus.send({ id: messageId(`letter/${id}`), chat, markdown, ...mail });
    const places = placesOf(letter, chat).map(([, there]) =>
      written.write(sessionKeyOf(there), {}),
    );
    await drafts.change(
      id,
      () => ({ ...draft, state: 'sent' }),
      () => places,
    );
  }

  async function end(draft: Draft, state: Draft['state']): Promise<void> {
    const ended: Draft = { ...draft, state };
    if (state === 'sent') await send(draft);
    else await drafts.change(draft.id, () => ended);
    log.info('letter decided', { to: accountName(draft.chat), decision: state });
    await bus.accept([{ kind: 'queue', message: outcomeOf(ended, clock.now()) }]);
  }

  async function answer(rest: string, action: string, ...[who, at]: Chooser): Promise<Answered> {
    const draft = await rowOf(rest, drafts, hashOfDraft);
    if (draft === undefined) return NOT_KNOWN;
    const { state } = draft;
    const term = draft.isTainted ? undefined : TERMS.find((each) => each === action);
    const call = term === undefined ? undefined : standingOf(draft);
    if ((action === 'send' || call !== undefined) && (state === 'open' || state === 'sent')) {
      const { asker } = draft.turn;
      if (term === undefined || call === undefined) {
        await end(draft, 'sent');
        return 'Sent.';
      }
      const rule = { ...call, about: whoGets(draft), asker };
      if (state === 'open') await standing.give(rule, term, who, at);
      await end(draft, 'sent');
      return alwaysSent(whoGets(draft), term, standing.days());
    }
    if (action === 'drop' && (isWaiting(draft) || state === 'dropped')) {
      await end(draft, 'dropped');
      return t`Dropped: nothing is sent.`;
    }
    const where = at === undefined ? {} : { shownIn: at };
    const next = await changed(draft, action === 'edit' ? 'editing' : 'open', where);
    return next === 'decided' ? TOO_LATE : { words: '', next };
  }

  /** The question about the draft in its next version. */
  async function changed(
    draft: Draft,
    state: 'open' | 'editing',
    change: Partial<Pick<Draft, 'letter' | 'editedBy' | 'shownIn'>>,
  ): Promise<Question | 'decided'> {
    const now = clock.now();
    const version = draft.version + 1;
    const next: Draft = { ...draft, ...change, version, changedAt: now, state };
    const stored = await drafts.change(draft.id, (each) =>
      each !== undefined && isWaiting(each) && each.version === draft.version ? next : undefined,
    );
    return stored === undefined ? 'decided' : questionOf(next, now, standing.days());
  }

  /** Whose next text the message in this chat may be, or was before it came again. */
  async function editedIn(chat: ChatRef, message: MessageId): Promise<Draft | undefined> {
    const open = await questions.open();
    const isHere = (draft: Draft) => {
      const question = open.find(({ id }) => id === questionId(draft));
      return isSameChat(question?.chat ?? draft.shownIn, chat);
    };
    return editedBy(rows, isHere, message);
  }

  /** A message that is here again finds what it did, and only asks where that was not done. */
  async function take({ id, chat, text }: InboundMessage): Promise<void> {
    const draft = await editedIn(chat, id);
    if (draft === undefined) return;
    if (draft.editedBy === id) {
      if (draft.state === 'open')
        await questions.ask(questionOf(draft, clock.now(), standing.days()));
      return;
    }
    const isKept = text.trim().toLowerCase() === '/cancel';
    const letter = { ...draft.letter, markdown: deps.redact(text.trim()) };
    const change = { editedBy: id, shownIn: chat, ...(isKept ? {} : { letter }) };
    const question = await changed(draft, 'open', change);
    if (question === 'decided') return;
    await questions.withdraw(questionId(draft));
    await questions.ask(question);
  }

  async function expired(rest: string): Promise<string | undefined> {
    const draft = await rowOf(rest, drafts, hashOfDraft);
    if (draft === undefined || !isWaiting(draft)) return undefined;
    await end(draft, 'expired');
    return DRAFT_TEXTS.expired(draft.name, DRAFT_HOURS);
  }

  return {
    /** Sends the letter or shows it to an owner; returns the text for the model. */
    post: (posted: LetterToPost, turn: AskingTurn) => oneByOne(() => post(posted, turn)),
    /**
     * Takes the message, which is not a command, as a draft's new text, also repeatedly; undefined
     * where it is not one.
     */
    async taking(message: InboundMessage, role: AdmittedRole) {
      const { sender, chat, addressing, group, text, attachments = [] } = message;
      const isOwner = role === 'owner' && sender.kind === 'person';
      const isHere = addressing === 'direct' && group === undefined && attachments.length === 0;
      if (!isOwner || sender.verified === 'unverified' || !isHere) return undefined;
      if ((await editedIn(chat, message.id)) === undefined || text.trim() === '') return;
      return () => oneByOne(() => take(message));
    },
    /** What was decided about letters of these conversations that hold the words; how many. */
    forget: (chats: readonly string[], holds: Holds) => eraseLetters(rows, chats, holds),
    handler: {
      answer,
      expired,
      /** Sends questions that a killed process did not send. */
      async takeUp() {
        for (const draft of (await drafts.list()).filter(isWaiting))
          await questions.ask(questionOf(draft, clock.now(), standing.days()));
      },
    },
  };
}

// Where a letter goes: a mail to its address, a text for a person to the channel they prefer. Somebody
// nobody let in is never reached, and only an owner is told who could be.

const MAX_NAMED = 20;

export type Target =
  | { readonly kind: 'found'; readonly chat: ChatRef; readonly name: string }
  | { readonly kind: 'refused'; readonly text: string };

type OwnMailbox = AccountRef & {
  /** Its own address first. */
  readonly addresses: readonly string[];
};

type TargetDeps = {
  readonly persons: Pick<Persons, 'find' | 'inChat' | 'list'>;
  /** Chats there outlive the process, and messages can be sent there. */
  isReached(chat: ChatRef): boolean;
  /** Mailboxes that can send, the preferred one first. */
  mailboxes(): readonly OwnMailbox[];
};

type Targets = (letter: Letter, from: ChatRef, isOwner: boolean) => Promise<Target>;

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
    const more = names.length > MAX_NAMED ? t`, and ${names.length - MAX_NAMED} more` : '';
    const shown = names.slice(0, MAX_NAMED).join(', ');
    return names.length === 0 ? t` Nobody can be reached.` : t` Can be reached: ${shown}${more}.`;
  }

  return async (letter, from, isOwner) => {
    if (letter.kind === 'mail') {
      const all = mailboxes();
      if (all.length === 0) return refused(t`No mail can be sent: that channel is off.`);
      const mailbox = mailboxFor(letter.from, from, all);
      if (mailbox === undefined) return refused(t`No mailbox is meant by \`from\`.${namesOf(all)}`);
      const { channel, account } = mailbox;
      const chat = { channel, account, chat: chatId(letter.to) };
      return { kind: 'found', chat, name: letter.to };
    }
    const found = await meant(letter.to);
    const [one] = found;
    if (found.length > 1) {
      const ids = isOwner ? `: ${found.map(({ person }) => person.id).join(', ')}` : '';
      return refused(t`Several people are meant by this${ids}. Name one by id.`);
    }
    const chat = one && isLetIn(one.person) ? (one.chat ?? chatFor(one.person)) : undefined;
    if (one === undefined || chat === undefined || !isReached(chat)) {
      return refused(
        t`No person with this name or address can be reached.${await whoCanBe(isOwner)}`,
      );
    }
    if (isSameChat(chat, from)) return refused(t`That is this chat: leave out \`to\`.`);
    return { kind: 'found', chat, name: one.person.name || one.person.id };
  };
}

/** The named one, otherwise that of the conversation, otherwise the first. */
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
  t` There are: ${all.map(({ account, addresses: [own = ''] }) => `${account} (${own})`).join(', ')}.`;

const isLetIn = ({ role }: Person) => role !== undefined && role !== 'blocked';
