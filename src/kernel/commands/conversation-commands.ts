// The chat commands about one's conversations: /new, /undo and /restore, /context (what the next call takes of the
// model's context window) and /sessions.

import type { Agent } from '../../agent/agent.ts';
import type { Revisions } from '../../agent/revise.ts';
import type { ContextReport } from '../../agent/rules/context-fit.ts';
import type { Channel } from '../../channels/channel.ts';
import type { Persons } from '../../features/people/persons.ts';
import type { Logger } from '../../lib/logger.ts';
import { createMinuteText } from '../../lib/time/zone-time.ts';
import { CONVERSATION, PERSONAL } from '../access/command-access.ts';
import { chatsOf, type Person } from '../access/person.ts';
import type { MessageBus, SentText } from '../bus/bus.ts';
import type { Routes } from '../intake/routes.ts';
import { type AccountName, accountName } from '../message/account.ts';
import { isSameSender } from '../message/change.ts';
import { DeliveryError } from '../message/errors.ts';
import type { SessionKey, TurnId } from '../message/ids.ts';
import { chatRefOf, type InboundMessage, sessionKeyOf } from '../message/message.ts';
import { firstWords, verbatim } from '../message/untrusted.ts';
import type { RestorePoint } from '../sessions/rules/carry.ts';
import { type Command, type CommandOrigin, type CommandTable, commandsOf } from './command.ts';

const MAX_LISTED = 20;
const KILOBYTE = 1000;

export const CONVERSATION_COMMANDS = {
  new: { summary: 'begin a new conversation', access: CONVERSATION, timing: 'in_order' },
  undo: { summary: 'take the last answer back', access: CONVERSATION, timing: 'in_order' },
  restore: {
    summary: 'bring back what /new or /undo took out of sight',
    usage: '/restore [list | number]',
    access: { direct: 'guest', group: 'owner' },
    timing: 'in_order',
  },
  context: {
    summary: 'what fills the model’s memory of this conversation',
    access: CONVERSATION,
    timing: 'in_order',
  },
  sessions: {
    summary: 'your conversations',
    usage: '/sessions [all]',
    access: PERSONAL,
    timing: 'immediate',
  },
} satisfies CommandTable;

export type ConversationInfo = {
  readonly key: SessionKey;
  readonly messages: number;
  readonly bytes: number;
  /** Epoch milliseconds. */
  readonly updatedAt: number;
};

/** What people can see of their conversations, and bring back. */
export interface ConversationDesk extends Pick<Revisions, 'restorable' | 'restore' | 'outcome'> {
  /** What the next call of this conversation would take, for whoever asks. */
  context(message: InboundMessage): Promise<ContextReport>;
  /** Newest first; of those that are named, or the newest of all. */
  sessions(
    which: readonly SessionKey[] | { readonly newest: number },
  ): Promise<readonly ConversationInfo[]>;
}

export type ConversationCommandDeps = {
  readonly conversations: ConversationDesk;
  readonly people: {
    readonly persons: Pick<Persons, 'author' | 'get' | 'inChat'>;
    readonly routes: Pick<Routes, 'sessionOf'>;
  };
  beginAnew(session: SessionKey, message: InboundMessage): Promise<void>;
  /** Takes the last answer back; the text for the person. */
  undo(origin: CommandOrigin): Promise<string>;
};

export function conversationCommands(deps: ConversationCommandDeps): readonly Command[] {
  return commandsOf(CONVERSATION_COMMANDS, {
    async new({ session, message }) {
      await deps.beginAnew(session, message);
      return 'New conversation. The old one is saved; /restore brings it back.';
    },
    undo: (origin) => deps.undo(origin),
    restore: (origin, argument) => restore(origin, argument, deps),
    context: async ({ message }) => contextText(await deps.conversations.context(message)),
    sessions: (origin, argument) => sessions(origin, argument, deps),
  });
}

async function restore(
  { session, message }: CommandOrigin,
  argument: string,
  deps: ConversationCommandDeps,
): Promise<string> {
  const { conversations } = deps;
  const isList = argument === 'list';
  const number = argument === '' ? 1 : /^[1-9]$/.test(argument) ? Number(argument) : undefined;
  if (number === undefined && !isList) return RESTORE_HINT;
  if (isList) {
    const points = await conversations.restorable(session);
    if (points.length === 0) return NOTHING;
    const zone = await zoneOf(message, deps);
    const lines = points.map((point, index) => `${index + 1}. ${pointWords(point, zone)}`);
    return `${lines.join('\n')}\n\n${RESTORE_HINT}`;
  }
  const restored = await conversations.restore(session, (number ?? 1) - 1, message.id);
  if (restored === undefined) return NOTHING;
  if (restored === 'done before') return 'It is in sight again.';
  return `In sight again: ${pointWords(restored, await zoneOf(message, deps))}`;
}

const NOTHING = 'There is nothing of that kind to bring back in this conversation.';
const RESTORE_HINT =
  'Say /restore for the newest, /restore list to see what there is, or /restore with its number.';

function pointWords({ kind, at, text, messages }: RestorePoint, timeZone: string): string {
  const count = messages === 1 ? '1 message' : `${messages} messages`;
  const how = kind === 'new' ? 'before /new' : 'taken back by /undo';
  return `${verbatim(firstWords(text))} (${count}, ${how}, ${minuteText(at, timeZone)})`;
}

const minuteText = createMinuteText();

async function zoneOf(
  message: CommandOrigin['message'],
  { people }: ConversationCommandDeps,
): Promise<string> {
  return (await people.persons.author(message))?.timeZone ?? '';
}

function contextText(report: ContextReport): string {
  const { model, prompt, tools, summary, nodes, working, conversation, images, cleared, total } =
    report;
  const share = Math.round((total / report.contextTokens) * 100);
  const promptTokens = prompt.reduce((sum, { tokens }) => sum + tokens, 0);
  const estimate = report.isCorrected
    ? 'Estimated, corrected by what the provider counted.'
    : 'Estimated: the provider has not counted for this model yet.';
  return [
    `The next call takes about ${count(total)} of ${count(report.contextTokens)} tokens of ${model} (${share} %), your message not counted:`,
    `- System prompt: ${count(promptTokens)}`,
    ...prompt.map(({ name, tokens }) => `  - ${name}: ${count(tokens)}`),
    `- Tools offered (${tools.count}): ${count(tools.tokens)}${tools.leftOut === 0 ? '' : `; ${tools.leftOut} left out for lack of room`}`,
    ...(summary === 0 ? [] : [`- Summary of what came before: ${count(summary)}`]),
    ...nodes.map(({ id, style, tokens }) => `  - node ${id} (${style}): ${count(tokens)}`),
    ...(working === 0 ? [] : [`- Working memory of what came before: ${count(working)}`]),
    `- Conversation (${conversation.messages} messages): ${count(conversation.tokens)}`,
    ...(images === 0 ? [] : [`- Images: ${count(images)}`]),
    ...(cleared === 0 ? [] : [`- Results of tools cleared to save room: ${cleared}`]),
    ...(report.rewritten === 0
      ? []
      : [`- Shown shorter than they were, or left out: ${report.rewritten} entries`]),
    ...(report.summedUpAbove === undefined
      ? []
      : [`- Summed up above: ${count(report.summedUpAbove)}`]),
    `- Limit: ${count(report.inputTokens)}; above it the oldest exchanges are left out, never the last one`,
    estimate,
  ].join('\n');
}

const count = (tokens: number) => tokens.toLocaleString('en-US');

async function sessions(
  origin: CommandOrigin,
  argument: string,
  deps: ConversationCommandDeps,
): Promise<string> {
  const { message, session, role } = origin;
  const { conversations, people } = deps;
  const zone = await zoneOf(message, deps);
  if (argument === 'all') {
    if (role !== 'owner') return 'Only my owner can see the conversations of all.';
    const all = await conversations.sessions({ newest: MAX_LISTED });
    return listText(all, session, zone, await namesOf(all, deps));
  }
  if (argument !== '') return 'Say /sessions, or /sessions all as my owner.';
  const person = await people.persons.author(message);
  const known = person === undefined ? undefined : await people.persons.get(person.id);
  const keys = await keysOf(known, session, deps);
  const own = await conversations.sessions(keys);
  const hint = own.length > 1 ? '\n\nTake one along to another door with /continue.' : '';
  return `${listText(own, session, zone)}${hint}`;
}

/** Of every door of theirs: its own and the one it takes part in now. */
async function keysOf(
  person: Person | undefined,
  here: SessionKey,
  { people }: ConversationCommandDeps,
): Promise<readonly SessionKey[]> {
  const chats = person === undefined ? [] : chatsOf(person);
  const routed = await Promise.all(chats.map((chat) => people.routes.sessionOf(chat)));
  const shared = person?.session === undefined ? [] : [person.session];
  return [...new Set([here, ...shared, ...routed, ...chats.map(sessionKeyOf)])];
}

/** Of the people whose private chats they are. */
async function namesOf(
  all: readonly ConversationInfo[],
  { people }: ConversationCommandDeps,
): Promise<ReadonlyMap<SessionKey, string>> {
  const names = new Map<SessionKey, string>();
  for (const { key } of all) {
    const chat = chatRefOf(key);
    const person = chat === undefined ? undefined : await people.persons.inChat(chat);
    if (person !== undefined && person.name !== '') names.set(key, person.name);
  }
  return names;
}

function listText(
  all: readonly ConversationInfo[],
  here: SessionKey,
  timeZone: string,
  names: ReadonlyMap<SessionKey, string> = new Map(),
): string {
  if (all.length === 0) return 'Nothing was said yet.';
  const lines = all.map(({ key, updatedAt, messages, bytes }) => {
    const mark = key === here ? ', this one' : '';
    const size = `${Math.max(1, Math.round(bytes / KILOBYTE))} kB`;
    const name = names.get(key);
    const shown = name === undefined ? verbatim(key) : `${verbatim(name)} (${verbatim(key)})`;
    return `- ${shown}${mark}: ${messages} messages, ${size}, last ${minuteText(updatedAt, timeZone)}`;
  });
  return lines.join('\n');
}

// `/undo`: takes the last answer out of the chat, where the platform lets us, and the exchange out of
// what the model is shown. A repeat of the command after a crash takes back nothing further.

export type UndoDeps = {
  readonly agent: Pick<Agent, 'lastTurn' | 'takeBack'>;
  readonly bus: Pick<MessageBus, 'inbound' | 'takeBack' | 'draft' | 'forgetDraft'>;
  readonly log: Logger;
  channel(name: AccountName): Channel | undefined;
};

const RETRACT_DEADLINE_MS = 30_000;
const NOTHING_TO_UNDO = 'There is no answer to take back.';
const NOT_YOURS = 'Only my owner or whoever asked can take that answer back.';
const FORGOTTEN = 'I take no account of the last exchange any more.';

export function createUndo(deps: UndoDeps): (origin: CommandOrigin) => Promise<string> {
  const { agent, bus } = deps;
  return async (origin) => {
    const { session, message } = origin;
    const last = await agent.lastTurn(session, message.id);
    if (last === undefined) return NOTHING_TO_UNDO;
    if (!last.isTakenBack) {
      const asked = last.askedBy === undefined ? undefined : await bus.inbound(last.askedBy);
      const isTheirs = asked === undefined || isSameSender(asked.sender, message.sender);
      // Among several, an answer that nobody is known to have asked for is the owner's to take back.
      const isSure = asked !== undefined || message.group === undefined;
      if (origin.role !== 'owner' && !(isTheirs && isSure)) return NOT_YOURS;
      await agent.takeBack(session, last.turnId, message.id);
    }
    return `${FORGOTTEN} ${await retractAll(last.turnId, message.chat, deps)}`;
  };
}

async function retractAll(
  turnId: TurnId,
  chat: CommandOrigin['message']['chat'],
  deps: UndoDeps,
): Promise<string> {
  const { bus } = deps;
  const { sent, isUnderWay } = await bus.takeBack(turnId);
  const draft = isUnderWay ? undefined : (await bus.draft(turnId))?.nativeId;
  const draftText = draft === undefined ? [] : [{ chat, parts: [draft] }];
  const texts = [...sent, ...draftText].filter(({ parts }) => parts.length > 0);
  const kept = await keptParts(texts, deps);
  if (draft !== undefined) await bus.forgetDraft(turnId);
  const late = isUnderWay ? ' A part of it was on its way and may still arrive.' : '';
  if (kept === 'nothing') return `What I said is gone from this chat.${late}`;
  return `What I said still stands in this chat: ${kept}.${late}`;
}

/** Why something still stands in the chat. */
async function keptParts(
  texts: readonly Pick<SentText, 'chat' | 'parts'>[],
  { channel, log }: UndoDeps,
): Promise<string> {
  let kept = 'nothing';
  for (const { chat, parts } of texts) {
    const retracting = channel(accountName(chat))?.retracting;
    if (retracting === undefined) return 'here nothing can be taken away';
    try {
      await retracting.retract(chat, parts, AbortSignal.timeout(RETRACT_DEADLINE_MS));
    } catch (error) {
      if (!(error instanceof DeliveryError)) throw error;
      log.info('answer not taken away', { channel: chat.channel, error });
      kept = 'some of it could not be taken away (it may be too old)';
    }
  }
  return kept;
}
