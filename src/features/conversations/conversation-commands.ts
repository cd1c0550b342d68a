// The chat commands about one's conversations: /new, /undo, /restore, /context (what the next call
// uses of the model's context window). /sessions is loaded on use.

import type { Agent, CompactionReport } from '../../agent/agent.ts';
import { COMPACTION_ENGINES, type CompactionEngine } from '../../agent/compaction-settings.ts';
import type { ContextReport } from '../../agent/rules/context-fit.ts';
import type { SentText } from '../../kernel/bus/bus.ts';
import {
  CONVERSATION,
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
  PERSONAL,
} from '../../kernel/commands/command-access.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { DeliveryError } from '../../kernel/message/errors.ts';
import type { SessionKey, TurnId } from '../../kernel/message/ids.ts';
import { accountName } from '../../kernel/message/ids.ts';
import { type ChatRef, type InboundMessage, isSameSender } from '../../kernel/message/message.ts';
import { firstWords, verbatim } from '../../kernel/message/untrusted.ts';
import type { RestorePoint } from '../../kernel/sessions/rules/carry.ts';
import type { SessionSettings, SessionSettingsStore } from '../../kernel/turns/origins.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import { createMinuteText } from '../../lib/time/zone-time.ts';
import { taintText } from './why-command.ts';

export const CONVERSATION_COMMANDS = {
  new: { summary: t`begin a new conversation`, access: CONVERSATION, timing: 'in_order' },
  undo: { summary: t`take back the last answer`, access: CONVERSATION, timing: 'in_order' },
  restore: {
    summary: t`bring back what /new or /undo removed`,
    usage: '/restore [list | number]',
    access: { direct: 'guest', group: 'owner' },
    timing: 'in_order',
  },
  context: {
    summary: t`show what fills the context window`,
    access: CONVERSATION,
    timing: 'in_order',
  },
  sessions: {
    summary: t`your conversations: list, show, search, export, archive, purge`,
    usage:
      '/sessions [all] [list | show [number] | search <words> | export [number] [md | jsonl] | archive [30d] | purge <age> | index]',
    aliases: ['ss'],
    access: { ...PERSONAL, audited: true },
    timing: 'in_order',
  },
} satisfies CommandTable;

type ConversationCommandDeps = Pick<Kernel, 'bus' | 'log' | 'channels'> & {
  readonly agent: Agent;
  context(message: InboundMessage): Promise<ContextReport>;
  /** IANA zone of the author; empty: the machine's. */
  zoneOf(message: InboundMessage): Promise<string>;
  sessions(origin: CommandOrigin, argument: string): Promise<string>;
  beginAnew(session: SessionKey, message: InboundMessage): Promise<void>;
};

export function conversationCommands(deps: ConversationCommandDeps): readonly Command[] {
  return commandsOf(CONVERSATION_COMMANDS, {
    async new({ session, message }) {
      await deps.beginAnew(session, message);
      return t`New conversation. The old one is saved; /restore brings it back.`;
    },
    undo: (origin) => undo(origin, deps),
    restore: (origin, argument) => restore(origin, argument, deps),
    async context({ message }) {
      const report = await deps.context(message);
      const taint = taintText(report, message.receivedAt, await deps.zoneOf(message));
      return [contextText(report), ...(report.untrusted.length === 0 ? [] : [taint])].join('\n\n');
    },
    sessions: deps.sessions,
  });
}

async function restore(
  { session, message }: CommandOrigin,
  argument: string,
  deps: ConversationCommandDeps,
): Promise<string> {
  const { agent } = deps;
  const isList = argument === 'list';
  const number = argument === '' ? 1 : /^[1-9]$/.test(argument) ? Number(argument) : undefined;
  if (number === undefined && !isList) return RESTORE_HINT;
  if (isList) {
    const points = await agent.restorable(session);
    if (points.length === 0) return NOTHING;
    const zone = await deps.zoneOf(message);
    const lines = points.map((point, index) => `${index + 1}. ${pointWords(point, zone)}`);
    return `${lines.join('\n')}\n\n${RESTORE_HINT}`;
  }
  const restored = await agent.restore(session, (number ?? 1) - 1, message.id);
  if (restored === undefined) return NOTHING;
  if (restored === 'done before') return t`It is restored.`;
  return t`Restored: ${pointWords(restored, await deps.zoneOf(message))}`;
}

const NOTHING = t`There is nothing to restore in this conversation.`;
const RESTORE_HINT = t`Usage: /restore for the newest, /restore list to see all, or /restore <number>.`;

const messagesText = (count: number) =>
  ngettext(msgid`${count} message`, `${count} messages`, count);

function pointWords({ kind, at, text, messages }: RestorePoint, timeZone: string): string {
  const count = messagesText(messages);
  const how = kind === 'new' ? 'before /new' : t`taken back by /undo`;
  return `${verbatim(firstWords(text))} (${count}, ${how}, ${minuteText(at, timeZone)})`;
}

const minuteText = createMinuteText();

function contextText(report: ContextReport): string {
  const { model, prompt, tools, summary, nodes, working, conversation, images, cleared, total } =
    report;
  const share = Math.round((total / report.contextTokens) * 100);
  const promptTokens = prompt.reduce((sum, { tokens }) => sum + tokens, 0);
  const estimate = report.isCorrected
    ? t`Estimated, corrected by the provider’s counts.`
    : t`Estimated; the provider has sent no counts for this model yet.`;
  return [
    t`The next call takes about ${count(total)} of ${count(report.contextTokens)} tokens of ${model} (${share} %), not counting your message:`,
    t`- System prompt: ${count(promptTokens)}`,
    ...prompt.map(({ name, tokens }) => `  - ${name}: ${count(tokens)}`),
    t`- Tools offered (${tools.count}): ${count(tools.tokens)}${tools.leftOut === 0 ? '' : t`; ${tools.leftOut} left out to save room`}`,
    ...(summary === 0 ? [] : [t`- Summary of the earlier conversation: ${count(summary)}`]),
    ...nodes.map(({ id, style, tokens }) => t`  - node ${id} (${style}): ${count(tokens)}`),
    ...(working === 0 ? [] : [t`- Working memory: ${count(working)}`]),
    t`- Conversation (${conversation.messages} messages): ${count(conversation.tokens)}`,
    ...(images === 0 ? [] : [t`- Images: ${count(images)}`]),
    ...(cleared === 0 ? [] : [t`- Tool results cleared to save room: ${cleared}`]),
    ...(report.rewritten === 0 ? [] : [t`- Shortened or left out: ${report.rewritten} entries`]),
    ...(report.summedUpAbove === undefined
      ? []
      : [t`- Summarised above: ${count(report.summedUpAbove)}`]),
    t`- Limit: ${count(report.inputTokens)}; above it the oldest exchanges are left out, never the last one`,
    estimate,
  ].join('\n');
}

const count = (tokens: number) => tokens.toLocaleString('en-US');

// The command `/undo`: removes the last answer from the chat, where the platform allows it, and
// hides the exchange from the model. A repetition of the command after a crash undoes nothing
// further.

const RETRACT_DEADLINE_MS = 30_000;
const NOTHING_TO_UNDO = t`There is no answer to take back.`;
const NOT_YOURS = t`Only my owner or the person who asked can take that answer back.`;
const FORGOTTEN = t`I no longer take the last exchange into account.`;

async function undo(
  { session, message, role }: CommandOrigin,
  deps: ConversationCommandDeps,
): Promise<string> {
  const { agent, bus } = deps;
  const last = await agent.lastTurn(session, message.id);
  if (last === undefined) return NOTHING_TO_UNDO;
  if (!last.isTakenBack) {
    const asked = last.askedBy === undefined ? undefined : await bus.inbound(last.askedBy);
    const isTheirs = asked === undefined || isSameSender(asked.sender, message.sender);
    // In a group, only an owner may undo an answer without a known asker.
    const isSure = asked !== undefined || message.group === undefined;
    if (role !== 'owner' && !(isTheirs && isSure)) return NOT_YOURS;
    await agent.takeBack(session, last.turnId, message.id);
  }
  return `${FORGOTTEN} ${await retractAll(last.turnId, message.chat, deps)}`;
}

async function retractAll(
  turnId: TurnId,
  chat: ChatRef,
  deps: ConversationCommandDeps,
): Promise<string> {
  const { bus } = deps;
  const { sent, isUnderWay } = await bus.takeBack(turnId);
  const draft = isUnderWay ? undefined : (await bus.draft(turnId))?.nativeId;
  const draftText = draft === undefined ? [] : [{ chat, parts: [draft] }];
  const texts = [...sent, ...draftText].filter(({ parts }) => parts.length > 0);
  const kept = await keptParts(texts, deps);
  if (draft !== undefined) await bus.forgetDraft(turnId);
  const late = isUnderWay ? t` Part of it was already on its way and may still arrive.` : '';
  if (kept === 'nothing') return t`My answer is deleted from this chat.${late}`;
  return t`My answer is still in this chat: ${kept}.${late}`;
}

/** Why parts of the answer are still in the chat. */
async function keptParts(
  texts: readonly Pick<SentText, 'chat' | 'parts'>[],
  { channels, log }: ConversationCommandDeps,
): Promise<string> {
  let kept = 'nothing';
  for (const { chat, parts } of texts) {
    const retracting = channels.get(accountName(chat))?.retracting;
    if (retracting === undefined) return t`messages cannot be deleted here`;
    try {
      await retracting.retract(chat, parts, AbortSignal.timeout(RETRACT_DEADLINE_MS));
    } catch (error) {
      if (!(error instanceof DeliveryError)) throw error;
      log.info('answer not removed', { channel: chat.channel, error });
      kept = t`some of it could not be taken away (it may be too old)`;
    }
  }
  return kept;
}

// The command `/compact`: summarises the earlier part of a conversation now, and reports the
// result.

const FAILED =
  t`The conversation could not be summarised. Nothing is lost: I leave out the oldest part that does ` +
  t`not fit and try again later.`;

export const COMPACT_COMMANDS = {
  compact: {
    summary: t`summarise the earlier conversation`,
    usage: `/compact [engine [${COMPACTION_ENGINES.join(' | ')} | default]]`,
    access: CONVERSATION,
    timing: 'in_order',
  },
} satisfies CommandTable;

type CompactCommandDeps = {
  readonly settings: SessionSettingsStore;
  compact(
    session: SessionKey,
    message: InboundMessage,
    chosen: SessionSettings,
  ): Promise<CompactionReport>;
  /** The engine of sessions without a choice of their own. */
  configured(): CompactionEngine;
};

export function compactCommands(deps: CompactCommandDeps): readonly Command[] {
  return commandsOf(COMPACT_COMMANDS, {
    async compact(origin, argument) {
      const [word = '', wanted = ''] = argument.trim().toLowerCase().split(/\s+/);
      if (word === 'engine') return engine(origin, wanted, deps);
      if (word !== '') return t`Usage: /compact, or /compact engine <name>.`;
      const { session, message } = origin;
      const chosen = await deps.settings.get(session);
      return wordsFor(await deps.compact(session, message, chosen));
    },
  });
}

const ABOUT: Readonly<Record<CompactionEngine, string>> = {
  summary: t`One text replaces the earlier conversation; I can still look up every message.`,
  lossless: t`Nodes replace the earlier conversation; each can be expanded to its messages.`,
};

async function engine(
  { session }: CommandOrigin,
  wanted: string,
  { configured, settings }: CompactCommandDeps,
): Promise<string> {
  if (wanted === '') {
    const { engine: chosen = configured() } = await settings.get(session);
    return described(t`The engine is`, chosen);
  }
  if (wanted === 'default') {
    await settings.change(session, { engine: undefined });
    return described(t`Back to the configured engine:`, configured());
  }
  const known = COMPACTION_ENGINES.find((each) => each === wanted);
  if (known === undefined) return t`Engines: ${COMPACTION_ENGINES.join(', ')}.`;
  await settings.change(session, { engine: known });
  return described(t`From now on the engine is`, known);
}

const described = (head: string, name: CompactionEngine) => `${head} ${name}. ${ABOUT[name]}`;

function wordsFor(report: CompactionReport): string {
  switch (report.kind) {
    case 'compacted': {
      const [before, after] = [report.tokensBefore, report.tokensAfter].map(tokens);
      const messages = messagesText(report.messages);
      return t`${messages} summarised: the conversation took about ${before} tokens and now takes ${after}. The last exchange stays as it is, and I can still look up the others.`;
    }
    case 'nothing':
      return t`There is nothing to summarise: the conversation takes about ${tokens(report.tokens)} tokens.`;
    case 'failed':
      return report.text === undefined ? FAILED : `${report.text}\n\n${FAILED}`;
  }
}

const tokens = (count: number) => count.toLocaleString('en-US');
