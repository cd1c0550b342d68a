// Tool calls that wait for an approval; an owner sees their full text. An approved call is sent to
// its session as a message of the gateway with the rights of the turn that asked; the stage of
// approvals executes it. Cases A07, A09, A10, X04 and T09.

import type { AskedOwner, CallToApprove } from '../../agent/agent.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { AskingTurn } from '../../kernel/guards.ts';
import { messageId } from '../../kernel/message/ids.ts';
import { type ChatRef, previewOf } from '../../kernel/message/message.ts';
import { unwrapped, verbatim } from '../../kernel/message/untrusted.ts';
import {
  type Answered,
  type Asked,
  type Choice,
  EXPIRED,
  LIFETIME_MS,
  outcomeMessage,
  payloadHandler,
} from '../../kernel/questions/question-rows.ts';
import type { Question } from '../../kernel/questions/questions.ts';
import {
  asciiText,
  durationWords,
  type Matter,
  shownText,
} from '../../kernel/questions/rules/question-text.ts';
import { createLanes } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import type { AllowRules } from './allow-rules.ts';
import { ruleGiven, ruleHint, TERMS, termLabel } from './allow-rules.ts';
import {
  APPROVAL_SUBJECT,
  type Approval,
  type ApprovalState,
  type ApprovedCalls,
  approvalOf,
  CALL,
  DENY,
  hasPlace,
  questionId,
  type WaitingCall,
  wordsOf,
} from './approval-rows.ts';

type ApprovalsDeps = Pick<Kernel, 'questions' | 'clock' | 'log'> & {
  readonly bus: Pick<MessageBus, 'accept' | 'send'>;
  readonly standing: AllowRules;
  /** The chat in which an owner is asked who is not in the asking chat. */
  ownerChat(): Promise<ChatRef>;
  /** Whether the work that asked there goes on, or was stopped. */
  isAwaited(chat: ChatRef): Promise<boolean>;
};

// The outcome of a decided call, as the message that starts a turn and as text for the model.

/** A job can wait for the evening; the person who has a program run waits for it. */
const lifetimeOf = ({ access }: Pick<WaitingCall, 'access'>) =>
  access === 'schedule' ? LIFETIME_MS.job : LIFETIME_MS.call;

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
  return state.status === 'ok' ? t`Ran: ${preview}` : t`Failed: ${preview}`;
}

/** What the model is told, with the next message, of a call that will not be run. */
function refusalNote(call: WaitingCall, how: 'denied' | 'expired'): string {
  const { tool, detail = '' } = call;
  const why =
    how === 'denied'
      ? t`An owner refused`
      : t`No owner decided within ${durationWords(lifetimeOf(call))} about`;
  const name = detail === '' ? tool : `${tool} (${detail})`;
  return `[${why} the call of ${name} that waited: nothing was done. Do not call it again unless you are asked to.]`;
}

/** A call that was requested before. */
export function told({ kind }: ApprovalState, isHere: boolean): AskedOwner {
  return kind === 'refused' ? refusedWith(APPROVAL_TEXTS.NOT_ALLOWED) : waiting(isHere);
}

export type Approvals = ReturnType<typeof createApprovals>;

export function createApprovals(deps: ApprovalsDeps) {
  const { bus, questions, clock, log, standing } = deps;
  const lanes = createLanes();

  const calls: ApprovedCalls = {
    async get(id) {
      const known = await questions.get(questionId(id));
      return known && approvalOf(known);
    },
  };

  async function openCalls(): Promise<readonly Approval[]> {
    const all = (await questions.known(APPROVAL_SUBJECT)).flatMap((each) => approvalOf(each) ?? []);
    return all.filter(({ state }) => state.kind === 'open');
  }

  async function request(call: CallToApprove, turn: AskingTurn): Promise<AskedOwner> {
    const { ordinal: _place, ...wanted } = call;
    const { isOwnerHere } = turn;
    const approval: WaitingCall = { ...wanted, ...turn, at: clock.now() };
    const id = idOf(call, turn);
    const known = await calls.get(id);
    if (known !== undefined && known.state.kind !== 'open') return told(known.state, isOwnerHere);
    const open = await openCalls();
    const isSame = (one: Approval) =>
      one.session === turn.session &&
      one.tool === call.tool &&
      one.arguments === call.arguments &&
      one.seal === call.seal;
    const same = known === undefined ? open.find(isSame) : undefined;
    if (same !== undefined) {
      // The next asker may not see where it was asked before.
      const isLater = isOwnerHere && same.turnId !== turn.turnId;
      if (isLater) await questions.askAgain(questionId(same.id), turn.chat);
      return waiting(isOwnerHere);
    }
    if (known === undefined && !hasPlace(open, { ...approval, isOwnerHere }))
      return refusedWith(APPROVAL_TEXTS.TOO_MANY);
    await ask(id, known ?? approval, isOwnerHere ? turn.chat : await deps.ownerChat());
    log.info('approval requested', { tool: call.tool, session: turn.session });
    return waiting(isOwnerHere);
  }

  async function ask(id: string, approval: WaitingCall, chat: ChatRef) {
    const days = mayStand(approval) ? standing.days() : 0;
    await questions.ask({
      id: questionId(id),
      chat,
      markdown: wordsOf(approval).sentence,
      matter: matterOf(approval, days === 0 ? '' : ruleHint(approval.scope)),
      choices: choicesOf(approval, days),
      approvers: 'owners',
      subject: `${APPROVAL_SUBJECT}:${id}`,
      session: approval.session,
      payload: approval,
      expiresInMs: lifetimeOf(approval),
    });
  }

  async function answer(
    call: WaitingCall,
    { id, rest }: Asked,
    { action, by, at }: Choice,
  ): Promise<Answered> {
    if (call.run?.kind === 'done') return t`Allowed. ${outcomeWords(call.run)}`;
    const ended = call.run === undefined ? await settled(call) : undefined;
    if (ended !== undefined) return { words: ended, outcome: EXPIRED };
    const chosen = TERMS.find((term) => term === action);
    const term = mayStand(call) ? chosen : undefined;
    const isAllowed = action === 'allow' || term !== undefined;
    log.info('approval decided', { tool: call.tool, decision: isAllowed ? 'granted' : 'denied' });
    if (!isAllowed) {
      await tell(rest, call, t`An owner did not allow it`);
      const note = refusalNote(call, 'denied');
      return { words: t`Refused: nothing is done.`, outcome: DENY, note };
    }
    if (term !== undefined && mayStand(call))
      await standing.give({ ...call, about: call.scope ?? call.arguments }, term, by, at);
    // Its text is the name of the call, until the turn that takes it up asks for the result.
    const named = { id, source: 'approval', text: rest } as const;
    const message = outcomeMessage({ ...call, turn: call }, named, clock.now());
    await bus.accept([{ kind: 'queue', message }]);
    const words =
      term === undefined ? t`Allowed, this once.` : ruleGiven(term, standing.days(), call.scope);
    return { words, isUnderWay: true };
  }

  async function expired(call: WaitingCall, { rest }: Asked): Promise<Answered> {
    const why = t`answered within ${durationWords(lifetimeOf(call))}`;
    await tell(rest, call, t`No owner ${why}`);
    const note = refusalNote(call, 'expired');
    return { words: t`Expired: nobody ${why}. Nothing is done.`, note };
  }

  /** What asked was ended by hand. */
  const settled = async ({ chat }: WaitingCall) =>
    (await deps.isAwaited(chat)) ? undefined : APPROVAL_TEXTS.ENDED;

  /** The chat that asked, where it does not show the question. */
  async function tell(id: string, { chat, tool, isOwnerHere }: WaitingCall, why: string) {
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
      return lanes.run('approvals', () => request(call.isTainted ? once : call, turn));
    },
    get: calls.get,
    /** Says below the question what came of the call, once it was run. */
    async tellOutcome(approval: Approval): Promise<void> {
      const words = outcomeWords(approval.state);
      if (words === undefined) return;
      // Where it was asked for they get the result in the answer.
      await questions.outcome(questionId(approval.id), words, approval.isOwnerHere ? '' : words);
    },
    handler: payloadHandler(CALL, { answer, expired, settled }),
  };
}

/** What an owner is shown of the call beside its sentence. */
function matterOf(approval: WaitingCall, hint: string): Matter {
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

function choicesOf(approval: WaitingCall, days: number): Question['choices'] {
  const once = { label: t`Allow once`, action: 'allow' };
  const deny = { label: t`Deny`, action: DENY };
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
