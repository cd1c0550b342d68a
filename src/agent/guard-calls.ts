// The guard's view of a turn: what its answers called, as the toolbox understands it, with what came of
// it. What may run is decided in core/guard.ts.

import type { ToolCall, ToolEntry } from '../kernel/message/transcript.ts';
import { canonicalJson } from '../lib/json/json.ts';
import type { BoundCall } from '../tools/tool.ts';
import {
  type AnswerLoop,
  blockedText,
  type EarlierResult,
  type GuardedCall,
  judgeCalls,
  loopIn,
  type Verdict,
} from './rules/guard.ts';
import type { CallReport } from './rules/turn-closing.ts';
import { canReadBack } from './run-call.ts';
import type { TurnContext } from './turn-context.ts';

type Round = readonly GuardedCall[];

function guardedRounds({ thread, toolbox }: TurnContext): readonly Round[] {
  return thread.rounds.map((round) =>
    round.map(({ call, result }) => ({
      ...guarded(call, toolbox.bind(call.name, call.arguments)),
      ...(result === undefined ? {} : { result }),
    })),
  );
}

function guarded(call: ToolCall, bound: BoundCall): Pick<GuardedCall, 'key' | 'tool' | 'kind'> {
  if (bound.kind === 'refused') {
    const key = `${call.name} ${canonicalJson(call.arguments)}`;
    return { key, tool: bound.name, kind: 'not_understood' };
  }
  const key = `${bound.name} ${canonicalJson(bound.arguments)}`;
  return { key, tool: bound.name, kind: kindOf(bound) };
}

function kindOf(bound: Extract<BoundCall, { kind: 'ready' }>): GuardedCall['kind'] {
  switch (bound.accessIn({ isTainted: false })) {
    case 'read':
      return 'looks';
    case 'web':
      return 'asks_the_net';
    case 'say':
    case 'send':
      return 'speaks';
    case 'write':
    case 'rules':
    case 'execute':
    case 'schedule':
      return 'acts';
  }
}

/** Calls of the newest answer that are not run, with what the model is told of each. */
export function blockedCalls(turn: TurnContext): ReadonlyMap<ToolCall, CallReport> {
  const rounds = guardedRounds(turn);
  const verdicts = judgeCalls(rounds, { sameCalls: turn.settings.maxSameCalls });
  const calls = turn.thread.rounds.at(-1) ?? [];
  const canRead = canReadBack(turn);
  // An earlier result is repeated once; more of it would only fill the conversation.
  const repeated = new Set(
    rounds
      .flat()
      .filter(isBlocked)
      .map(({ key }) => key),
  );
  return new Map(
    (rounds.at(-1) ?? []).flatMap(({ key }, index) => {
      const [verdict, call] = [verdicts[index], calls[index]?.call];
      if (verdict?.kind !== 'blocked' || call === undefined) return [];
      const { earlier } = verdict;
      const isShown = !repeated.has(key);
      repeated.add(key);
      return [[call, reportOf(verdict, earlierOf(earlier?.result, isShown, canRead))] as const];
    }),
  );
}

function earlierOf(
  result: ToolEntry | undefined,
  isShown: boolean,
  canRead: boolean,
): EarlierResult | undefined {
  if (result === undefined) return undefined;
  if (isShown) return { kind: 'shown', result };
  const { resultId: id } = result;
  return canRead && id !== undefined ? { kind: 'named', id } : undefined;
}

const isBlocked = ({ result }: GuardedCall) => result?.isBlocked === true;

function reportOf(
  verdict: Extract<Verdict, { readonly kind: 'blocked' }>,
  earlier: EarlierResult | undefined,
): CallReport {
  const isForeign = earlier?.kind === 'shown' && earlier.result.isForeign === true;
  return {
    status: 'failed',
    text: blockedText(verdict, earlier),
    failure: 'blocked',
    isBlocked: true,
    ...(isForeign ? { isForeign } : {}),
  };
}

// Looks at what a model writes while it comes: whether it has begun to repeat itself. What is done
// about it is left to loop-cut.ts.

/** New characters between two looks. */
const STEP_CHARS = 500;
type Stream = { text: string; lookedAt: number };

/** Looks at what one call writes, as it comes. */
export class LoopWatch {
  readonly #repeats: number;
  readonly #asked: string;
  readonly #streams = { text: newStream(), thinking: newStream() };
  /** The call is to be ended; `loop`: where its text, not its thinking, began to repeat itself. */
  broken: { readonly loop?: AnswerLoop } | undefined;
  hasCalls = false;

  /** `repeats`: 0: nothing is broken off; `asked`: what the person said, who may want it so. */
  constructor(repeats: number, asked: string) {
    this.#repeats = repeats;
    this.#asked = asked;
  }

  get text(): string {
    return this.#streams.text.text;
  }

  /** Whether the call is to be ended. */
  isLooping(kind: 'text' | 'thinking', delta: string): boolean {
    const stream = this.#streams[kind];
    stream.text += delta;
    if (this.#repeats === 0 || stream.text.length - stream.lookedAt < STEP_CHARS) return false;
    stream.lookedAt = stream.text.length;
    const loop = loopIn(stream.text, this.#repeats, this.#asked);
    if (loop !== undefined) this.broken = kind === 'text' ? { loop } : {};
    return loop !== undefined;
  }

  restart(): void {
    this.#streams.text = newStream();
    this.#streams.thinking = newStream();
    this.hasCalls = false;
  }
}

const newStream = (): Stream => ({ text: '', lookedAt: 0 });
