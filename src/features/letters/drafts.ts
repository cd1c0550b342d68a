// Letters: sent at once where the configuration allows it for an owner's request, otherwise shown
// to an owner in full with Send, Edit and Drop. The id of a sent letter derives from turn and call,
// so that it is sent once, also after a crash. Cases A09, E28 and X04.

import type { LetterToPost } from '../../agent/agent.ts';
import { chatsOf, isSameChat, type Person } from '../../kernel/access/person.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { AskingTurn } from '../../kernel/guards.ts';
import { type AccountRef, accountName, chatId, messageId } from '../../kernel/message/ids.ts';
import {
  type ChatRef,
  chatRefOf,
  type Letter,
  sessionKeyOf,
} from '../../kernel/message/message.ts';
import type { Persons } from '../../kernel/people/persons.ts';
import {
  type Answered,
  type Asked,
  type Choice,
  payloadHandler,
  payloadOf,
} from '../../kernel/questions/question-rows.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import type { Rows } from '../../kernel/rows.ts';
import { createLanes } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import type { ToolOutcome } from '../../tools/tool.ts';
import { type AllowRules, TERMS } from '../approvals/index.ts';
import {
  alwaysSent,
  DRAFT,
  DRAFT_HOURS,
  DRAFT_TEXTS,
  type Draft,
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
import { filesOf, mustAsk, recipientsOf, type SendMoment } from './rules/letter.ts';

type DraftsDeps = Pick<Kernel, 'clock' | 'log'> & {
  /** Chats that letters were sent to, by session key. */
  readonly written: Rows<object>;
  readonly bus: Pick<MessageBus, 'accept' | 'send'>;
  readonly questions: Pick<Questions, 'ask' | 'get' | 'keep' | 'known'>;
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

const ok = (text: string): ToolOutcome => ({ status: 'ok', text });
const failed = (text: string): ToolOutcome => ({ status: 'failed', text });

export function createDrafts(deps: DraftsDeps) {
  const { written, bus, questions, clock, log, standing } = deps;
  const lanes = createLanes();

  async function post(posted: LetterToPost, turn: AskingTurn): Promise<ToolOutcome> {
    const { rights, isTainted, ordinal } = posted;
    const rest = `${turn.turnId}/${ordinal}`;
    const id = questionId(rest);
    const letter = redactedLetter(posted.letter, deps.redact);
    const { isOwnerHere, ...from } = turn;
    const all = await allDrafts();
    const known = all.find(
      (each) =>
        each.id === id || (each.outcome === undefined && isSameLetter(each.payload, letter, turn)),
    );
    if (known !== undefined) return ok(toldOf(known.payload, known.outcome));
    const target = await deps.targets(letter, turn.chat, isOwnerHere);
    if (target.kind === 'refused') return failed(target.text);
    const { chat, name } = target;
    const newTo = await unknownSendersTo(letter, chat);
    const now = clock.now();
    const counted = all.map(({ payload, outcome }) => [payload, outcome] as const);
    const full = fullness(counted, { letter, newTo, turn, isTainted, now });
    if (full !== undefined) return failed(full);
    const draft: Draft = { letter, chat, name, newTo, turn: from, rights, isTainted, at: now };
    const isKnown = newTo.length === 0;
    const hasFiles = filesOf(letter).length > 0;
    const moment = {
      ...deps.policy(letter.kind, turn),
      isOwners: isOwnerHere,
      isTainted,
      isKnown,
      hasFiles,
    };
    if (!mustAsk(moment) || (await isCovered(draft))) {
      await send(rest, draft);
      const subject = `draft:${rest}`;
      await questions.keep({
        ...{ id, subject, session: turn.session, payload: draft, outcome: 'sent' },
      });
      log.info('letter sent', { to: accountName(chat), session: turn.session });
      return ok(toldOf(draft, 'sent'));
    }
    const shownIn = isOwnerHere ? turn.chat : await deps.ownerChat();
    await questions.ask(asked({ id, rest, chat: shownIn }, draft));
    log.info('letter shown to an owner', { to: accountName(chat), session: turn.session });
    return ok(toldOf(draft, undefined));
  }

  const asked = (of: Omit<Asked, 'payload'>, draft: Draft, isEditing = false) =>
    questionOf(of, draft, { now: clock.now(), alwaysDays: standing.days(), isEditing });

  async function allDrafts() {
    return (await questions.known('draft')).flatMap((each) => {
      const payload = payloadOf(each, DRAFT);
      return payload === undefined ? [] : [{ ...each, payload }];
    });
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
  async function send(id: string, { chat, letter }: Draft): Promise<void> {
    const [, ...copies] = recipientsOf(letter);
    const { markdown } = letter;
    const copied = copies.length === 0 ? {} : { copies };
    const mail = letter.kind === 'mail' ? { subject: letter.subject, ...copied } : {};
    const files = filesOf(letter).length === 0 ? {} : { attachments: filesOf(letter) };
    await bus.send({ id: messageId(`letter/${id}`), chat, markdown, ...mail, ...files });
    for (const [, there] of placesOf(letter, chat))
      await written.change(sessionKeyOf(there), () => ({}));
  }

  async function end({ rest }: Asked, draft: Draft, outcome: string, words: string) {
    if (outcome === 'sent') await send(rest, draft);
    log.info('letter decided', { to: accountName(draft.chat), decision: outcome });
    const message = outcomeOf(rest, draft, outcome, clock.now());
    await bus.accept([{ kind: 'queue', message }]);
    return { words, outcome };
  }

  async function answer(
    draft: Draft,
    of: Asked,
    { action, by, at, said }: Choice,
  ): Promise<Answered> {
    switch (action) {
      case 'send':
        return end(of, draft, 'sent', t`Sent.`);
      case 'drop':
        return end(of, draft, 'dropped', t`Dropped: nothing is sent.`);
      case 'edit':
        return { words: '', next: asked(of, draft, true) };
      case 'keep':
        return { words: '', next: asked(of, draft) };
      case 'text':
      case 'more':
        return { words: '', next: asked(of, edited(draft, action, said?.text ?? '')) };
    }
    const term = draft.isTainted ? undefined : TERMS.find((each) => each === action);
    const call = term === undefined ? undefined : standingOf(draft);
    if (term === undefined || call === undefined) return { words: '', next: asked(of, draft) };
    const to = whoGets(draft);
    await standing.give({ ...call, about: to, asker: draft.turn.asker }, term, by, at);
    return end(of, draft, 'sent', alwaysSent(to, term, standing.days()));
  }

  function edited(draft: Draft, action: 'text' | 'more', text: string): Draft {
    if (text.toLowerCase() === '/cancel') return draft;
    const before = action === 'more' ? `${draft.letter.markdown}\n` : '';
    const letter = { ...draft.letter, markdown: before + deps.redact(text) };
    return { ...draft, letter, isEdited: true };
  }

  return {
    /** Sends the letter or shows it to an owner; returns the text for the model. */
    post: (posted: LetterToPost, turn: AskingTurn) => lanes.run('drafts', () => post(posted, turn)),
    handler: payloadHandler(DRAFT, {
      answer,
      expired: (draft, of) =>
        end(of, draft, 'expired', DRAFT_TEXTS.expired(draft.name, DRAFT_HOURS)),
    }),
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
      if (mailbox === undefined) return refused(t`\`from\` names no mailbox.${namesOf(all)}`);
      const { channel, account } = mailbox;
      const chat = { channel, account, chat: chatId(letter.to) };
      return { kind: 'found', chat, name: letter.to };
    }
    const found = await meant(letter.to);
    const [one] = found;
    if (found.length > 1) {
      const ids = isOwner ? `: ${found.map(({ person }) => person.id).join(', ')}` : '';
      return refused(t`This matches several people${ids}. Name one by id.`);
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
