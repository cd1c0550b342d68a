// A turn's answers as outbound messages: sent to the chat where its conversation is answered now,
// and only there.

import type { Channel } from '../../channels/channel.ts';
import { excerptOf, headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { withoutCode } from '../access/admission.ts';
import { isSameChat } from '../access/person.ts';
import {
  type LiveTopic,
  type MessageBus,
  type Turn,
  TurnDeferred,
  type TurnResult,
} from '../bus/bus.ts';
import type { Kernel } from '../feature.ts';
import type { Routes } from '../intake/routes.ts';
import { MediaError, type MediaStore } from '../media/media.ts';
import {
  type AccountName,
  accountName,
  type MessageId,
  messageId,
  type TurnId,
} from '../message/ids.ts';
import { questionOf } from '../message/late.ts';
import type {
  AgentEvent,
  ChatRef,
  InboundMessage,
  LiveUpdate,
  OutboundDraft,
  ToolActivity,
  TurnOutcome,
} from '../message/message.ts';
import type { TurnPersonOf } from './origins.ts';
import type { HandledTurn, NextStage, TurnStage } from './stages.ts';

/** The message an answer refers to: internal messages are in no chat. */
export function answered({ sender, replyTo, id }: InboundMessage): MessageId | undefined {
  return sender.kind === 'system' ? replyTo : id;
}

export type LongAnswerDeps = {
  readonly media: Pick<MediaStore, 'put'>;
  /** Of Markdown; 0: no limit. Read at each answer. */
  maxAnswerChars(): number;
  /** Redacts secrets from text that goes into a file. */
  redact(text: string): string;
  channel(name: AccountName): Channel | undefined;
};

type AnswerDeps = LongAnswerDeps & {
  readonly routes: Pick<Routes, 'answersTo'>;
  readonly personOf: TurnPersonOf;
};

/** The first answer completes the turn's live draft, if that is in the same chat. */
export async function resultOf(
  turn: Turn,
  throughSeq: number,
  answers: readonly string[],
  newest: InboundMessage,
  deps: AnswerDeps,
): Promise<TurnResult> {
  const { routes, personOf } = deps;
  const { timeZone } = await personOf(newest);
  const zone = timeZone === undefined ? {} : { timeZone };
  const chat = await routes.answersTo(turn.session, newest);
  const replyTo = isSameChat(chat, newest.chat) ? answered(newest) : undefined;
  const isShownThere = isSameChat(chat, turn.chat);
  const isAsked = newest.sender.kind === 'person';
  const asked = isAsked ? { question: { ...questionOf(newest), ...zone } } : {};
  const texts = await Promise.all(answers.map((markdown) => bounded(markdown, chat, deps)));
  const outbound = texts.map((text, index) => ({
    chat,
    ...text,
    ...(replyTo === undefined ? {} : { replyTo }),
    ...(index === 0 ? asked : {}),
    ...(index === 0 && isShownThere ? { finalizes: turn.id } : {}),
  }));
  return { throughSeq, outbound };
}

const REST_FILE = { kind: 'document', name: 'answer-rest.md', mimeType: 'text/markdown' } as const;

/**
 * An endless text of a model would fill the chat for an hour: its start is sent, and the rest as a
 * file if the channel carries files. Text for no person, e.g. for the turn of a parent, stays
 * whole.
 */
async function bounded(
  markdown: string,
  chat: ChatRef,
  { media, maxAnswerChars, redact, channel }: LongAnswerDeps,
): Promise<Pick<OutboundDraft, 'markdown' | 'attachments'>> {
  const maxChars = maxAnswerChars();
  const to = channel(accountName(chat));
  if (to === undefined || maxChars === 0 || markdown.length <= maxChars) return { markdown };
  const most = headOf(markdown, maxChars);
  const line = most.lastIndexOf('\n') + 1;
  const beginning = line > maxChars / 2 ? most.slice(0, line) : most;
  const rest = Buffer.from(redact(markdown.slice(beginning.length)));
  const shown = `${closed(beginning)}\n\n`;
  const size = t`This answer has ${markdown.length} characters and is too long for a chat`;
  const unsent = t`${shown}(${size}: the rest is left out. Ask for it in parts.)`;
  const maxBytes = to.attachments?.maxUploadBytes ?? 0;
  if (rest.length > maxBytes) return { markdown: unsent };
  try {
    const { id, sizeBytes } = await media.put(rest, { maxBytes });
    const attachments = [{ ...REST_FILE, media: id, sizeBytes }];
    return { markdown: t`${shown}(${size}: the rest is in ${REST_FILE.name}.)`, attachments };
  } catch (error) {
    if (!(error instanceof MediaError)) throw error;
    return { markdown: unsent };
  }
}

/** Closes a code block that was cut. */
function closed(beginning: string): string {
  const fences = beginning.match(/^ {0,3}(?:`{3,}|~{3,})/gm) ?? [];
  const open = fences.length % 2 === 1 ? fences.at(-1)?.trim() : undefined;
  return open === undefined ? beginning.trimEnd() : `${beginning.trimEnd()}\n${open}`;
}

/** Sent for a message that is given up; others of the chat may be waiting behind it. */
export function poisonAnswer({ chat, messages }: Turn): readonly OutboundDraft[] {
  const [{ message }] = messages;
  const words = excerptOf(message.text);
  const which = words === '' ? t`your last message` : t`your message “${words}”`;
  const markdown =
    t`I could not process ${which}: it failed several times. ` +
    t`I set it aside and continue with the next message.`;
  return [{ chat, markdown, replyTo: message.id }];
}

/** A text sent before the answer. */
export type Said = {
  readonly turn: Pick<Turn, 'id' | 'session'>;
  readonly newest: InboundMessage;
  /** Its number in the turn; the same one is sent once. */
  readonly ordinal: number;
  readonly said: Pick<OutboundDraft, 'markdown' | 'attachments'>;
};

export async function sendSaid(
  { turn, newest, ordinal, said }: Said,
  deps: LongAnswerDeps & {
    readonly bus: Pick<MessageBus, 'send'>;
    readonly routes: Pick<Routes, 'answersTo'>;
  },
): Promise<void> {
  const { bus, routes } = deps;
  const chat = await routes.answersTo(turn.session, newest);
  const replyTo = isSameChat(chat, newest.chat) ? answered(newest) : undefined;
  const id = messageId(`${turn.id}/say/${ordinal}`);
  const { markdown, attachments = [] } = await bounded(said.markdown, chat, deps);
  const files = [...(said.attachments ?? []), ...attachments];
  const text = { markdown, ...(files.length === 0 ? {} : { attachments: files }) };
  await bus.send({ id, chat, ...text, ...(replyTo === undefined ? {} : { replyTo }) });
}

// Folds a turn's events into the snapshot that live views show.

export type TurnView = ReturnType<typeof createTurnView>;

export function createTurnView(turnId: TurnId, chat: ChatRef, replyTo: MessageId | undefined) {
  let markdown = '';
  let callStart = 0;
  let notice: string | undefined;
  let phase: LiveUpdate['phase'] = 'thinking';
  let tools: readonly ToolActivity[] = [];

  const picture = (): LiveUpdate => ({
    turnId,
    chat,
    phase,
    markdown,
    tools,
    ...(replyTo === undefined ? {} : { replyTo }),
    ...(notice === undefined ? {} : { notice }),
  });

  return {
    /** Whether the person has seen anything of the answer. */
    get hasShown(): boolean {
      return markdown !== '' || tools.length > 0;
    },
    apply(event: AgentEvent): LiveUpdate {
      switch (event.type) {
        case 'thinking':
          phase = 'thinking';
          break;
        case 'text_delta':
          phase = 'writing';
          notice = undefined;
          markdown += event.text;
          break;
        case 'text_discarded':
          markdown = markdown.slice(0, callStart);
          break;
        case 'tool_started': {
          phase = 'tool';
          const { callId, name, detail } = event;
          tools = [...tools, { callId, name, detail, status: 'running' }];
          break;
        }
        case 'tool_finished':
          tools = tools.map((tool) =>
            tool.callId === event.callId
              ? { ...tool, status: event.status, preview: event.preview }
              : tool,
          );
          break;
        case 'model_called':
          if (markdown !== '' && !markdown.endsWith('\n\n')) markdown += '\n\n';
          callStart = markdown.length;
          break;
        case 'notice':
          notice = event.text;
          break;
      }
      return picture();
    },
    /** The last snapshot if the turn continues elsewhere. */
    moved: (): LiveUpdate => ({
      ...picture(),
      phase: 'ended',
      markdown: '',
      tools: [],
      result: { kind: 'moved', answers: 0 },
    }),
    /** The last snapshot; without an outcome the turn was interrupted and may be retried. */
    ended(outcome: TurnOutcome | undefined): LiveUpdate {
      phase = 'ended';
      if (outcome === undefined) return picture();
      return { ...picture(), result: { kind: outcome.kind, answers: outcome.answers.length } };
    },
  };
}

// Shows a running turn in the chat it began in, as long as its answer will be given there. Once the
// conversation has moved, what is there is removed and nothing more is shown.

type TurnShowDeps = {
  readonly live: LiveTopic;
  readonly clock: Clock;
  /** Whether the answer will be given where the turn began. */
  isHere(): Promise<boolean>;
};

/** Looking costs a read of the store, and tokens of an answer come every few milliseconds. */
const LOOK_AGAIN_MS = 100;

export type TurnShow = ReturnType<typeof turnShow>;

export function turnShow(view: TurnView, { live, clock, isHere: isStillHere }: TurnShowDeps) {
  let hasMoved = false;
  let lookedAt = Number.NEGATIVE_INFINITY;

  async function look(): Promise<void> {
    lookedAt = clock.monotonic();
    const isHere = await isStillHere();
    if (isHere || hasMoved) return;
    hasMoved = true;
    live.publish(view.moved());
  }

  return {
    async show(event: AgentEvent): Promise<void> {
      const picture = view.apply(event);
      if (clock.monotonic() - lookedAt >= LOOK_AGAIN_MS) await look();
      if (!hasMoved) live.publish(picture);
    },
    async end(outcome: TurnOutcome | undefined): Promise<void> {
      await look();
      if (!hasMoved) live.publish(view.ended(outcome));
    },
  };
}

// Turn stages that leave a message unanswered: its sender is blocked, or its account is over a
// limit.
// A blocked sender gets no more answers: waiting messages are set aside, and a turn that runs in
// the sender's own chat is cancelled.

/** Polled: the CLI blocks people in a process of its own. */
const LOOK_MS = 1000;

export function blockedSendersStage({
  judge,
  bus,
  clock,
  log,
}: Pick<Kernel, 'judge' | 'bus' | 'clock' | 'log'>): TurnStage {
  async function isBlocked(message: InboundMessage): Promise<boolean> {
    const verdict = withoutCode(await judge(message));
    return verdict.kind === 'refuse' && verdict.isBlocked === true;
  }

  async function watched(turn: Turn, next: NextStage): Promise<HandledTurn> {
    const { session } = turn;
    const [{ message }] = turn.messages;
    let isOver = false;
    let looking = lookLater();

    function lookLater(): Disposable {
      return clock.timer(LOOK_MS, () => {
        look().catch((error) => log.warn('sender of a turn not checked', { error }));
      });
    }

    async function look() {
      const blocked = await isBlocked(message);
      if (isOver) return;
      if (!blocked) {
        looking = lookLater();
        return;
      }
      log.info('turn stopped: its sender is blocked', { session });
      await bus.cancel(session, 'sender is blocked');
    }

    try {
      return await next(turn);
    } finally {
      isOver = true;
      looking[Symbol.dispose]();
    }
  }

  return {
    name: 'blocked-senders',
    async run(turn, next) {
      const [{ seq, message }] = turn.messages;
      if (message.sender.kind === 'system') return next(turn);
      if (await isBlocked(message)) {
        log.info('message dropped: its sender is blocked', { session: turn.session });
        return { throughSeq: seq, outbound: [] };
      }
      return message.group === undefined ? watched(turn, next) : next(turn);
    },
  };
}

// Asks the account of a message whether it is answered now, before anything is paid for: what a
// limit holds back waits in the queue, and what it refuses ends with a note in the trace.

export function accountLimitsStage(
  deps: Pick<Kernel, 'log'> & Pick<LongAnswerDeps, 'channel'>,
): TurnStage {
  return {
    name: 'limits',
    async run(turn, next) {
      const [{ seq, message }] = turn.messages;
      const channel = deps.channel(accountName(message.chat));
      const admission = await channel?.admit?.(message, turn.attempt > 1);
      if (admission === undefined || admission.kind === 'answer') return next(turn);
      const { reason } = admission;
      if (admission.kind === 'wait') throw new TurnDeferred(reason, admission.until);
      deps.log.info('message not answered', { messageId: message.id, reason });
      const { notice: markdown } = admission;
      const { chat, id: replyTo } = message;
      const outbound = markdown === undefined ? [] : [{ chat, markdown, replyTo }];
      return { throughSeq: seq, outbound, note: reason };
    },
  };
}
