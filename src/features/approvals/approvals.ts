// Tool calls that wait for an approval; an owner sees their full text. An approved call is sent to
// its session as a message of the gateway with the rights of the turn that asked; the stage of
// approvals executes it. Cases A07, A09, A10, X04 and T09.

import type { AskedOwner, CallToApprove } from '../../agent/agent.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { AskingTurn } from '../../kernel/guards.ts';
import { BusFullError } from '../../kernel/message/errors.ts';
import { messageId, type SessionKey } from '../../kernel/message/ids.ts';
import { type ChatRef, type InboundMessage, previewOf } from '../../kernel/message/message.ts';
import { unwrapped, verbatim } from '../../kernel/message/untrusted.ts';
import {
  type Answered,
  type Chooser,
  moveOn,
  openOf,
  outcomeMessage,
  type QuestionHandler,
  rowOf,
  subjectOf,
} from '../../kernel/questions/question-rows.ts';
import type { Question, Questions } from '../../kernel/questions/questions.ts';
import {
  asciiText,
  durationWords,
  type Matter,
  shownText,
} from '../../kernel/questions/rules/question-text.ts';
import type { Rows } from '../../kernel/rows.ts';
import type { Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { createLanes } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { AllowRules } from './allow-rules.ts';
import { ruleGiven, ruleHint, TERMS, termLabel } from './allow-rules.ts';
import {
  type Approval,
  type ApprovalState,
  CALL_KEPT_MS,
  eraseCalls,
  hashOf,
  hasPlace,
  wordsOf,
} from './approval-rows.ts';

type ApprovalsDeps = {
  readonly calls: Rows<Approval>;
  readonly bus: Pick<MessageBus, 'accept' | 'send'>;
  readonly questions: Questions;
  readonly standing: AllowRules;
  readonly clock: Clock;
  readonly log: Logger;
  /** The chat in which an owner is asked who is not in the asking chat. */
  ownerChat(): Promise<ChatRef>;
  /** Whether the work that asked there goes on, or was stopped. */
  isAwaited(chat: ChatRef): Promise<boolean>;
};

// The outcome of a decided call, as the message that starts a turn and as text for the model.

const HOUR_MS = 3_600_000;
/** A job can wait for the evening; the person who has a program run waits for it. */
const lifetimeOf = ({ access }: Pick<Approval, 'access'>) =>
  (access === 'schedule' ? 12 : 1) * HOUR_MS;

export const APPROVAL_TEXTS = {
  ASKED_HERE:
    t`Not run yet: the person sees a question in this chat and decides. End this turn now; write nothing ` +
    t`more unless there is something else to say. What comes of it reaches you as a message, and you go on ` +
    t`then. Do not call it again or try another way.`,
  ASKED:
    t`Not run yet: an owner is asked to allow it. What comes of it reaches you as a message. Do not call it ` +
    t`again or try another way; tell the user that it waits for an approval.`,
  TOO_MANY:
    t`Permission denied: this call needs the approval of an owner, and too many calls wait already. ` +
    t`Nothing was done. Tell the user.`,
  NOT_ALLOWED: t`Permission denied: an owner did not allow this call. Nothing was done. Tell the user.`,
  LOST: '[A call that an owner allowed is not known any more. Nothing was done.]',
  ENDED: t`What asked for it was stopped meanwhile; nothing is done.`,
} as const;

export function resultText(tool: string, state: ApprovalState): string {
  if (state.kind !== 'done') {
    return `[An owner allowed ${tool}. The process stopped while it ran: outcome unknown. It is not run again; find out how far it came.]`;
  }
  const how = state.status === 'ok' ? t`It was run once` : t`It was run once and failed`;
  return `[An owner allowed ${tool}. ${how}; this is its result. Go on with what you were asked.]\n${state.text}`;
}

/** What stands below the question once the call was run; undefined while it was not. */
function outcomeWords(state: ApprovalState): string | undefined {
  if (state.kind === 'running') return t`It was stopped while it ran: outcome unknown.`;
  if (state.kind !== 'done') return undefined;
  const preview = verbatim(shownText(previewOf(unwrapped(state.text))));
  return state.status === 'ok' ? `Ran: ${preview}` : `Failed: ${preview}`;
}

/** What the model is told, with the next message, of a call that will not be run. */
function refusalNote(approval: Approval): string {
  const { tool, detail = '', state } = approval;
  const why =
    state.kind === 'denied'
      ? t`An owner refused`
      : t`No owner decided within ${durationWords(lifetimeOf(approval))} about`;
  const call = detail === '' ? tool : `${tool} (${detail})`;
  return `[${why} the call of ${call} that waited: nothing was done. Do not call it again unless you are asked to.]`;
}

/** A call that was requested before. */
export function told({ kind }: ApprovalState, isHere: boolean): AskedOwner {
  return kind === 'denied' || kind === 'expired'
    ? refusedWith(APPROVAL_TEXTS.NOT_ALLOWED)
    : waiting(isHere);
}

export type Approvals = ReturnType<typeof createApprovals>;

export function createApprovals(deps: ApprovalsDeps) {
  const { calls, bus, questions, clock, log, standing } = deps;
  const lanes = createLanes();
  const oneByOne = <T>(task: () => Promise<T>) => lanes.run('approvals', task);

  async function request(call: CallToApprove, turn: AskingTurn): Promise<AskedOwner> {
    const { ordinal: _place, ...wanted } = call;
    const { isOwnerHere } = turn;
    const id = idOf(call, turn);
    const approval: Approval = { ...wanted, ...turn, id, at: clock.now(), state: { kind: 'open' } };
    const known = await calls.get(approval.id);
    if (known !== undefined && known.state.kind !== 'open') return told(known.state, isOwnerHere);
    const open = await openOf(calls);
    const isSame = (one: Approval) =>
      one.session === turn.session &&
      one.tool === call.tool &&
      one.arguments === call.arguments &&
      one.seal === call.seal;
    const same = known === undefined ? open.find(isSame) : undefined;
    if (same !== undefined) {
      // The next asker may not see where it was asked before.
      const isLater = isOwnerHere && same.turnId !== turn.turnId;
      if (isLater) await questions.askAgain(questionId(same), turn.chat);
      return waiting(isOwnerHere);
    }
    if (known === undefined && !hasPlace(open, { ...approval, isOwnerHere }))
      return refusedWith(APPROVAL_TEXTS.TOO_MANY);
    const stored = known ?? approval;
    // A known call may be decided at this moment, so it is not overwritten.
    if (known === undefined) await calls.change(id, (each) => each ?? stored);
    await calls.expire(clock.now() - CALL_KEPT_MS);
    await ask(stored, isOwnerHere ? turn.chat : await deps.ownerChat());
    log.info('approval requested', { tool: call.tool, session: turn.session });
    return waiting(isOwnerHere);
  }

  async function ask(approval: Approval, chat: ChatRef) {
    const days = mayStand(approval) ? standing.days() : 0;
    await questions.ask({
      id: questionId(approval),
      chat,
      markdown: wordsOf(approval).sentence,
      matter: matterOf(approval, days === 0 ? '' : ruleHint(approval.scope)),
      choices: choicesOf(approval, days),
      approvers: 'owners',
      subject: subjectOf('approval', approval.id, hashOf(approval)),
      expiresInMs: lifetimeOf(approval),
    });
  }

  async function answer(rest: string, action: string, ...[who, at]: Chooser): Promise<Answered> {
    const approval = await rowOf(rest, calls, hashOf);
    if (approval === undefined) return t`This call is not known any more; nothing is done.`;
    const chosen = TERMS.find((term) => term === action);
    const term = mayStand(approval) ? chosen : undefined;
    const isAllowed = action === 'allow' || term !== undefined;
    const { kind } = approval.state;
    if (kind === 'done') return t`Allowed. ${outcomeWords(approval.state)}`;
    if (kind === 'expired') return DECIDED;
    const ended = kind === 'open' ? await settled(rest) : undefined;
    if (ended !== undefined) return ended;
    const state: ApprovalState = { kind: isAllowed ? 'granted' : 'denied' };
    if (term !== undefined && kind === 'open' && mayStand(approval)) {
      const about = approval.scope ?? approval.arguments;
      await standing.give({ ...approval, about }, term, who, at);
    }
    const from = ['open', 'granted', 'denied'] as const;
    if (!isAllowed && !(await moveOn(calls, approval.id, from, state))) return DECIDED;
    log.info('approval decided', { tool: approval.tool, decision: state.kind });
    if (!isAllowed) {
      await tell(approval, t`An owner did not allow it`);
      return t`Refused: nothing is done.`;
    }
    const words =
      term === undefined
        ? t`Allowed, this once.`
        : ruleGiven(term, standing.days(), approval.scope);
    if (kind === 'running') return { words, isUnderWay: true };
    // Its text is the name of the call, until the turn that takes it up asks for the result.
    const named = { id: questionId(approval), source: 'approval', text: approval.id } as const;
    const message = outcomeMessage({ ...approval, turn: approval }, named, clock.now());
    const rows = [calls.write(approval.id, { ...approval, state })];
    try {
      await bus.accept([{ kind: 'queue', message }], { rows });
    } catch (error) {
      // The press is retried; meanwhile the decided call does not count as waiting.
      if (error instanceof BusFullError)
        await moveOn(calls, approval.id, ['open', 'granted'], state);
      throw error;
    }
    return { words, isUnderWay: true };
  }

  async function expired(rest: string): Promise<string | undefined> {
    const approval = await rowOf(rest, calls, hashOf);
    if (approval?.state.kind !== 'open') return undefined;
    if (!(await moveOn(calls, approval.id, ['open'], { kind: 'expired' }))) return undefined;
    const why = t`answered within ${durationWords(lifetimeOf(approval))}`;
    await tell(approval, t`No owner ${why}`);
    return t`Expired: nobody ${why}. Nothing is done.`;
  }

  /** What asked was ended by hand. */
  async function settled(rest: string): Promise<string | undefined> {
    const approval = await rowOf(rest, calls, hashOf);
    if (approval === undefined || (await deps.isAwaited(approval.chat))) return undefined;
    await moveOn(calls, approval.id, ['open'], { kind: 'expired' });
    return APPROVAL_TEXTS.ENDED;
  }

  /** The chat that asked, where it does not show the question. */
  async function tell({ id, chat, tool, isOwnerHere }: Approval, why: string) {
    if (isOwnerHere === true) return;
    const markdown = t`${why}: ${verbatim(tool)} was not run.`;
    await bus.send({ id: messageId(`approval/${id}/told`), chat, markdown });
  }

  return {
    /** Whether an allow rule covers the call and it was not requested before. */
    async allows(call: CallToApprove, turn: AskingTurn): Promise<boolean> {
      const wanted = { ...call, ...turn };
      if (!mayStand(wanted)) return false;
      // A call that was requested is decided by the answer to that request.
      const isAsked = (await calls.get(idOf(call, turn))) !== undefined;
      const isTainted = call.isTainted && call.isTrusted !== true;
      return !isAsked && standing.covers({ ...wanted, isTainted });
    },
    /** Requests an approval of the call. */
    request(call: CallToApprove, turn: AskingTurn) {
      const { pattern: _, scope: __, asksOnce: ___, isTrusted: ____, ...once } = call;
      // No rule is made while untrusted content is in view.
      return oneByOne(() => request(call.isTainted ? once : call, turn));
    },
    /** What was decided in these conversations and holds the words; how many. */
    forget: (chats: readonly string[], holds: Holds) => eraseCalls(calls, chats, holds),
    /** Says below the question what came of the call, once it was run. */
    async tellOutcome(approval: Approval): Promise<void> {
      const words = outcomeWords(approval.state);
      if (words === undefined) return;
      // Where it was asked for they get the result in the answer.
      await questions.outcome(questionId(approval), words, approval.isOwnerHere ? '' : words);
    },
    /** What the model is told with this message of calls that will not be run; asked again, the same. */
    async refusals(session: SessionKey, { id }: InboundMessage): Promise<readonly string[]> {
      const told: string[] = [];
      for (const call of await calls.list()) {
        const { state } = call;
        if (call.session !== session || (state.kind !== 'denied' && state.kind !== 'expired'))
          continue;
        if (state.toldIn !== undefined && state.toldIn !== id) continue;
        if (state.toldIn === undefined)
          await moveOn(calls, call.id, [state.kind], { ...state, toldIn: id });
        told.push(refusalNote(call));
      }
      return told;
    },
    handler: { answer, expired, settled } satisfies QuestionHandler,
  };
}

const DECIDED = t`This was already decided.`;

const questionId = ({ id }: Pick<Approval, 'id'>) => `approval/${id}`;

/** What an owner is shown of the call beside its sentence. */
function matterOf(approval: Approval, hint: string): Matter {
  const { asker, isTainted, access } = approval;
  const { text, file = 'call.txt' } = wordsOf(approval);
  const escaping = access === 'execute' || access === 'web' ? asciiText : shownText;
  const shown = text === undefined ? {} : { text: escaping(text), file };
  return { asker, isTainted, ...shown, hint };
}

const waiting = (isHere: boolean): AskedOwner => ({
  text: isHere ? APPROVAL_TEXTS.ASKED_HERE : APPROVAL_TEXTS.ASKED,
  ...{ isWaiting: true, isHere },
});

const refusedWith = (text: string): AskedOwner => ({ text, isWaiting: false });

const idOf = ({ ordinal }: CallToApprove, { turnId }: AskingTurn) => `${turnId}/${ordinal}`;

function choicesOf(approval: Approval, days: number): Question['choices'] {
  const once = { label: t`Allow once`, action: 'allow' };
  const deny = { label: t`Deny`, action: 'deny' };
  if (!mayStand(approval) || days === 0) return [once, deny];
  const terms = TERMS.map((term) => {
    return { label: termLabel(term, days), action: term, hasNoThumb: true as const };
  });
  if (approval.asksOnce !== true) return [once, deny, ...terms];
  const isShorter = ({ action }: { readonly action: string }) => action !== 'always';
  const other = { ...once, hasNoThumb: true as const };
  return [{ label: t`Allow`, action: 'always' }, deny, other, ...terms.filter(isShorter)];
}

/** A rule needs one asking person and a pattern to bind it to. */
function mayStand<T extends { readonly pattern?: string; readonly whose?: string | undefined }>(
  call: T,
): call is T & { readonly pattern: string; readonly whose: string } {
  return call.pattern !== undefined && call.whose !== undefined;
}
