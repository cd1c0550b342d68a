// Asks a model that shares the work of a turn: once, with a deadline, charged to the payer of the turn. Also
// how its work enters the record: calls that are no tools, and the text it hands back.

import { messagesTokens, textTokens } from '../../agent/rules/tokens.ts';
import { chargedMeter, untilAborted } from '../../agent/side-model.ts';
import { SpendingRefusedError } from '../../agent/spending.ts';
import { cutAnswer, waitingNotice } from '../../agent/stream.ts';
import { TurnTime } from '../../agent/turn-context.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import type { TokenUsage } from '../../kernel/message/transcript.ts';
import { wrapUntrusted } from '../../kernel/message/untrusted.ts';
import { newBoundary } from '../../lib/boundary.ts';
import { shortened, withFenceClosed } from '../../lib/text/cut.ts';
import type { ModelEvent, ModelRequest } from '../../providers/provider.ts';
import type { BoundCall, Toolbox, ToolContext, ToolOutcome } from '../../tools/tool.ts';
import { correctionNote } from '../steadiness/rules/claims.ts';
import { claimsUndone, loopWatch } from '../steadiness/steadiness.ts';
import type { Speaker } from './mode.ts';
import type { ModeTurn } from './modes.ts';
import type { RoleHealth, RoleModel } from './role-health.ts';

export type RoleCall = Pick<ModelRequest, 'messages' | 'tools' | 'toolChoice' | 'maxTokens'> & {
  readonly system: string;
  readonly temperature: number;
  readonly timeoutMs: number;
};

export type RoleAnswer = Extract<ModelEvent, { readonly type: 'finished' }>;

class RoleLate extends Error {
  override readonly name = 'RoleLate';
}

export type AskedRole =
  | {
      readonly kind: 'answered';
      readonly answer: RoleAnswer;
      /** Whether it could be used, for its health; true: it is left alone from now on. */
      judge(isUsable: boolean): boolean;
    }
  /** `isOut`: it is left alone from now on. */
  | { readonly kind: 'failed'; readonly isOut: boolean };

type Asked = { readonly health: RoleHealth; readonly who: RoleModel };

/**
 * An answer that the caller does not judge counts for nothing. Where the conversation stays on one's
 * own machines, a model elsewhere fails without an effect on its health.
 * @throws SpendingRefusedError, or the reason of the signal
 */
export async function askRole(
  turn: ModeTurn,
  { health, who }: Asked,
  call: RoleCall,
  signal: AbortSignal,
): Promise<AskedRole> {
  const late = new AbortController();
  const time = new TurnTime(turn.clock);
  const deadline = time.limit(call.timeoutMs, () => late.abort(new RoleLate()));
  const payer = payerOf(turn);
  try {
    const either = AbortSignal.any([signal, late.signal]);
    const answer = await answerOf(turn, { ...who, time }, call, either);
    return {
      kind: 'answered',
      answer,
      judge(isUsable) {
        if (!isUsable) return health.failed(who, payer, 'useless');
        health.succeeded(who, payer);
        return false;
      },
    };
  } catch (error) {
    signal.throwIfAborted();
    if (mustStayLocal(error)) return { kind: 'failed', isOut: false };
    if (!(error instanceof ProviderError || error instanceof RoleLate)) throw error;
    turn.log.warn('a model that shares the work failed', { ...who, error });
    return { kind: 'failed', isOut: health.failed(who, payer, 'silent') };
  } finally {
    deadline[Symbol.dispose]();
    turn.time.goOn();
  }
}

const mustStayLocal = (error: unknown) =>
  error instanceof SpendingRefusedError && error.because === 'local_only';

const payerOf = ({ input }: ModeTurn) => input.messages[0].message;

async function answerOf(
  turn: ModeTurn,
  { role, model, time }: RoleModel & { readonly time: TurnTime },
  { system, timeoutMs: _, ...asked }: RoleCall,
  signal: AbortSignal,
): Promise<RoleAnswer> {
  const { messages, tools, maxTokens } = asked;
  const request = { ...asked, system: [{ text: system, stable: true }] };
  const inputTokens = () =>
    textTokens(system) + messagesTokens(messages) + textTokens(JSON.stringify(tools));
  const { turnId } = turn.input;
  const metered = { role, turnId, maxTokens, inputTokens };
  const meter = chargedMeter(turn.spending, payerOf(turn), metered);
  const handle = turn.models.resolve(model, 'once');
  const watch = loopWatch(turn, handle);
  for await (const event of untilAborted(handle.stream(request, signal, meter), signal)) {
    // A wait for a place at a local server is no part of the call, nor of the turn.
    const isWaiting = event.type === 'waiting' && event.ahead > 0;
    if (isWaiting) turn.notices.tell(waitingNotice(event));
    for (const each of [time, turn.time]) isWaiting ? each.standStill() : each.goOn();
    if (event.type === 'finished') {
      turn.shared.add({ role, ...speakerOf(event) });
      return event;
    }
    if (event.type === 'retrying') watch?.restart();
    const isPiece = event.type === 'text' || event.type === 'thinking';
    // The text until then is the answer; asking once more is left to the caller.
    if (isPiece && watch?.isLooping(event.type, event.delta) === true)
      return cutAnswer({ handle }, watch);
  }
  throw new ProviderError('the answer did not end', {
    failure: { kind: 'malformed' },
    provider: handle.name,
    model: handle.name,
  });
}

export const speakerOf = ({ model, usage }: RoleAnswer): Speaker =>
  usage === undefined ? { model } : { model, usage };

/** In and out; estimated where nobody counted. */
export function tokensOf({ usage, text, toolCalls }: RoleAnswer): number {
  if (usage !== undefined) return usage.inputTokens + usage.outputTokens;
  return textTokens(text + toolCalls.map((call) => call.arguments).join(''));
}

/** The limits of one call, as they are configured for a role. */
export const callTerms = (role: {
  readonly maxTokens: number;
  readonly temperature: number;
  readonly timeoutSecs: number;
}) => ({
  maxTokens: role.maxTokens,
  temperature: role.temperature,
  timeoutMs: role.timeoutSecs * 1000,
});

/** The model of the conversation. */
export const mainModelOf = ({ input, models }: Pick<ModeTurn, 'input' | 'models'>) =>
  input.settings.model ?? models.defaultModel;

// Asks a model for a text that goes to the person as it is: where it tells of what no tool did, the model is
// asked once to correct it, like the main model. Nothing is rewritten here.

type Held = AskedRole & {
  /** It was asked to correct its text; the usage of both calls stands in the answer. */
  readonly wasDoubted?: true;
};

/** @throws as `askRole` */
export async function askHeld(
  turn: ModeTurn,
  asking: Asked,
  call: RoleCall,
  signal: AbortSignal,
): Promise<Held> {
  const first = await askRole(turn, asking, call, signal);
  if (first.kind === 'failed' || first.answer.toolCalls.length > 0) return first;
  const { text, usage } = first.answer;
  const sentences = claimsUndone(turn, first.answer, text);
  if (sentences.length === 0) return first;
  const mayAct = call.tools.length > 0 && call.toolChoice === undefined;
  const messages = [
    ...call.messages,
    { role: 'assistant', text, toolCalls: [], thinking: [] },
    { role: 'user', text: correctionNote(sentences, mayAct) },
  ] as const;
  try {
    const again = await askRole(turn, asking, { ...call, messages }, signal);
    if (again.kind === 'failed') return { ...again, wasDoubted: true };
    const both = sumOf(usage, again.answer.usage);
    const answer = both === undefined ? again.answer : { ...again.answer, usage: both };
    return { ...again, answer, wasDoubted: true };
  } catch (error) {
    if (!(error instanceof SpendingRefusedError)) throw error;
    // There is no money to ask again: the first answer stands.
    return { ...first, wasDoubted: true };
  }
}

function sumOf(one: TokenUsage | undefined, other: TokenUsage | undefined) {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cachedTokens: one.cachedTokens + other.cachedTokens,
  };
}

const CUT_OFF = '[It ends here, because the limit of its length was reached.]';

/** To the letter, and judged: an empty text is useless; a refusal is empty too, and is not judged. */
export function writtenBy({ answer, judge }: Extract<AskedRole, { readonly kind: 'answered' }>): {
  readonly text: string;
  readonly isOut: boolean;
} {
  if (answer.stop === 'refused') return { text: '', isOut: false };
  const text = answer.text.replace(/^(?:[^\S\n]*\n)+/, '').trimEnd();
  const isOut = judge(text !== '');
  if (text === '' || answer.stop !== 'length') return { text, isOut };
  return { text: `${withFenceClosed(text)}\n\n${CUT_OFF}`, isOut };
}

/** Marks a text as untrusted. */
export const marked = (what: string, text: string) =>
  wrapUntrusted(what, [{ text }], newBoundary());

/** What a specialist wrote, as the result of a call: cut, and untrusted in a tainted turn. */
export function handedBack(
  { settings, thread }: ModeTurn,
  from: string,
  written: string,
): ToolOutcome {
  const text = shortened(written, settings.maxResultChars);
  if (!thread.isTainted) return { status: 'ok', text };
  const about = `from ${from}, who read words of others`;
  return { status: 'ok', text: marked(about, text), isForeign: true };
}

/** What a call that is no tool does, or the name of the tool that the model does not have. */
type OwnCall =
  | { readonly detail: string; run(context: ToolContext): Promise<ToolOutcome> }
  | string;

/** The tools of the turn, and calls of the mode itself by their names, which are recorded and run like them. */
export function withOwnCalls(
  toolbox: Toolbox,
  calls: Readonly<Record<string, (json: string) => OwnCall>>,
): Toolbox {
  return {
    ...toolbox,
    bind(name, json): BoundCall {
      const read = Object.hasOwn(calls, name) ? calls[name] : undefined;
      if (read === undefined) return toolbox.bind(name, json);
      const own = read(json);
      if (typeof own === 'string') return { kind: 'refused', name, outcome: unknownTool(own) };
      const fixed = { access: 'read', isPosted: false, url: undefined } as const;
      const more = { accessIn: () => 'read' as const, seal: async () => undefined };
      return { kind: 'ready', name, ...fixed, ...more, arguments: json, ...own };
    },
  };
}

function unknownTool(tool: string): ToolOutcome {
  const text = `Error (unknown tool): you have no tool ${tool} here. Use those you were given.`;
  return { status: 'failed', text, failure: 'unknown_tool' };
}
