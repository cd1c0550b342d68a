// Records a model's answer, before any tool with effects may run, and gives the state machine its
// signal.

import { JOB_CHANNEL } from '../features/schedule/settings.ts';
import { unsupportedIn } from '../features/steadiness/index.ts';
import { isRepeatable } from '../kernel/access/rights.ts';
import { callId } from '../kernel/message/ids.ts';
import type { AgentEvent } from '../kernel/message/message.ts';
import type { AssistantEntry, ToolCall, TranscriptEntry } from '../kernel/message/transcript.ts';
import type { RequestPiece, RequestRecord } from '../kernel/sessions/rules/request-records.ts';
import { defined } from '../lib/json/json.ts';
import type { ModelEvent } from '../providers/provider.ts';
import { type CacheAlarm, fingerprintOf, type RequestNotes } from './fingerprints.ts';
import { type Asked, mayAct } from './model-call.ts';
import { TOOLS_TITLE } from './rules/prompt.ts';
import { textTokens } from './rules/tokens.ts';
import { closingOf } from './rules/turn-closing.ts';
import type { SignalOf, StateOf } from './rules/turn-state.ts';
import type { ModelCall, TurnContext } from './turn-context.ts';

export type Finished = Extract<ModelEvent, { type: 'finished' }>;

export async function takeAnswer(
  turn: TurnContext,
  asked: StateOf<'streaming'>,
  call: ModelCall,
  finished: Finished,
  text: string,
  notes: CallNotes,
): Promise<{ readonly signal: SignalOf<'streaming'>; readonly event: AgentEvent }> {
  const { ask } = asked;
  const { thread } = turn;
  const { usage, model } = finished;
  const isWritten = text.trim() !== '';
  const hadText = thread.written().length > 0;
  const toolCalls = mayAct(asked) ? withOwnIds(finished.toolCalls) : [];
  const isHidden = isBehindScenes(turn, asked) || (isSeparate(turn, asked) && toolCalls.length > 0);
  const isFinal = !isHidden && toolCalls.length === 0;
  const sentences = isFinal ? unsupportedIn(turn, ask, finished, text) : [];
  const doubt = sentences.length === 0 ? {} : { unsupported: sentences };
  const isDraft = isHidden || sentences.length > 0;
  const said = { text, toolCalls, ...(isDraft ? { isDraft } : {}), ...doubt, ...notes.asked };
  if (isWritten || toolCalls.length > 0) await recordAnswer(turn, finished, said);
  thread.partial = undefined;
  if (usage !== undefined) {
    const estimated = call.fixedTokens + call.threadTokens;
    turn.correction.observe(call.handle.name, estimated, usage.inputTokens);
  }
  notes.watch?.(finished);
  const event = {
    ...({ type: 'model_called', model, calls: finished.toolCalls.length } as const),
    ...(usage === undefined ? {} : { usage }),
    ...(sentences.length === 0 ? {} : ({ isDoubted: true } as const)),
  };
  const tokens = tokensOf(finished, call.fixedTokens + call.threadTokens);
  const [first, ...rest] = toolCalls;
  if (first !== undefined) {
    return { event, signal: { type: 'called', calls: [first, ...rest], tokens } };
  }
  const written = isWritten ? 'now' : hadText ? 'earlier' : 'never';
  const stop = finished.stop === 'tool_calls' ? 'end' : finished.stop;
  const drafted = isDraft ? { isDraft } : {};
  return { event, signal: { type: 'answered', written, stop, tokens, ...drafted, ...doubt } };
}

/** A separate call will write the answer, so this text is not it. */
const isSeparate = ({ settings }: TurnContext, asked: Asked) =>
  settings.finalAnswer === 'separate' && mayAct(asked);

/** Only after the first tool call; before it the text may be the whole answer. */
export const isBehindScenes = (turn: TurnContext, asked: Asked) =>
  isSeparate(turn, asked) && asked.ask.kind === 'work' && turn.thread.hasCalls;

async function recordAnswer(
  turn: TurnContext,
  { thinking, model, usage }: Finished,
  said: Pick<AssistantEntry, 'text' | 'toolCalls' | 'isDraft' | 'unsupported' | 'asked'>,
): Promise<void> {
  const entry = {
    role: 'assistant' as const,
    turnId: turn.input.turnId,
    ...said,
    thinking,
    model,
    throughSeq: turn.thread.throughSeq,
    at: turn.clock.now(),
    ...(usage === undefined ? {} : { usage }),
  };
  await turn.thread.record([entry], { durable: hasEffects(turn, said.toolCalls) });
}

/** Some servers repeat call ids; within one answer each must be unique. */
function withOwnIds(calls: readonly ToolCall[]): readonly ToolCall[] {
  const used = new Set<string>();
  return calls.map((call) => {
    let id = call.id;
    for (let copy = 2; used.has(id) || id === ''; copy += 1) id = callId(`${call.id}_${copy}`);
    used.add(id);
    return { ...call, id };
  });
}

/** Whether a call may have effects: the answer has to be on the disk before it runs. */
export function hasEffects({ toolbox }: TurnContext, calls: readonly ToolCall[]): boolean {
  return calls.some((call) => {
    const bound = toolbox.bind(call.name, call.arguments);
    return bound.kind === 'ready' && !isRepeatable(bound.access);
  });
}

/** In and out; estimated where the provider did not count. */
export function tokensOf({ usage, text, toolCalls }: Finished, inputTokens = 0): number {
  if (usage !== undefined) return usage.inputTokens + usage.outputTokens;
  return inputTokens + textTokens(text + toolCalls.map((call) => call.arguments).join(''));
}

// Finalizing: the answer for the person, written together with the turn's end before it is sent.
// Neither a stop nor a deadline interrupts it.

export async function finalizeTurn(
  turn: TurnContext,
  { ending, progress }: StateOf<'finalizing'>,
): Promise<SignalOf<'finalizing'>> {
  const { thread, input, clock } = turn;
  const begun = thread.partial;
  const written = thread.written(begun?.text);
  // The program reads the answers of subagents and jobs and expects the text alone.
  const isForPerson =
    input.turnLimits === undefined && input.messages[0].message.chat.channel !== JOB_CHANNEL;
  const notices = isForPerson ? turn.notices.kept : [];
  const isTakenOver = ending.kind === 'stopped' && ending.isTakenOver === true;
  const closing = closingOf(ending, written, turn.limits, notices);
  const { outcome } = closing;
  const answers = isTakenOver ? [] : closing.answers;
  const { throughSeq } = thread;
  const common = { turnId: input.turnId, at: clock.now() };
  const unfinished: readonly TranscriptEntry[] =
    begun === undefined
      ? []
      : [{ ...common, ...begun, role: 'assistant', toolCalls: [], thinking: [], throughSeq }];
  const { unrecorded } = turn.shared;
  const shared = unrecorded.length === 0 ? {} : { shared: unrecorded };
  const end: TranscriptEntry = {
    ...common,
    ...{ role: 'turn_end', outcome, answers, throughSeq },
    ...shared,
    ...(isTakenOver ? { isTakenOver } : {}),
  };
  await thread.record([...unfinished, end], { durable: input.epoch === undefined });
  turn.log.debug('turn closed', {
    ending: ending.kind,
    ...(ending.kind === 'limit' ? { limit: ending.limit } : {}),
    rounds: progress.rounds,
    tokens: progress.tokens,
    elapsedMs: turn.time.elapsedMs(),
  });
  return { type: 'recorded', outcome: { kind: outcome, answers, throughSeq } };
}

// Writes the request log of the session: prompt, tools, settings and rights of the turn. The entry
// of the answer refers to it. Unchanged parts are not written again.

type Named = Pick<AssistantEntry, 'asked'>;

/** What is noted of a call; `watch` gets its answer. */
export type CallNotes = {
  readonly asked: Named;
  readonly watch: ReturnType<CacheAlarm['asked']> | undefined;
};

/** Computed once, with the first use. */
export function notesOn(turn: TurnContext, asked: Asked, call: ModelCall): () => CallNotes {
  let notes: CallNotes | undefined;
  return () => {
    notes ??= {
      asked: askedMain(turn, call, asked.cue?.tools === 'none'),
      watch: call.isUnsteady ? undefined : watchCache(turn, call),
    };
    return notes;
  };
}

function watchCache({ input, rights, cacheAlarm, log }: TurnContext, { request }: ModelCall) {
  const { tools, system, messages } = request;
  const watched = { session: input.session, rights: rights.current, tools, system, messages };
  return cacheAlarm.asked(watched, log);
}

/**
 * For a call of the main model; if it only wrote, the tools that other models call are not part of
 * it.
 */
function askedMain(turn: TurnContext, call: ModelCall, isOnlyWriting: boolean): Named {
  const { asked } = turn;
  if (asked === undefined) return {};
  const { fingerprints } = asked;
  const { system, tools: specs, maxTokens, temperature } = call.request;
  const tools = isOnlyWriting ? undefined : specs;
  const prompt = system.flatMap(fingerprints.ofParts);
  const told = {
    ...standing(turn, call.handle.name, asked),
    ...{ maxTokens, contextTokens: call.contextTokens },
    ...(temperature === undefined ? {} : { temperature }),
    prompt: prompt.map(({ name, print }): [string, string] => [name, print]),
    ...(tools === undefined ? {} : { tools: tools.map((tool) => fingerprints.ofTool(tool).print) }),
  };
  return kept(turn, asked, told, () => [
    ...system
      .flatMap(({ parts }) => parts)
      .flatMap(({ name, text }, at) => ({
        ...{ print: prompt[at]?.print ?? fingerprintOf(text), text },
        ...(name === TOOLS_TITLE ? COMMON : {}),
      })),
    ...(tools ?? []).map(fingerprints.ofTool),
  ]);
}

const COMMON = { isCommon: true } as const;

/** For a call of another model. */
export function askedOther(turn: TurnContext, model: string): Named {
  const { asked } = turn;
  return asked === undefined ? {} : kept(turn, asked, standing(turn, model, asked), () => []);
}

function standing(
  { input, rights }: TurnContext,
  model: string,
  { config }: RequestNotes,
): RequestRecord {
  const { thinkingBudget, mode, engine } = input.settings;
  const about = { model, thinkingBudget, rights: rights.current, config: config.print };
  return { ...about, ...defined({ mode, engine }) };
}

function kept(
  { input }: TurnContext,
  { requestLog, config }: RequestNotes,
  told: RequestRecord,
  pieces: () => readonly RequestPiece[],
): Named {
  const text = JSON.stringify(told);
  const ask = { print: fingerprintOf(text), text };
  requestLog.keep(input.session, ask, () => [config, ...pieces()]);
  return { asked: ask.print };
}
