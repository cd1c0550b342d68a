// Runs one tool call. The toolbox enforces its deadline and turns every failure into a result.

import { briefingOf } from '../features/modes/rules/briefing.ts';
import { permissionOf, type ToolAccess } from '../kernel/access/rights.ts';
import type { AttachedMedia } from '../kernel/message/attachment.ts';
import { ToolError } from '../kernel/message/errors.ts';
import type { Letter } from '../kernel/message/message.ts';
import type { ToolCall, ToolEntry } from '../kernel/message/transcript.ts';
import { wrapUntrusted } from '../kernel/message/untrusted.ts';
import { resultIdOf } from '../kernel/sessions/rules/earlier.ts';
import { newBoundary } from '../lib/boundary.ts';
import { canonicalJson, defined } from '../lib/json/json.ts';
import type { BoundCall, ToolContext, ToolOutcome } from '../tools/tool.ts';
import type { CallToApprove } from './agent.ts';
import {
  type AnswerLoop,
  blockedText,
  type EarlierResult,
  type GuardedCall,
  judgeCalls,
  loopIn,
  type Verdict,
} from './rules/guard.ts';
import { carriesData } from './rules/taint.ts';
import type { CallReport } from './rules/turn-closing.ts';
import type { CallTurn, TurnContext } from './turn-context.ts';

export const NOT_ALLOWED =
  'Permission denied: this user may not use this tool here. Do not try it another way. Tell the user.';

/**
 * Limit of texts that one call sends, so that each has a number of its own, the same on every
 * retry.
 */
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
  // The seal is compared again where the call runs, so that only the approved version runs.
  const verdict = await input.judge(wanted);
  if (verdict === 'run') return run(turn, call, bound, wanted.seal);
  const isWaiting = verdict?.isWaiting === true;
  const failure = isWaiting && verdict.isHere === true ? 'waiting' : 'permission';
  return { ...notAllowed(verdict?.text ?? NOT_ALLOWED), failure, isWaiting };
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

/** The request for an approval; an outcome where the call could not run anyway. */
async function toApprove(
  turn: CallTurn,
  call: ToolCall,
  bound: ReadyCall,
): Promise<CallToApprove | ToolOutcome> {
  const { thread, rights, settings } = turn;
  const { isTainted } = thread;
  const seal = await bound.seal(settings);
  if (typeof seal === 'object') return seal;
  // In a tainted conversation no allow rule applies, and none can be made.
  const isHeld = isHeldBack(turn);
  const standing = isHeld ? undefined : bound.standing?.();
  const timeZone = turn.input.person.timeZone ?? settings.timeZone;
  const words = bound.request?.({ now: thread.requestedAt ?? turn.clock.now(), timeZone });
  return {
    tool: bound.name,
    access: bound.accessIn({ isTainted }),
    detail: bound.detail,
    arguments: bound.arguments,
    ...defined({ words, seal }),
    rights: rights.current,
    isTainted,
    ...(isTainted && !isHeld ? { isTrusted: true as const } : {}),
    ordinal: thread.ordinalOf(call),
    requestedAt: thread.requestedAt,
    ...standing,
  };
}

async function post(turn: CallTurn, call: ToolCall, letter: Letter): Promise<string> {
  const { input, thread, rights } = turn;
  const { status, text } = await input.post({
    letter,
    rights: rights.current,
    isTainted: isHeldBack(turn),
    ordinal: thread.ordinalOf(call),
  });
  if (status === 'failed') throw new ToolError('execution', text);
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
    requestedAt: turn.thread.requestedAt,
    person: input.person,
    mayUse: (tool) => input.turnLimits?.mayUse(tool) ?? true,
    payer: input.messages[0].message,
    attached: turn.thread.attached,
    isOwnMedia: (media) => turn.thread.isOwnMedia(media),
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

/**
 * Whether calls need an approval because the conversation is tainted. What they write, note and
 * schedule is untrusted in any case.
 */
function isHeldBack({
  thread,
  input,
  clock,
}: Pick<CallTurn, 'thread' | 'input' | 'clock'>): boolean {
  return thread.isTainted && clock.now() >= (input.settings.trustedUntil ?? 0);
}

// Whether a call runs at once, waits for an approval, or is refused: by the rights of the turn and
// the taint of its conversation. Evaluated for every call: both may change in a turn.

type ReadyCall = Extract<BoundCall, { readonly kind: 'ready' }>;

export function permissionFor(
  turn: Pick<CallTurn, 'rights' | 'thread' | 'toolbox' | 'input' | 'clock'>,
  call: ToolCall,
  bound: ReadyCall,
): ReturnType<typeof permissionOf> {
  const { rights, thread, toolbox } = turn;
  const isTainted = isHeldBack(turn);
  const access = bound.accessIn({ isTainted });
  const allowed = narrowest(
    [{ access, reach: bound.reach }, ...(bound.needs ?? [])].map((need) =>
      permissionOf(need.access, rights.current, isTainted, need.reach),
    ),
  );
  const permission = allowed === 'free' && bound.alwaysAsks === true ? 'ask' : allowed;
  // The owner approves its text, not the call.
  if (bound.isPosted) return permission === 'ask' ? 'free' : permission;
  const { url } = bound;
  if (permission !== 'free' || !thread.isTainted || url === undefined) return permission;
  const earlier = thread.callsBefore(call).flatMap(({ name, arguments: json }) => {
    const other = toolbox.bind(name, json);
    return other.kind === 'ready' && other.url !== undefined ? [other.url] : [];
  });
  return carriesData(url, thread.knownTexts, earlier) ? 'ask' : permission;
}

const narrowest = (permissions: readonly ReturnType<typeof permissionOf>[]) =>
  (['never', 'ask'] as const).find((each) => permissions.includes(each)) ?? 'free';

// The form of a result that is too long: a briefing, if the model can read the rest; otherwise the
// beginning and the end, as the toolbox cut it.

const READER = 'read_result';

/** Whether the model can read results that are no longer shown, or not in full. */
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

// The calls of a turn for the guard, as parsed by the toolbox, with their results. rules/guard.ts
// decides what runs.

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
  return { key, tool: bound.name, kind: KINDS[bound.accessIn({ isTainted: false })] };
}

const KINDS: Readonly<Record<ToolAccess, GuardedCall['kind']>> = {
  ...{ read: 'looks', web: 'asks_the_net', say: 'speaks', send: 'speaks' },
  ...{ write: 'acts', rules: 'acts', execute: 'acts', schedule: 'acts' },
};

/** Calls of the newest answer that are not run, with the text for the model. */
export function blockedCalls(turn: TurnContext): ReadonlyMap<ToolCall, CallReport> {
  const rounds = guardedRounds(turn);
  if (rounds.length === 0) return new Map();
  const verdicts = judgeCalls(rounds, turn.settings.maxSameCalls);
  const calls = turn.thread.rounds.at(-1) ?? [];
  const canRead = canReadBack(turn);
  // An earlier result is repeated once; repeating it more would only fill the conversation.
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

// Watches an answer while it is streamed for a loop. stream.ts reacts to it.

/** New characters between two checks. */
const STEP_CHARS = 500;
type Stream = { text: string; lookedAt: number };

/** Watches the output of one call. */
export class LoopWatch {
  readonly #repeats: number;
  readonly #asked: string;
  readonly #streams = { text: newStream(), thinking: newStream() };
  /** The call has to be ended; `loop`: where its text, not its thinking, began to repeat. */
  broken: { readonly loop?: AnswerLoop } | undefined;
  hasCalls = false;

  /** `repeats`: 0: never ended; `asked`: the person's text, which may request repetition. */
  constructor(repeats: number, asked: string) {
    this.#repeats = repeats;
    this.#asked = asked;
  }

  get text(): string {
    return this.#streams.text.text;
  }

  /** Whether the call has to be ended. */
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
