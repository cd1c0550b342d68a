// A call that needs an approval, as it is kept with its question: the call, and after the decision
// whether it was started. A call is started once.

import { hash } from 'node:crypto';
import { z } from 'zod';
import type { Rights, ToolAccess } from '../../kernel/access/rights.ts';
import { port } from '../../kernel/feature.ts';
import type { MessageId, SessionKey, TurnId } from '../../kernel/message/ids.ts';
import type { ChatRef, SystemSender } from '../../kernel/message/message.ts';
import { type TurnPerson, verbatim } from '../../kernel/message/untrusted.ts';
import type { KnownQuestion } from '../../kernel/questions/decisions.ts';
import {
  EXPIRED,
  type OpenQuestion,
  payloadOf,
  WITHDRAWN,
} from '../../kernel/questions/question-rows.ts';
import { argumentLines, type RequestWords } from '../../kernel/questions/rules/question-text.ts';
import { flag, number, object, place, rowShape, text } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';

/** The payload of the question about it. */
export type WaitingCall = {
  readonly tool: string;
  readonly access: ToolAccess;
  /** JSON. */
  readonly arguments: string;
  /** The request in words for people. */
  readonly words?: RequestWords;
  /** A few words about it, for the live preview. */
  readonly detail?: string;
  /** What the call depends on besides its arguments. */
  readonly seal?: string;
  /** What an allow rule would be bound to. */
  readonly pattern?: string;
  /** What the rule would cover, for people; left out: exactly this call. */
  readonly scope?: string;
  readonly asksOnce?: boolean;
  /** When the message that the call serves arrived, epoch milliseconds. */
  readonly requestedAt?: number | undefined;
  /** The stable name of the person who asks, if only one does. */
  readonly whose?: string | undefined;
  readonly session: SessionKey;
  readonly turnId: TurnId;
  readonly chat: ChatRef;
  /** The message that the turn answers. */
  readonly replyTo?: MessageId | undefined;
  /** The person of the turn that asked. */
  readonly person: TurnPerson;
  /** Whose budget pays for the turn that gets the result. */
  readonly paidBy?: SystemSender['paidBy'];
  /** Rights of the turn that asked, and of the turn that gets the result. */
  readonly rights: Rights;
  readonly isTainted: boolean;
  /** Who asked, for people. */
  readonly asker: string;
  /** The person who asks is the owner who decides, in the same chat. */
  readonly isOwnerHere?: boolean;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly run?: Run;
};

export type Approval = WaitingCall & {
  /** `turnId/place of the call`: the same on every retry of the turn. */
  readonly id: string;
  readonly state: ApprovalState;
};

export type ApprovalState = { readonly kind: 'open' | 'granted' | 'refused' } | Run;

type Run =
  /** Started; after a crash its outcome is unknown. */
  | { readonly kind: 'running' }
  | {
      readonly kind: 'done';
      readonly status: 'ok' | 'failed';
      readonly text: string;
      readonly isForeign: boolean;
    };

/** Scope of approvals and allow rules. */
export const APPROVALS_SCOPE = 'approvals';

const DOES: Readonly<Record<ToolAccess, string>> = {
  read: t`looks into files or memory`,
  web: t`asks an address on the net`,
  say: t`speaks in the chat`,
  write: t`changes files`,
  rules: t`changes what I am told to do from now on`,
  send: t`writes to other people`,
  execute: t`runs a program`,
  schedule: t`changes scheduled jobs`,
};

/** The request in words for people; its text is not escaped. */
export function wordsOf({
  words,
  tool,
  access,
  arguments: json,
}: Pick<WaitingCall, 'words' | 'tool' | 'access' | 'arguments'>): RequestWords {
  if (words !== undefined) return words;
  return { sentence: t`Use ${verbatim(tool)}, which ${DOES[access]}?`, text: argumentLines(json) };
}

/** An id that people can type. */
export const typedId = ({ id }: Pick<Approval, 'id'>) => hash('sha256', id);

export const CALL = rowShape<WaitingCall>({
  ...{ tool: text, access: text, arguments: text, session: text, turnId: text },
  ...{ chat: place, person: z.looseObject({ notes: text }), rights: object, isTainted: flag },
  ...{ asker: text, at: number },
});

/** The subject kind of the question. */
export const APPROVAL_SUBJECT = 'approval';
export const questionId = (id: string) => `${APPROVAL_SUBJECT}/${id}`;
export const DENY = 'deny';

/** The call that a question is about; undefined for another question, or a damaged one. */
export function approvalOf(question: KnownQuestion | OpenQuestion): Approval | undefined {
  const { subject } = question;
  const call = payloadOf(question, CALL);
  if (call === undefined || !subject.startsWith(`${APPROVAL_SUBJECT}:`)) return undefined;
  return {
    ...call,
    id: subject.slice(APPROVAL_SUBJECT.length + 1),
    state: stateOf(question, call),
  };
}

function stateOf(
  { chosen, outcome = chosen?.action }: KnownQuestion,
  { run }: WaitingCall,
): ApprovalState {
  if (run !== undefined) return run;
  if (outcome === undefined) return { kind: 'open' };
  const isRefused = [DENY, EXPIRED, WITHDRAWN].includes(outcome);
  return { kind: isRefused ? 'refused' : 'granted' };
}

const MAX_OPEN = 20;
const MAX_OPEN_IN_SESSION = 5;
const MAX_OPEN_OF_ASKER = 10;
/** Of all places: one each for sessions and people with nothing open. */
const KEPT_FOR_OTHERS = 5;

/** A call or a letter that waits for an owner, or would. */
export type Waiting = Pick<WaitingCall, 'session' | 'whose' | 'isTainted'>;

/**
 * Whether another request may wait. No person and no tainted conversation can fill all places: near
 * the limit, and near the person's own limit, only the first request of each counts.
 */
export function hasPlace(
  open: readonly Waiting[],
  next: Waiting & { readonly isOwnerHere: boolean },
): boolean {
  const here = open.filter(({ session }) => session === next.session).length;
  const theirs = open.filter((one) => askerOf(one) === askerOf(next)).length;
  if (open.length >= MAX_OPEN || here >= MAX_OPEN_IN_SESSION) return false;
  if (open.length < MAX_OPEN - KEPT_FOR_OTHERS && theirs < MAX_OPEN_OF_ASKER) return true;
  return here === 0 && (theirs === 0 || (next.isOwnerHere && !next.isTainted));
}

/** Where several people wrote, the session counts as the person. */
const askerOf = ({ whose, session }: Waiting) => whose ?? session;

export type ApprovedCalls = { get(id: string): Promise<Approval | undefined> };
export const APPROVED_CALLS = port<ApprovedCalls>('approved calls');
