// The guards of calls, each in the order of the composition root. Every try of a model call passes its guards: one
// refuses the call, holds back what it may cost, or hands it to the next. A tool call that the rights of its turn leave
// to an owner goes to the call guards: the first that decides lets it run, refuses it or has it wait.

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
  /** Where the guard has a say in which model is asked. */
  readonly modelFor?: SpendingGuard['modelFor'];
}

/** The last guard: holds back what calls cost. */
export const budgetGuard = (budgets: SpendingGuard): ModelGuard => ({
  name: 'budgets',
  reserve: (call, signal) => budgets.reserve(call, signal),
  modelFor: (...asked) => budgets.modelFor(...asked),
});

/** Where no guard holds anything back there is room for every answer. */
const unlimited: SpendingGuard['reserve'] = async ({ outputTokens }) => ({
  ...{ kind: 'reserved', outputTokens },
  settle: () => undefined,
});

/** `read`: from the outside in, called once, before the first call. */
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

/** `run`: an owner allowed just this for longer than once. Undefined: the guards behind it decide. */
export type CallVerdict = 'run' | AskedOwner | undefined;

export type CallGuard = {
  readonly name: string;
  judge(call: CallToApprove, turn: AskingTurn): Promise<CallVerdict>;
};

/** The turn on whose behalf owners are asked. */
export type AskingTurn = {
  readonly session: SessionKey;
  readonly turnId: TurnId;
  readonly chat: ChatRef;
  readonly person: TurnPerson;
  /** The message that the turn answers. */
  readonly replyTo: MessageId | undefined;
  /** Whose budget the turn that hears of it is charged to. */
  readonly paidBy?: SystemSender['paidBy'];
  /** Who asks, in words fit for Markdown. */
  readonly asker: string;
  /** Whose messages alone it answers, by a stable name. */
  readonly whose?: string | undefined;
  /** The turn is an owner's, alone with the agent: they are asked right there. */
  readonly isOwnerHere: boolean;
};

/** What the agent says to somebody outside of the conversation: sent, or shown to an owner first. */
export const POSTING =
  port<(letter: LetterToPost, turn: AskingTurn) => Promise<ToolOutcome>>('posting letters');

export type AskTurn = {
  readonly session: SessionKey;
  readonly turnId: TurnId;
  /** Who wrote it is asked. */
  readonly newest: InboundMessage;
};

/** What the agent asks whoever it talks to. */
export const ASKING =
  port<(question: AskedPerson, turn: AskTurn) => Promise<string>>('asking people');

/** The one asker of a call: nobody where several ask, or what asks is never there again. */
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
    // A job has a conversation of its own; what comes of an approval goes on with what was asked.
    case 'cron':
    case 'approval':
    case 'draft':
      return sender.paidBy?.[0];
    case 'subagent':
    case 'workflow':
    case 'webhook':
      return undefined;
  }
}
