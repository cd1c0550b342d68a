// The guards of calls, each in the order of the composition root. Every try of a model call passes
// its guards: one refuses the call, reserves its possible cost, or passes it to the next. A tool
// call that needs an approval goes to the call guards: the first that decides lets it run, refuses
// it or makes it wait.

import type {
  AskedOwner,
  AskedPerson,
  CallToApprove,
  LetterToPost,
  PlannedCall,
  Refusal,
  Reservation,
  SpendingGuard,
} from '../agent/agent.ts';
import type { ToolOutcome } from '../tools/tool.ts';
import type { MessageId, SessionKey, TurnId } from './message/ids.ts';
import type { ChatRef, InboundMessage, SystemSender } from './message/message.ts';
import type { TurnPerson } from './message/untrusted.ts';
import { port } from './ports.ts';

export interface ModelGuard {
  readonly name: string;
  /** @throws the signal's reason */
  reserve(
    call: PlannedCall,
    signal: AbortSignal,
    next: SpendingGuard['reserve'],
  ): Promise<Reservation | Refusal>;
  /** Set if the guard influences which model is called. */
  readonly modelFor?: SpendingGuard['modelFor'];
}

/** The last guard: reserves the cost of calls. */
export const budgetGuard = (budgets: SpendingGuard): ModelGuard => ({
  name: 'budgets',
  reserve: (call, signal) => budgets.reserve(call, signal),
  modelFor: (...asked) => budgets.modelFor(...asked),
});

/** Without a guard that reserves anything there is room for every answer. */
const unlimited: SpendingGuard['reserve'] = async ({ outputTokens }) => ({
  ...{ kind: 'reserved', outputTokens },
  settle: () => undefined,
});

/** `read`: outermost first, called once, before the first call. */
export function guardedModelCalls(read: () => readonly ModelGuard[]): SpendingGuard {
  let known: readonly ModelGuard[] | undefined;
  const guards = () => {
    known ??= read();
    return known;
  };
  return {
    reserve: (call, signal) =>
      guards().reduceRight<SpendingGuard['reserve']>(
        (next, guard) => (each, until) => guard.reserve(each, until, next),
        unlimited,
      )(call, signal),
    modelFor: (payer, model, cheaper) =>
      guards().reduce((named, guard) => guard.modelFor?.(payer, named, cheaper) ?? named, model),
  };
}

/** `run`: an allow rule permits exactly this. Undefined: later guards decide. */
type CallVerdict = 'run' | AskedOwner | undefined;

export type CallGuard = {
  readonly name: string;
  judge(call: CallToApprove, turn: AskingTurn): Promise<CallVerdict>;
};

/** The turn for which owners are asked. */
export type AskingTurn = {
  readonly session: SessionKey;
  readonly turnId: TurnId;
  readonly chat: ChatRef;
  readonly person: TurnPerson;
  /** The message that the turn answers. */
  readonly replyTo: MessageId | undefined;
  /** Whose budget is charged for the turn that gets the outcome. */
  readonly paidBy?: SystemSender['paidBy'];
  /** The person who asks, as text suitable for Markdown. */
  readonly asker: string;
  /** The person whose messages alone it answers, by a stable name. */
  readonly whose?: string | undefined;
  /** The turn is an owner's private chat: they are asked there. */
  readonly isOwnerHere: boolean;
};

/** Posts a letter of the agent: sent, or shown to an owner first. */
export const POSTING =
  port<(letter: LetterToPost, turn: AskingTurn) => Promise<ToolOutcome>>('posting letters');

export type AskTurn = {
  readonly session: SessionKey;
  readonly turnId: TurnId;
  /** Its author is asked. */
  readonly newest: InboundMessage;
};

/** Asks the person of the turn a question of the agent. */
export const ASKING =
  port<(question: AskedPerson, turn: AskTurn) => Promise<string>>('asking people');

/** The only asker of a call; none if several people ask, or if the asking turn does not recur. */
export function askerKey(messages: readonly Pick<InboundMessage, 'sender' | 'chat'>[]) {
  const keys = new Set(messages.map(askerOf));
  const [key] = keys;
  return keys.size === 1 ? key : undefined;
}

function askerOf({ sender, chat }: Pick<InboundMessage, 'sender' | 'chat'>): string | undefined {
  if (sender.kind === 'person') {
    return sender.verified === 'unverified' ? undefined : `${chat.channel}:${sender.id}`;
  }
  switch (sender.source) {
    case 'heartbeat':
      return sender.source;
    // A job has a conversation of its own; the outcome of an approval continues with the original
    // request.
    case 'cron':
    case 'approval':
    case 'draft':
    case 'fallback':
      return sender.paidBy?.[0];
    case 'subagent':
    case 'workflow':
    case 'webhook':
      return undefined;
  }
}
