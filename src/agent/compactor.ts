// Summarises long conversations: in the background after a turn, on command, or in a turn that does
// not fit. One summary at a time per session. A step writes one entry, so that a crash costs at
// most its model calls; the entry is written only if the entries it covers did not change
// meanwhile. The engine, a setting, decides what a step covers: everything by one text, or the next
// of several nodes.

import type { Kernel } from '../kernel/feature.ts';
import { NanobotError, ProviderError } from '../kernel/message/errors.ts';
import type { SessionKey } from '../kernel/message/ids.ts';
import type { SummaryEntry, SummaryNode, TranscriptEntry } from '../kernel/message/transcript.ts';
import { isMessage } from '../kernel/sessions/rules/carry.ts';
import { lineOf } from '../kernel/sessions/rules/earlier.ts';
import { createPermits, RecentMap } from '../lib/async.ts';
import { newBoundary } from '../lib/boundary.ts';
import { type Clock, following, orAborted } from '../lib/time/clock.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import type { Toolbox } from '../tools/tool.ts';
import type { CompactionReport, CompactionRequest, Compactor } from './agent.ts';
import { SpendingRefusedError } from './agent.ts';
import { expectedTokens, planCall } from './model-call.ts';
import {
  type CompactionPolicy,
  hardTokens,
  keptTokens,
  maxSummaryTokens,
  planCompaction,
  stillStands,
  summaryEntry,
  type WrittenParts,
  withMissing,
} from './rules/compaction.ts';
import { apart, EXPAND, nodesInView, showsUntrusted, trustedOnly } from './rules/context-marks.ts';
import {
  expansionNote,
  MIN_EXPANSION_TOKENS,
  relevantNode,
  termsOf,
} from './rules/document-text.ts';
import {
  ASKED_STYLES,
  cutNode,
  entryWithNode,
  losslessLimits,
  type NodePlan,
  nodePrompt,
  nodeTokens,
  planNode,
  unreadNode,
  writtenNode,
} from './rules/lossless.ts';
import { callBudget, entriesTokens, textTokens } from './rules/tokens.ts';
import { takenUp } from './rules/turn-closing.ts';
import { confinedTools } from './settings.ts';
import type { SideModel } from './side-model.ts';
import type { TurnContext } from './turn-context.ts';

type CompactorDeps = Pick<Kernel, 'sessions' | 'clock' | 'log'> & {
  readonly side: SideModel;
  models(): ModelRegistry;
  /** Discards what was prepared for the session's next turn. */
  outdated(session: SessionKey): void;
};

class SummaryUselessError extends NanobotError {
  override readonly name = 'SummaryUselessError';
  constructor() {
    super('summary_useless', 'the summary is no shorter than what it stands for');
  }
}

const MAX_STEPS = 8;
const MAX_AT_ONCE = 2;
/** Estimates err, and text that is cut to the limit is marked. */
const READ_SHARE = 0.8;
/** Number of newest turns, among those left out by a new file, that become a node of their own. */
const MAX_FOUND_TURNS = 20;
/** Turns of a node that is made again; what is too long to read is cut. */
const MAX_TURNS_AGAIN = 200;

export function createCompactor(deps: CompactorDeps): Compactor {
  const { clock, log } = deps;
  const closing = new AbortController();
  const permits = createPermits(MAX_AT_ONCE);
  const running = new Map<SessionKey, Promise<CompactionReport>>();
  const resting = createRetryTimes(clock);

  function start(request: CompactionRequest, signal: AbortSignal): Promise<CompactionReport> {
    const { session } = request;
    const known = running.get(session);
    if (known !== undefined) return known;
    const either = following(signal, closing.signal);
    const work = attempt(request, either.signal).finally(() => {
      either[Symbol.dispose]();
      running.delete(session);
    });
    running.set(session, work);
    return work;
  }

  async function attempt(request: CompactionRequest, signal: AbortSignal) {
    const { session } = request;
    try {
      using _permit = await permits.acquire(signal);
      const report = await compact(request, deps, signal);
      resting.succeeded(session);
      if (report.kind === 'compacted') log.info('conversation summarised', { session, ...report });
      return report;
    } catch (error) {
      if (!closing.signal.aborted) resting.failed(session);
      log.warn('conversation not summarised', { session, error });
      return failure(error);
    }
  }

  return {
    inBackground(request) {
      if (closing.signal.aborted || resting.isResting(request.session)) return;
      void start(request, closing.signal);
    },
    async now(request, signal) {
      signal.throwIfAborted();
      return orAborted(start(request, signal), signal);
    },
    rest: (session) => resting.failed(session),
    isResting: (session) => resting.isResting(session),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await Promise.allSettled(running.values());
    },
  };
}

function failure(error: unknown): CompactionReport {
  if (error instanceof SpendingRefusedError) return { kind: 'failed', text: error.text };
  const text = error instanceof ProviderError ? error.userText : undefined;
  return { kind: 'failed', ...(text === undefined ? {} : { text }) };
}

async function compact(
  request: CompactionRequest,
  deps: CompactorDeps,
  signal: AbortSignal,
): Promise<CompactionReport> {
  const { session } = request;
  const tokensBefore = entriesTokens(await deps.sessions.load(session));
  let messages = 0;
  let steps = 0;
  for (; steps < MAX_STEPS; steps += 1) {
    const covered = await oneStep(request, deps, signal);
    if (covered === undefined) break;
    messages += covered;
  }
  if (steps === 0) return { kind: 'nothing', tokens: tokensBefore };
  const tokensAfter = entriesTokens(await deps.sessions.load(session));
  return { kind: 'compacted', messages, tokensBefore, tokensAfter };
}

type Made = { readonly covered: readonly TranscriptEntry[]; readonly entry: SummaryEntry };
type Asked = {
  readonly system: string;
  readonly record: readonly TranscriptEntry[];
  readonly maxTokens: number;
};
type Step = CompactorDeps & {
  readonly request: CompactionRequest;
  readonly window: readonly TranscriptEntry[];
  /** Tokens that the summarising model can read at once, beside an answer of this length. */
  readTokens(answerTokens: number): number;
  ask(asked: Asked, readTokens: number): Promise<string>;
};

/** Number of messages that the new summary replaces; undefined where there was nothing to do. */
async function oneStep(
  request: CompactionRequest,
  deps: CompactorDeps,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { session, payer, model, policy } = request;
  const { sessions, side, models, outdated } = deps;
  const registry = models();
  const { contextTokens } = registry.resolve(registry.fast(model));
  const about = { role: 'compaction', payer, besides: model } as const;
  const step: Step = {
    ...deps,
    request,
    window: await sessions.load(session),
    readTokens: (tokens) => Math.floor(callBudget(contextTokens, tokens).inputTokens * READ_SHARE),
    async ask({ system, record, maxTokens }, readTokens) {
      const { compactionText } = await import('./rules/compaction-prompt.ts');
      const text = compactionText(record, readTokens, newBoundary());
      return side.complete({ ...about, system, text, maxTokens: maxTokens * 2 }, signal);
    },
  };
  const made = await (policy.engine === 'lossless' ? nextNode(step) : wholeSummary(step));
  if (made === undefined) return undefined;
  const isWritten = await sessions.appendIf(session, [made.entry], (now) => stillStands(made, now));
  if (!isWritten) return undefined;
  outdated(session);
  return made.covered.filter(isMessage).length;
}

/** One text that replaces the oldest turns and the summary before them. */
async function wholeSummary(step: Step): Promise<Made | undefined> {
  const { audienceOf, compactionPrompt } = await import('./rules/compaction-prompt.ts');
  const { model, policy, size, keepTokens = keptTokens(policy, size) } = step.request;
  const maxTokens = maxSummaryTokens(policy, size);
  const audience = policy.forAudience ? audienceOf(step.models().resolve(model)) : undefined;
  const readTokens = step.readTokens(maxTokens);
  const limits = { keepTokens, summaryTokens: maxTokens, readTokens };
  const plan = planCompaction(step.window, limits);
  if (plan === undefined) return undefined;
  const write: WritePart = async (record, most) => {
    const system = compactionPrompt(most, audience);
    const written = await step.ask({ system, record, maxTokens: most }, readTokens);
    return { text: withMissing(written.trim(), record, most), style: 'details' };
  };
  const written = await writtenParts(takenUp(plan.covered), step, maxTokens, write);
  const entry = summaryEntry(plan, written, step.clock.now());
  if (entry === undefined) throw new SummaryUselessError();
  return { covered: plan.covered, entry };
}

type Written = Pick<SummaryNode, 'text' | 'style'>;
type WritePart = (record: readonly TranscriptEntry[], maxTokens: number) => Promise<Written>;

/**
 * One text where nothing is untrusted; otherwise one text for each part, each made without the
 * other, so that no untrusted content reaches the trusted text. The untrusted part is dropped when
 * the untrusted content leaves the view.
 */
async function writtenParts(
  made: readonly TranscriptEntry[],
  { window }: Step,
  maxTokens: number,
  write: WritePart,
  wasTainted = false,
): Promise<Written & WrittenParts> {
  const { trusted, untrusted } = apart(made, wasTainted);
  if (untrusted.length === 0) return write(made, maxTokens);
  const isShown = showsUntrusted(window);
  const most = isShown ? Math.floor(maxTokens / 2) : maxTokens;
  const told = trusted
    .map((entry) => (entry.role === 'summary' ? entry.text : lineOf(entry)))
    .filter((line) => line !== '')
    .join('\n');
  // A short text is kept verbatim.
  const isShort = textTokens(told) <= most;
  const own = isShort ? { text: told, style: 'details' as const } : await write(trusted, most);
  return isShown ? { ...own, untrusted: (await write(untrusted, most)).text } : own;
}

/** A node, written by a model level by level, or cut from its messages where no level succeeds. */
async function nextNode(step: Step): Promise<Made | undefined> {
  const { policy, size, keepTokens } = step.request;
  const readTokens = step.readTokens(policy.summaryTokens);
  const planned = planNode(step.window, losslessLimits(policy, size, readTokens, keepTokens));
  if (planned === undefined) return undefined;
  const plan = await withFound(planned, step);
  const { made, covered } = plan;
  const maxTokens = nodeTokens(made, 'details', policy.summaryTokens);
  // Entries read from the files carry marks of their own.
  const wasTainted =
    plan.finds === undefined && step.window.some((e) => e.role === 'summary' && 'isForeign' in e);
  const write: WritePart = (record, most) => textFor(record, most, step, readTokens);
  const written =
    made.length === 0
      ? ({ text: unreadNode(plan.node), style: 'cut' } as const)
      : await writtenParts(made, step, maxTokens, write, wasTainted);
  const entry = entryWithNode(plan, written, step.clock.now());
  return { covered, entry: showsUntrusted(step.window) ? entry : trustedOnly(entry) };
}

/** Adds messages from the session's files, and a node for those that are too many. */
async function withFound(plan: NodePlan, { request, sessions }: Step): Promise<NodePlan> {
  if (plan.finds === undefined) return plan;
  const range = { from: plan.node.from, before: plan.node.before };
  const isLeftOut = plan.finds === 'left_out';
  const { turns } = await sessions.earlier(request.session, {
    ...(isLeftOut ? { before: range.before } : range),
    maxTurns: isLeftOut ? MAX_FOUND_TURNS : MAX_TURNS_AGAIN,
  });
  const found = turns.filter(({ turn }) => turn >= range.from);
  const made = found.flatMap(({ entries }) => entries);
  const from = found[0]?.turn ?? range.from;
  const isSplit = isLeftOut && turns.length >= MAX_FOUND_TURNS && from > range.from;
  if (!isSplit) return { ...plan, made };
  const older = { from: range.from, before: from };
  const unread: SummaryNode = { ...older, level: 0, style: 'cut', text: unreadNode(older) };
  const { messages: _, ...node } = plan.node;
  return {
    ...plan,
    made,
    node: { ...node, from, messages: made.filter(isMessage).length },
    others: [...plan.others, unread],
  };
}

async function textFor(
  record: readonly TranscriptEntry[],
  most: number,
  { ask }: Step,
  readTokens: number,
): Promise<Written> {
  for (const style of ASKED_STYLES) {
    const maxTokens = nodeTokens(record, style, most);
    const system = nodePrompt(style, maxTokens);
    const written = await ask({ system, record, maxTokens }, readTokens);
    const text = writtenNode(written, record, maxTokens);
    if (text !== undefined) return { text, style };
  }
  return { text: cutNode(record, nodeTokens(record, 'cut', most)), style: 'cut' };
}

const FIRST_REST_MS = 60_000;
const LONGEST_REST_MS = 3_600_000;
const MAX_SESSIONS = 1000;

/**
 * When a failed summary of a session may be retried: after a delay that doubles with each failure.
 * In memory only; a restart retries at once.
 */
function createRetryTimes(clock: Clock) {
  const rests = new RecentMap<SessionKey, { readonly untilMs: number; readonly restMs: number }>(
    MAX_SESSIONS,
  );
  return {
    isResting: (session: SessionKey) => (rests.get(session)?.untilMs ?? 0) > clock.monotonic(),
    failed(session: SessionKey): void {
      const last = rests.get(session)?.restMs;
      const restMs = last === undefined ? FIRST_REST_MS : Math.min(2 * last, LONGEST_REST_MS);
      rests.set(session, { untilMs: clock.monotonic() + restMs, restMs });
    },
    succeeded: (session: SessionKey) => void rests.delete(session),
  };
}

// Expansion: adds messages that a node replaced to a question about them, as a note in this turn
// only. Computed again, with the same result, where the turn is repeated.

const CONTEXT_SHARE = 0.05;
const MAX_TOKENS = 2000;
const MAX_TURNS = 50;
/** Bounds the cost in an old conversation; the tool reads further back. */
const MAX_FILES = 3;

/** Errors leave the question unchanged: the model can still expand the node itself. */
export async function expandFor(turn: TurnContext): Promise<void> {
  const nodes = nodesInView(turn.prepared.history);
  if (nodes.length === 0) return;
  try {
    await expand(turn, nodes);
  } catch (error) {
    turn.log.warn('node not expanded', { error });
  }
}

async function expand(turn: TurnContext, nodes: readonly SummaryNode[]): Promise<void> {
  const terms = termsOf(turn.input.messages.map(({ message }) => message.text).join('\n'));
  const node = relevantNode(nodes, terms);
  const tokens = node === undefined ? 0 : roomIn(turn);
  if (node === undefined || tokens < MIN_EXPANSION_TOKENS) return;
  const { from, before } = node;
  const range = { from, before, maxTurns: MAX_TURNS, maxFiles: MAX_FILES };
  const { turns } = await turn.sessions.earlier(turn.input.session, range);
  turn.expansion.note = expansionNote(node, turns, terms, tokens);
}

/** The room below the limit at which the call would wait for a summary. */
function roomIn(turn: TurnContext): number {
  const model = turn.input.settings.model ?? turn.models.defaultModel;
  const call = planCall(turn, { model, ask: { kind: 'work' } });
  const { contextTokens, handle } = call;
  const left = hardTokens(turn.settings.compaction, call) - expectedTokens(turn, call);
  const uncorrected = left / turn.correction.factor(handle.name);
  return Math.floor(Math.min(uncorrected, contextTokens * CONTEXT_SHARE, MAX_TOKENS));
}

// Offers the tool that expands nodes only where the conversation has nodes or gets some.

export function withExpand(
  toolbox: Toolbox,
  { enabled, engine }: CompactionPolicy,
  history: readonly TranscriptEntry[],
): Toolbox {
  const isUsed = (enabled && engine === 'lossless') || nodesInView(history).length > 0;
  return isUsed ? toolbox : confinedTools(toolbox, { mayUse: (name) => name !== EXPAND });
}
