// Steadiness: what a model is shown of its own earlier answers, and notes about its work. Nothing
// of it is recorded; switched off it costs nothing.

import { READ_EARLIER } from '../../agent/rules/context-marks.ts';
import { ownWords } from '../../agent/rules/context-pack.ts';
import type { Ask } from '../../agent/rules/turn-state.ts';
import { LoopWatch, NOT_ALLOWED } from '../../agent/run-call.ts';
import type { TurnContext } from '../../agent/turn-context.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { SystemSender } from '../../kernel/message/message.ts';
import type { Drift, ModelMessage, TranscriptEntry } from '../../kernel/message/transcript.ts';
import { revealAll } from '../../lib/html/hidden-text.ts';
import type { ModelEvent, ModelHandle } from '../../providers/provider.ts';
import type { OfferedTool } from '../../tools/tool.ts';
import { driftOf, LOOPING, readAnswer, steadied, steadinessLines } from './rules/anti-drift.ts';
import { claimsOf, type Evidence, supports } from './rules/claims.ts';
import { fadedTurns, groundingNote, isGroundingDue, toolsInPhase } from './rules/gradient.ts';
import type { AntiDriftConfig } from './settings.ts';

export { correctionNote } from './rules/claims.ts';

/** Whether such a model tends to drift. */
export function drifts(
  { enabled }: Pick<AntiDriftConfig, 'enabled'>,
  { local, capabilities }: Pick<ModelHandle, 'local' | 'capabilities'>,
): boolean {
  if (enabled === 'off' || !local) return false;
  return enabled === 'on' || capabilities.sizeClass !== 'large';
}

/** Undefined for a model that is not watched. */
export function loopWatch(
  { settings, thread }: Pick<TurnContext, 'settings' | 'thread'>,
  handle: Pick<ModelHandle, 'local' | 'capabilities'>,
): LoopWatch | undefined {
  const { antiDrift } = settings;
  if (!drifts(antiDrift, handle)) return undefined;
  return new LoopWatch(antiDrift.loopRepeats, ownWords(thread.own));
}

export type ShownThread = {
  readonly messages: readonly ModelMessage[];
  /** Number of recorded entries that are shown in another form. */
  readonly rewritten: number;
};

export function shownThread(
  turn: TurnContext,
  handle: ModelHandle,
  described: readonly OfferedTool[],
): ShownThread {
  const offered = new Set(described.map(({ name }) => name));
  const { thread, settings, input } = turn;
  const { antiDrift, proprioception } = settings;
  const whole = thread.shown;
  const isSteadied = drifts(antiDrift, handle);
  const isFaded = proprioception.enabled && proprioception.gradientMemory;
  if (!isSteadied && !isFaded) return { messages: thread.messagesOf(whole, offered), rewritten: 0 };
  const canReadBack = offered.has(READ_EARLIER);
  const steady = isSteadied ? steadied(whole, antiDrift, canReadBack) : whole;
  const shown = isFaded ? fadedTurns(steady, input.turnId, proprioception, canReadBack) : steady;
  return { messages: thread.messagesOf(shown, offered), rewritten: missingOf(whole, shown) };
}

function missingOf(whole: readonly TranscriptEntry[], shown: readonly TranscriptEntry[]): number {
  if (whole === shown) return 0;
  const kept = new Set(shown);
  return whole.filter((entry) => !kept.has(entry)).length;
}

/** Only for local models: changing the tools invalidates the prompt cache of a cloud service. */
export function describedNow(
  turn: TurnContext,
  { local }: ModelHandle,
  tools: readonly OfferedTool[],
): readonly OfferedTool[] {
  return isScoped(turn, local) ? toolsInPhase(tools, turn.thread.rounds) : tools;
}

export const isScoped = (
  { settings: { proprioception } }: Pick<TurnContext, 'settings'>,
  isLocal: boolean,
) => isLocal && proprioception.enabled && proprioception.dynamicToolScoping;

/** Of the call that ends. */
export function driftIn({ thread, settings }: TurnContext, watch: LoopWatch): Drift {
  if (watch.broken !== undefined) return LOOPING;
  const earlier = thread.shown.flatMap((entry) => (entry.role === 'assistant' ? [entry] : []));
  const answer = readAnswer(revealAll(watch.text), watch.hasCalls, ownWords(thread.own));
  const before = earlier
    .slice(-3)
    .map(({ text, toolCalls }) => readAnswer(text, toolCalls.length > 0));
  return driftOf(answer, before, settings.antiDrift);
}

const ANCHOR =
  '[Reminder: either call a tool in the given format, or write the answer for the person in plain ' +
  'words. Do not repeat yourself, and do not invent tool results.]';

/** `pressure`: used share of the model's window, 0 to 1; computed only where it matters. */
export function steadyNotes(
  turn: TurnContext,
  handle: ModelHandle,
  pressure: () => number,
): readonly string[] {
  const { antiDrift, proprioception } = turn.settings;
  const isAnchored = drifts(antiDrift, handle) && antiDrift.anchorInterval > 0;
  const isGrounded = proprioception.enabled && proprioception.groundingInterval > 0;
  if (!isAnchored && !isGrounded) return [];
  const { rounds } = turn.thread;
  const count = rounds.length;
  const isDue =
    isGrounded && count > 0 && isGroundingDue(count, proprioception.groundingInterval, pressure());
  return [
    ...(isDue ? [groundingNote(rounds, questionOf(turn), turn.limits.maxRounds)] : []),
    ...(isAnchored && count > 0 && count % antiDrift.anchorInterval === 0 ? [ANCHOR] : []),
  ];
}

/** The newest message without untrusted content, which would look like ours in a note. */
function questionOf({ thread }: TurnContext): string | undefined {
  const asked = thread.own.filter((entry) => entry.role === 'user');
  return asked.findLast(({ isForeign }) => isForeign !== true)?.text;
}

// Checks an answer against what was done: finds claims that no tool of the turn supports.
// rules/claims.ts finds claims; agent/rules/turn.ts decides what follows.

/** Their messages report what was done, and the answer passes it on. */
const REPORTS: readonly SystemSender['source'][] = ['approval', 'draft', 'subagent', 'fallback'];

/** At most once in a turn, for an answer that ended by itself. */
export function unsupportedIn(
  turn: Omit<TurnContext, 'signal' | 'mode'>,
  ask: Ask,
  { stop }: Pick<Extract<ModelEvent, { type: 'finished' }>, 'stop'>,
  text: string,
): readonly string[] {
  const isAsked = ask.kind === 'work' || ask.kind === 'answer';
  return isAsked && !turn.thread.wasDoubted ? claimsUndone(turn, { stop }, text) : [];
}

/** Sentences of a complete text that claim what was not done in this turn. */
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
  turn.log.info('answer claims an action that no tool performed', {
    kinds: unsupported.map(({ kind }) => kind),
  });
  return unsupported.map(({ sentence }) => sentence);
}

const passesOn = ({ input }: Pick<TurnContext, 'input'>) =>
  input.messages.some(({ message: { sender } }) => {
    return sender.kind === 'system' && REPORTS.includes(sender.source);
  });

/** What was done, or waits for an approval. */
function evidenceOf({
  thread,
  toolbox,
}: Pick<TurnContext, 'thread' | 'toolbox'>): readonly Evidence[] {
  return thread.rounds.flat().flatMap(({ call, result }) => {
    const isPending =
      result?.failure === 'waiting' ||
      (result?.failure === 'permission' && result.text !== NOT_ALLOWED);
    const bound = toolbox.bind(call.name, call.arguments);
    if (bound.kind !== 'ready' || (result?.status !== 'ok' && !isPending)) return [];
    return [{ tool: bound.name, access: bound.access }];
  });
}

export function install({ add, live }: Kernel): void {
  add.status({ lines: () => steadinessLines(live.config.agents) });
}
