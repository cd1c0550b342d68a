// Messages that are not for the agent but have their place in the order of the session: an edit of
// an answered message, a person's wish for another answer, and a reaction to a message of the agent.

import type { Agent } from '../../agent/agent.ts';
import type { Channel } from '../../channels/channel.ts';
import { t } from '../../lib/texts.ts';
import { aborted } from '../../lib/time/clock.ts';
import { isSameChat } from '../access/person.ts';
import type { MessageBus, QueuedMessage, SentText, Turn, TurnResult } from '../bus/bus.ts';
import type { Kernel } from '../feature.ts';
import { DeliveryError } from '../message/errors.ts';
import {
  type AccountName,
  accountName,
  answerIdOf,
  type MessageId,
  messageId,
  type NativeId,
  sessionOfTurn,
  type TurnId,
  turnOfAnswer,
} from '../message/ids.ts';
import {
  againQuestion,
  type ChatRef,
  type InboundMessage,
  idsOf,
  reactionNote,
  sessionKeyOf,
  withChanges,
} from '../message/message.ts';
import {
  LIFETIME_MS,
  type OpenQuestion,
  type QuestionHandler,
} from '../questions/question-rows.ts';
import type { TurnStage } from './stages.ts';

type EditsDeps = Pick<Kernel, 'bus' | 'questions' | 'commands' | 'log'> & {
  readonly agent: Agent;
  channel(name: AccountName): Channel | undefined;
  /** What an edit of an answered message leads to. */
  afterAnswer(): 'offer' | 'edit' | 'ignore';
};

const AGAIN = 'again:';

export function editsStage(deps: EditsDeps): TurnStage {
  const { bus, agent, questions } = deps;
  const redo = createRedo(deps);

  async function changed(turn: Turn, answer: Answer): Promise<TurnResult> {
    const { seq, message } = turn.messages[0];
    const { amends, sender, chat } = message;
    if (amends !== undefined) await withdrawOffers(message);
    if (amends?.kind === 'again') return redo(turn, answer);
    if (amends?.kind !== 'edited') return { throughSeq: seq, outbound: [] };
    const when = (await isDuringAnswer(message, amends.id)) ? 'during' : 'after';
    const wanted = deps.afterAnswer();
    if (wanted === 'edit') return redo(turn, answer);
    if ((wanted === 'offer' || when === 'during') && sender.kind === 'person') {
      await questions.ask({
        id: `again/${message.id}`,
        chat,
        markdown: againQuestion(amends, when),
        choices: [{ label: t`Answer again`, action: 'again' }],
        approvers: idsOf(sender),
        subject: `${AGAIN}${message.id}`,
        expiresInMs: LIFETIME_MS.again,
      });
    }
    return { throughSeq: seq, outbound: [] };
  }

  /** It arrived too late for the turn that answers the message, but before that turn ended. */
  async function isDuringAnswer({ receivedAt }: InboundMessage, id: MessageId): Promise<boolean> {
    const trace = await bus.trace(id);
    const answeredAt = trace?.state === 'done' ? trace.steps.at(-1)?.at : undefined;
    return answeredAt !== undefined && receivedAt <= answeredAt;
  }

  /**
   * Withdraws offers for earlier versions of the message: a deleted message is not answered again.
   */
  async function withdrawOffers({ id, amends, chat }: InboundMessage): Promise<void> {
    for (const { id: question, subject } of await questions.open()) {
      if (!subject.startsWith(AGAIN) || subject === AGAIN + id) continue;
      const earlier = await bus.inbound(messageId(subject.slice(AGAIN.length)));
      if (earlier === undefined) continue;
      const isSame = earlier.amends?.id === amends?.id && isSameChat(earlier.chat, chat);
      if (isSame) await questions.withdraw(question);
    }
  }

  async function reacted(id: TurnId, { seq, message }: QueuedMessage): Promise<TurnResult> {
    const { reaction, chat } = message;
    const sent = reaction && (await bus.sentAs(sessionKeyOf(chat), reaction.to));
    if (sent !== undefined) {
      const turn = turnOfAnswer(sent.id);
      await agent.remark(turn === undefined ? sessionKeyOf(sent.chat) : sessionOfTurn(turn), {
        turnId: turn ?? id,
        messageId: message.id,
        text: reactionNote(message, sent.markdown),
      });
    }
    return { throughSeq: seq, outbound: [] };
  }

  return {
    name: 'edits',
    async run(turn, next) {
      const [queued] = turn.messages;
      if (queued.message.amends !== undefined) return changed(turn, next);
      return queued.message.reaction === undefined ? next(turn) : reacted(turn.id, queued);
    },
  };
}

/**
 * Handles "Answer again": a message of its own, the same for every press, because the person
 * requests it.
 */
export function createAgainHandler(deps: {
  readonly bus: Pick<MessageBus, 'accept' | 'inbound'>;
  readonly now: () => number;
}): QuestionHandler {
  return {
    async answer({ rest: id }) {
      const change = await deps.bus.inbound(messageId(id));
      if (change === undefined) return t`I no longer have that message. Please send it again.`;
      const { amends: _changed, ...said } = change;
      const message = { ...said, id: messageId(`${id}~again`), receivedAt: deps.now() };
      await deps.bus.accept([{ kind: 'queue', message }]);
      return '';
    },
  };
}

// Answers an exchange again: the earlier one is hidden as by /undo, and the new answer takes the place
// of the old one in the chat. Where the question was changed this happens automatically and therefore
// without other effects; where the person asked for it, the model is told which tools ran already. A
// retry after a crash finds everything again.

export type Answer = (turn: Turn) => Promise<TurnResult>;

/** For a turn whose first message changes an answered one. */
type Redo = (turn: Turn, answer: Answer) => Promise<TurnResult>;

type Messages = readonly [QueuedMessage, ...QueuedMessage[]];
type Plan = { readonly replaces: TurnId; readonly messages: Messages };

/** What the chat still shows of the replaced answer. */
type Earlier = {
  readonly isThere: boolean;
  readonly draft: NativeId | undefined;
  readonly rest: readonly NativeId[];
};

const RETRACT_DEADLINE_MS = 15_000;
const MARK = t`**Changed answer:**\n\n`;
const CHANGED_AGAIN = t`it was changed once more`;
const NOT_NEWEST = t`only the newest exchange is`;
const NOT_KEPT = t`what was asked is no longer kept`;
const IS_OPEN = t`a question about it waits for a decision first`;
const NOT_ASKED = t`it would be a command, or not all of it was asked by people`;

function createRedo(deps: EditsDeps): Redo {
  return async (turn, answer) => {
    const { seq, message } = turn.messages[0];
    const plan = await planned(turn, deps);
    if (typeof plan === 'string') {
      const told = { chat: turn.chat, markdown: t`Not answered again: ${plan}.` };
      const isAsked = message.amends?.kind === 'again' && plan !== CHANGED_AGAIN;
      const note = t`not answered again: ${plan}`;
      return { throughSeq: seq, outbound: isAsked ? [told] : [], note };
    }
    const earlier = await earlierAnswer(turn, plan.replaces, deps);
    const result = await answer(again(turn, plan.messages));
    const isReplaced = result.outbound.some(({ finalizes }) => finalizes === turn.id);
    if (earlier.draft !== undefined) {
      if (isReplaced) await retract(turn.chat, earlier.rest, deps);
      else await deps.bus.forgetDraft(turn.id);
    }
    const isMarked = earlier.isThere && !(isReplaced && earlier.draft !== undefined);
    return { ...(isMarked ? marked(result) : result), throughSeq: seq };
  };
}

/** What is asked again, or why nothing is. The earlier exchange is hidden then. */
async function planned(turn: Turn, deps: EditsDeps): Promise<Plan | string> {
  const { agent, bus, commands, questions } = deps;
  const [change, ...behind] = turn.messages;
  const { amends, id, receivedAt } = change.message;
  if (behind.some(({ message }) => message.amends?.id === amends?.id)) return CHANGED_AGAIN;
  const last = await agent.lastTurn(turn.session, id);
  const asked = last === undefined ? [] : await agent.asked(turn.session, last.turnId);
  if (last === undefined || !asked.some((one) => one.id === amends?.id)) return NOT_NEWEST;
  const kept = await Promise.all(
    asked.map(async (one) => ({ seq: one.seq, message: await bus.inbound(one.id) })),
  );
  const found = kept.filter((one): one is QueuedMessage => one.message !== undefined);
  if (found.length < kept.length) return NOT_KEPT;
  // A decision carries out what the earlier answer wanted: it would be done beside the new answer.
  const since = Math.min(...found.map(({ message }) => message.receivedAt));
  const isAbout = (one: OpenQuestion) => one.session === turn.session && one.askedAt >= since;
  if ((await questions.open()).some(isAbout)) return IS_OPEN;
  const replaces = last.turnId;
  const redoes = { turn: replaces, isAsked: amends?.kind === 'again' };
  const [first, ...rest] = withChanges([...found, change]).map((queued) => ({
    ...queued,
    // Asked now: an answer to it is not late.
    message: { ...queued.message, redoes, sentAt: receivedAt, receivedAt },
  }));
  const isQuestion = ({ message: { sender, text } }: QueuedMessage) =>
    sender.kind === 'person' && commands.find(text) === undefined;
  if (first === undefined || ![first, ...rest].every(isQuestion)) return NOT_ASKED;
  if (!last.isTakenBack) await agent.takeBack(turn.session, replaces, id);
  const ran = redoes.isAsked ? await agent.usedTools(turn.session, replaces) : [];
  if (ran.length === 0) return { replaces, messages: [first, ...rest] };
  const message = { ...first.message, note: ranNote(ran) };
  return { replaces, messages: [{ ...first, message }, ...rest] };
}

const ranNote = (tools: readonly string[]) =>
  `[I want another answer to this. What tools did for the earlier one stands: ${tools.join(', ')}. Do not do it twice.]`;

/** No message joins it: what follows is a question of its own. */
function again(turn: Turn, messages: Messages): Turn {
  const { id, session, chat, epoch, attempt, signal } = turn;
  return {
    ...{ id, session, chat, epoch, attempt, signal, messages },
    join: async () => [],
    async arrival(given) {
      await aborted(given);
      throw given.reason;
    },
  };
}

/**
 * Its first message becomes the draft of the new one, if the platform permits edits; a channel that can
 * mark it as replaced keeps it.
 */
async function earlierAnswer(
  { id, chat }: Turn,
  replaces: TurnId,
  { bus, channel }: EditsDeps,
): Promise<Earlier> {
  const { sent, isUnderWay } = await bus.takeBack(replaces);
  const isThere = isUnderWay || sent.length > 0;
  const first = sent.find((text) => text.id === answerIdOf(replaces, 0));
  const draft = first?.markdown.trim() === '' ? undefined : first?.parts[0];
  const isHere = first !== undefined && isSameChat(first.chat, chat);
  const mayEdit = channel(accountName(chat))?.editing !== undefined;
  const isAnswer = (text: SentText) => !text.id.startsWith(`${replaces}/say/`);
  const parts = sent
    .filter((text) => isAnswer(text) && isSameChat(text.chat, chat))
    .flatMap((text) => text.parts);
  const marking = channel(accountName(chat))?.retracting?.markReplaced;
  if (marking !== undefined && isHere && !isUnderWay) {
    await marking(chat, parts, AbortSignal.timeout(RETRACT_DEADLINE_MS));
    return { isThere: false, draft: undefined, rest: [] };
  }
  if (draft === undefined || !isHere || !mayEdit || isUnderWay) {
    return { isThere, draft: undefined, rest: [] };
  }
  await bus.recordDraft(id, chat, draft);
  return { isThere, draft, rest: parts.filter((part) => part !== draft) };
}

/** Best effort: messages too old to be deleted stay. */
async function retract(
  chat: ChatRef,
  parts: readonly NativeId[],
  { channel, log }: EditsDeps,
): Promise<void> {
  if (parts.length === 0) return;
  try {
    const signal = AbortSignal.timeout(RETRACT_DEADLINE_MS);
    await channel(accountName(chat))?.retracting?.retract(chat, parts, signal);
  } catch (error) {
    if (!(error instanceof DeliveryError)) throw error;
    log.info('rest of an answer not removed', { channel: chat.channel, error });
  }
}

function marked(result: TurnResult): TurnResult {
  const [first, ...rest] = result.outbound;
  if (first === undefined) return result;
  return { ...result, outbound: [{ ...first, markdown: `${MARK}${first.markdown}` }, ...rest] };
}
