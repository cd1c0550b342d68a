// Runs one tool call. The toolbox holds its deadline and turns every failure into a result.

import type { Letter } from '../features/letters/rules/letter.ts';
import { briefingOf } from '../features/modes/rules/briefing.ts';
import { type Permission, permissionOf } from '../kernel/access/rights.ts';
import type { AttachedMedia } from '../kernel/message/attachment.ts';
import { ToolError } from '../kernel/message/errors.ts';
import type { ToolCall } from '../kernel/message/transcript.ts';
import { wrapUntrusted } from '../kernel/message/untrusted.ts';
import { resultIdOf } from '../kernel/sessions/rules/earlier.ts';
import { newBoundary } from '../lib/boundary.ts';
import type { BoundCall, ToolContext, ToolOutcome } from '../tools/tool.ts';
import type { CallToApprove } from './agent.ts';
import { carriesData } from './rules/taint.ts';
import type { CallReport } from './rules/turn-closing.ts';
import type { CallTurn } from './turn-context.ts';

export const NOT_ALLOWED =
  'Error (permission): whoever asks may not have this done here. Do not try it another way; say so.';

/** Texts one call may send, so that each has a number of its own, the same on every retry. */
const MAX_TEXTS_PER_CALL = 1000;

export async function runCall(
  turn: CallTurn,
  call: ToolCall,
  bound: BoundCall,
): Promise<CallReport> {
  if (bound.kind === 'refused') return bound.outcome;
  const permission = permissionFor(turn, call, bound);
  if (permission === 'never') return notAllowed(NOT_ALLOWED);
  if (permission === 'free') return run(turn, call, bound);
  const wanted = await toApprove(turn, call, bound);
  if ('status' in wanted) return wanted;
  const { input } = turn;
  // Run as it stood then, or not at all: the seal is compared once more where it is run.
  if ((await input.isAllowed?.(wanted)) === true) return run(turn, call, bound, wanted.seal);
  const { text, isWaiting } = await input.askOwner(wanted);
  return { ...notAllowed(text), isWaiting };
}

async function run(
  turn: CallTurn,
  call: ToolCall,
  bound: ReadyCall,
  seal?: string,
): Promise<CallReport> {
  const shown: AttachedMedia[] = [];
  const context = contextOf(turn, call, (image) => shown.push(image));
  const outcome = gated(turn, call, await bound.run({ ...context, seal }));
  return shown.length === 0 ? outcome : { ...outcome, media: shown };
}

const notAllowed = (text: string): CallReport => ({
  status: 'failed',
  text,
  failure: 'permission',
});

/** The call as an owner is asked for it; an outcome where it could not be run anyway. */
async function toApprove(
  { thread, rights, settings }: CallTurn,
  call: ToolCall,
  bound: ReadyCall,
): Promise<CallToApprove | ToolOutcome> {
  const { isTainted } = thread;
  const seal = await bound.seal(settings);
  if (typeof seal === 'object') return seal;
  const standing = bound.standing?.();
  const mayStand = standing !== undefined && (!isTainted || standing.evenTainted);
  return {
    tool: bound.name,
    access: bound.accessIn({ isTainted }),
    detail: bound.detail,
    arguments: bound.arguments,
    ...(seal === undefined ? {} : { seal }),
    rights: rights.current,
    isTainted,
    ordinal: thread.ordinalOf(call),
    ...(mayStand ? { pattern: standing.pattern } : {}),
  };
}

async function post(
  { input, thread, rights }: CallTurn,
  call: ToolCall,
  letter: Letter,
): Promise<string> {
  const { status, text } = await input.post({
    letter,
    rights: rights.current,
    isTainted: thread.isTainted,
    ordinal: thread.ordinalOf(call),
  });
  if (status === 'failed') throw new ToolError('blocked', text);
  return text;
}

function contextOf(
  turn: CallTurn,
  call: ToolCall,
  show: (image: AttachedMedia) => void,
): ToolContext {
  const { input, clock, settings, signal } = turn;
  const base = turn.thread.ordinalOf(call) * MAX_TEXTS_PER_CALL;
  let texts = 0;
  return {
    session: input.session,
    turnId: input.turnId,
    chat: input.chat,
    signal,
    clock,
    workspace: settings.workspace,
    rights: turn.rights.current,
    isTainted: turn.thread.isTainted,
    person: input.person,
    mayUse: (tool) => input.confines?.mayUse(tool) ?? true,
    payer: input.messages[0].message,
    attached: turn.thread.attached,
    show,
    post: (letter) => post(turn, call, letter),
    ask: (question) => {
      const { isTainted } = turn.thread;
      const ordinal = turn.thread.ordinalOf(call);
      return input.ask({ question, rights: turn.rights.current, isTainted, ordinal });
    },
    say(markdown, attachments) {
      const ordinal = base + texts;
      texts += 1;
      return input.say(markdown, ordinal, attachments);
    },
  };
}

// Whether a call is run at once, waits for an owner's yes, or is refused: by the rights of the turn
// and by what its conversation was shown. Asked anew for every call: both may change in a turn.

export type ReadyCall = Extract<BoundCall, { readonly kind: 'ready' }>;

export function permissionFor(
  { rights, thread, toolbox }: Pick<CallTurn, 'rights' | 'thread' | 'toolbox'>,
  call: ToolCall,
  bound: ReadyCall,
): Permission {
  const { isTainted } = thread;
  const permission = permissionOf(bound.accessIn({ isTainted }), rights.current, isTainted);
  // Its text is shown to an owner, not the call.
  if (bound.isPosted) return permission === 'ask' ? 'free' : permission;
  const { url } = bound;
  if (permission !== 'free' || !isTainted || url === undefined) return permission;
  const earlier = thread.callsBefore(call).flatMap(({ name, arguments: json }) => {
    const other = toolbox.bind(name, json);
    return other.kind === 'ready' && other.url !== undefined ? [other.url] : [];
  });
  return carriesData(url, thread.knownTexts, earlier) ? 'ask' : permission;
}

// What the model is shown of a result that is too long: a briefing, where it can read on; else the
// beginning and the end, as the toolbox cut it.

const READER = 'read_result';

/** Whether the model can ask for results that it is shown no more, or not whole. */
export function canReadBack({ toolbox, rights }: Pick<CallTurn, 'toolbox' | 'rights'>): boolean {
  return toolbox.offered(rights.current).specs.some(({ name }) => name === READER);
}

export function gated(
  turn: CallTurn,
  call: ToolCall,
  { whole, ...outcome }: ToolOutcome,
): CallReport {
  const id = resultIdOf(turn.input.turnId, turn.thread.ordinalOf(call));
  if (whole === undefined || id === undefined || !canReadBack(turn)) return outcome;
  const { head, body } = briefingOf(whole, id, turn.settings.maxResultChars);
  const shown =
    outcome.isForeign === true && body !== ''
      ? wrapUntrusted(`from result ${id}`, [{ text: body }], newBoundary())
      : body;
  return { ...outcome, text: shown === '' ? head : `${head}\n${shown}`, whole };
}
