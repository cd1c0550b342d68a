// Holds an answer against what was done: sentences that tell of something done although no tool of the
// turn did it. Forms of words are told in core/claims.ts; what to do about it, in core/turn.ts.

import type { Ask } from '../../agent/rules/turn-state.ts';
import { NOT_ALLOWED } from '../../agent/run-call.ts';
import type { TurnContext } from '../../agent/turn-context.ts';
import type { SystemSender } from '../../kernel/message/message.ts';
import type { ModelEvent } from '../../providers/provider.ts';
import { claimsOf, type Evidence, supports } from './rules/claims.ts';

/** Their messages tell what was done: the answer passes it on. */
const REPORTS: readonly SystemSender['source'][] = ['approval', 'draft', 'subagent'];

/** Asked once in a turn, and of an answer that ended by itself. */
export function unsupportedIn(
  turn: Omit<TurnContext, 'signal' | 'mode'>,
  ask: Ask,
  { stop }: Pick<Extract<ModelEvent, { type: 'finished' }>, 'stop'>,
  text: string,
): readonly string[] {
  const isAsked = ask.kind === 'work' || ask.kind === 'answer';
  return isAsked && !turn.thread.wasDoubted ? claimsUndone(turn, { stop }, text) : [];
}

/** Sentences of a text that ended by itself and tell of what was not done in this turn. */
export function claimsUndone(
  turn: Omit<TurnContext, 'signal' | 'mode'>,
  { stop }: Pick<Extract<ModelEvent, { type: 'finished' }>, 'stop'>,
  text: string,
): readonly string[] {
  if (!turn.settings.claimCheck || stop !== 'end' || passesOn(turn)) return [];
  const claims = claimsOf(text);
  if (claims.length === 0) return [];
  const done = evidenceOf(turn);
  const unsupported = claims.filter(({ kind }) => !done.some((each) => supports(each, kind)));
  if (unsupported.length === 0) return [];
  turn.log.info('answer tells of what no tool did', { kinds: unsupported.map(({ kind }) => kind) });
  return unsupported.map(({ sentence }) => sentence);
}

const passesOn = ({ input }: Pick<TurnContext, 'input'>) =>
  input.messages.some(({ message: { sender } }) => {
    return sender.kind === 'system' && REPORTS.includes(sender.source);
  });

/** What was done, or is before an owner. */
function evidenceOf({
  thread,
  toolbox,
}: Pick<TurnContext, 'thread' | 'toolbox'>): readonly Evidence[] {
  return thread.rounds.flat().flatMap(({ call, result }) => {
    const isPending = result?.failure === 'permission' && result.text !== NOT_ALLOWED;
    const bound = toolbox.bind(call.name, call.arguments);
    if (bound.kind !== 'ready' || (result?.status !== 'ok' && !isPending)) return [];
    return [{ tool: bound.name, access: bound.access }];
  });
}
