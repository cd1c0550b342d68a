// The sender of a turn and their rights: combines the current verdict of admission, the medium of
// the channel, and the configuration. The rules themselves are in kernel/access.

import { hash } from 'node:crypto';
import type { TurnSettings } from '../../agent/agent.ts';
import { isTouched } from '../../agent/rules/context-marks.ts';
import { defined, flag, jsonRow, number, rowShape, text } from '../../lib/json/json.ts';
import { type SettledVerdict, withoutCode } from '../access/admission.ts';
import { nameOfLanguage, type Person } from '../access/person.ts';
import {
  type ApprovalPolicy,
  approvalPolicyOf,
  LOOKING_RIGHTS,
  type Medium,
  NO_RIGHTS,
  narrowed,
  type Rights,
  rightsOf,
  type SenderStanding,
  type ToolPolicies,
  takenFrom,
  toolPolicyOf,
} from '../access/rights.ts';
import type { MessageBus } from '../bus/bus.ts';
import type { KeyValueStore } from '../bus/store/store.ts';
import { PLAIN_COMMANDS } from '../commands/command-access.ts';
import type { QueueMode } from '../config/settings-fields.ts';
import type { Judge } from '../intake/fair-use.ts';
import {
  firstSeqOf,
  type MessageId,
  messageId,
  type SessionKey,
  sessionOfTurn,
  type TurnId,
  turnOfAnswer,
} from '../message/ids.ts';
import { type InboundMessage, idsOf, type PersonSender, sessionKeyOf } from '../message/message.ts';
import type { TranscriptEntry } from '../message/transcript.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER, type TurnPerson } from '../message/untrusted.ts';
import type { KnownAs, Persons } from '../people/persons.ts';
import { payloadOfText, type QuestionRows } from '../questions/question-rows.ts';
import type { SessionStore } from '../sessions/store.ts';
import { holdsUntrustedText } from './rules/coalesce.ts';

type OriginsDeps = {
  readonly judge: Judge;
  readonly knownAs: KnownAs;
  mediumOf(channel: string): Medium;
  policies(): Promise<ToolPolicies>;
  /** Whether its quote is from their private chat and untainted. */
  quotesOwn(message: InboundMessage): Promise<boolean>;
};

export type Origin = {
  readonly rights: Rights;
  /** The message contains untrusted content. */
  readonly isForeign: boolean;
  /** An owner in a private chat: they may be asked there. */
  readonly isOwnerHere: boolean;
  /** How often owners are asked; absent for senders without tools, and for internal senders. */
  readonly approvals?: ApprovalPolicy;
};

export type Origins = (message: InboundMessage) => Promise<Origin>;

export function createOrigins(deps: OriginsDeps): Origins {
  const { judge, knownAs, mediumOf, quotesOwn } = deps;
  return async (message) => {
    const { sender } = message;
    if (sender.kind === 'system') {
      const { rights = NO_RIGHTS, isTainted = false } = sender;
      return { rights, isForeign: isTainted, isOwnerHere: false };
    }
    const verdict = withoutCode(await judge(message));
    const medium = mediumOf(message.chat.channel);
    const standing = standingOf({ ...message, sender }, verdict, medium);
    const { channel } = message.chat;
    const group = message.group?.ids ?? [];
    const { role, place } = standing;
    const isOthers = medium === 'mail' || (place === 'group' && role !== 'owner');
    const whose = { channel, ids: idsOf(sender), group };
    const { names, approvals: chosen } = await knownAs(message);
    const policies = await deps.policies();
    const approvals = approvalPolicyOf(policies, standing, whose, chosen);
    const policy = { ...toolPolicyOf(policies, whose), approvals };
    const there = verdict.kind === 'refuse' ? NO_RIGHTS : rightsOf(standing, policy);
    // Another channel of the person does not restore what was revoked.
    const granted = narrowed(there, takenFrom(policies, names));
    const isTrusted = granted.trustsFiles === true;
    const isQuoteOwn = isTrusted && message.quoted !== undefined && (await quotesOwn(message));
    return {
      // A person who corrects a message has requested no action.
      rights: message.redoes?.isAsked === false ? narrowed(granted, LOOKING_RIGHTS) : granted,
      isForeign: isOthers || holdsUntrustedText(message, { isTrusted, isQuoteOwn }),
      isOwnerHere: role === 'owner' && place === 'direct' && medium === 'chat',
      ...(role === 'guest' || standing.verified === 'unverified' ? {} : { approvals }),
    };
  };
}

/**
 * Whether the quote of a message in a private chat is from the agent or the person and was
 * untainted: a quote keeps the mark of what it quotes, even if the conversation no longer shows it.
 */
export function createQuotesOwn({
  bus,
  sessions,
  questions,
}: {
  readonly bus: Pick<MessageBus, 'sentAs' | 'trace'>;
  readonly sessions: Pick<SessionStore, 'turn' | 'earlier'>;
  readonly questions: QuestionRows;
}): OriginsDeps['quotesOwn'] {
  /** Whether it is the answer to a command, or a question of an untainted turn. */
  async function isPlain(sent: MessageId): Promise<boolean> {
    const [, asked] = /^(.*)\/reply$/s.exec(sent) ?? [];
    const steps = asked === undefined ? undefined : (await bus.trace(messageId(asked)))?.steps;
    if (steps?.some(({ detail }) => PLAIN_COMMANDS.has(detail?.replace(/^command /, '') ?? '')))
      return true;
    return (await payloadOfText(questions, sent, TAINT))?.isTainted === false;
  }

  return async ({ chat, group, quoted, replyTo }) => {
    if (group !== undefined || quoted === undefined) return false;
    const sent = quoted.sentAs && (await bus.sentAs(sessionKeyOf(chat), quoted.sentAs));
    if (sent && (await isPlain(sent.id))) return true;
    const asked = replyTo === undefined ? undefined : await bus.trace(replyTo);
    const turn = sent ? turnOfAnswer(sent.id) : asked?.turnId;
    if (turn === undefined) return false;
    const isTheirs = quoted.sentAs === undefined;
    const isMeant = (entry: TranscriptEntry) =>
      !isTheirs ||
      // An id is only a number of the platform: the text must match as well.
      (entry.role === 'user' && entry.messageId === replyTo && entry.text.includes(quoted.text));
    const entries = (await entriesOf(sessions, turn)).filter(isMeant);
    return entries.length > 0 && !entries.some(isTouched);
  };
}

const TAINT = rowShape<{ readonly isTainted: boolean }>({ isTainted: flag });

/** Empty if they are in an older file, before a reset. */
async function entriesOf(sessions: Pick<SessionStore, 'turn' | 'earlier'>, turn: TurnId) {
  const session = sessionOfTurn(turn);
  const newest = await sessions.turn(session, turn);
  return newest.length > 0 ? newest : storedTurn(sessions, session, turn);
}

/** The entries of a turn as the files of the session have them, with whole results. */
export async function storedTurn(
  sessions: Pick<SessionStore, 'earlier'>,
  session: SessionKey,
  turn: TurnId,
): Promise<readonly TranscriptEntry[]> {
  const from = firstSeqOf(turn);
  if (from === undefined) return [];
  const { turns } = await sessions.earlier(session, { from, before: from + 1, maxTurns: 1 });
  return turns.flatMap(({ entries }) => entries);
}

/** A sender who was let in for one message is a guest. */
export function standingOf(
  { sender, addressing, group }: InboundMessage & { readonly sender: PersonSender },
  verdict: SettledVerdict,
  medium: Medium,
): SenderStanding {
  const isDirect = addressing === 'direct' && group === undefined;
  return {
    role: (verdict.kind === 'admit' ? verdict.role : undefined) ?? 'guest',
    place: isDirect ? 'direct' : 'group',
    verified: sender.verified,
    medium,
  };
}

// The person of a turn: an owner, another person, or a group. An unverified sender, and a chat of
// nobody, gets notes of its own and never the owner's.

const NAME_CHARS = 12;

export type TurnPersonOf = (message: InboundMessage) => Promise<TurnPerson>;

export function createTurnPersonOf(persons: Pick<Persons, 'author'>): TurnPersonOf {
  return async (message) => {
    const { sender } = message;
    if (sender.kind === 'system' && sender.person !== undefined) return sender.person;
    const isBetweenTwo = message.group === undefined && message.addressing === 'direct';
    const person = isBetweenTwo ? await persons.author(message) : undefined;
    return { notes: notesOf(message, person), ...waysOf(person) };
  };
}

function notesOf({ sender, chat }: InboundMessage, person: Person | undefined): string {
  if (person === undefined) {
    const { thread: _topic, ...whole } = chat;
    const name = hash('sha256', sessionKeyOf(whole)).slice(0, NAME_CHARS);
    return `${GROUPS_FOLDER}/g${name}/`;
  }
  if (sender.kind === 'person' && sender.verified === 'unverified') {
    return `${PEOPLE_FOLDER}/${person.id}-unverified/`;
  }
  return person.role === 'owner' ? '' : `${PEOPLE_FOLDER}/${person.id}/`;
}

function waysOf(person: Person | undefined): Omit<TurnPerson, 'notes'> {
  const { language, timeZone } = person ?? {};
  const name = language === undefined ? undefined : nameOfLanguage(language);
  return defined({ language: name, timeZone });
}

// What a person chose for one conversation: model, thinking, what happens to messages that come
// while a turn runs. Never global.

const SETTINGS = rowShape<SessionSettings>({
  model: text.optional(),
  beforeLocal: text.optional(),
  thinkingBudget: number.optional(),
  queueMode: text.optional(),
  mode: text.optional(),
  engine: text.optional(),
  trustedUntil: number.optional(),
});

export type SessionSettings = Partial<TurnSettings> & {
  /** The model that /local restores; undefined: the default model. */
  readonly beforeLocal?: string;
  readonly queueMode?: QueueMode;
};

type Changes = { readonly [Name in keyof SessionSettings]?: SessionSettings[Name] | undefined };

/** The part of it with which a turn runs. */
export function turnSettingsOf(
  { beforeLocal: _before, queueMode: _queue, ...chosen }: SessionSettings,
  { thinkingBudget }: { readonly thinkingBudget: number },
): TurnSettings {
  return { thinkingBudget, ...chosen };
}

export type SessionSettingsStore = ReturnType<typeof createSessionSettings>;

export function createSessionSettings(state: KeyValueStore) {
  const get = async (session: SessionKey): Promise<SessionSettings> =>
    jsonRow(await state.getCommitted(session), SETTINGS) ?? {};
  return {
    get,
    /** What is undefined is no longer chosen. */
    change: async (session: SessionKey, changes: Changes): Promise<void> =>
      state.set(session, JSON.stringify({ ...(await get(session)), ...changes })),
  };
}
