// Sums up long conversations: in the background after a turn, on command, or in a turn that does not
// fit. One at a time per session. A step is one model call and one entry, so that a kill costs at most
// one call; the entry is only written where nothing of what it covers has changed meanwhile.

import { NanobotError, ProviderError } from '../kernel/message/errors.ts';
import type { SessionKey } from '../kernel/message/ids.ts';
import type { TranscriptEntry } from '../kernel/message/transcript.ts';
import { createPermits } from '../lib/async.ts';
import { newBoundary } from '../lib/boundary.ts';
import type { Clock } from '../lib/time/clock.ts';
import { losslessStep } from './compact.ts';
import type { CompactionReport, CompactionRequest, Compactor } from './compaction.ts';
import type { CompactorDeps } from './compactor-deps.ts';
import {
  keptTokens,
  maxSummaryTokens,
  planCompaction,
  stillStands,
  summaryEntry,
} from './rules/compaction.ts';
import { audienceOf, compactionPrompt, compactionText } from './rules/compaction-prompt.ts';
import { callBudget, entriesTokens } from './rules/tokens.ts';
import { takenUp } from './rules/turn-closing.ts';
import { SpendingRefusedError } from './spending.ts';

class SummaryUselessError extends NanobotError {
  override readonly name = 'SummaryUselessError';
  constructor() {
    super('summary_useless', 'the summary is no shorter than what it stands for');
  }
}

const MAX_STEPS = 8;
const MAX_AT_ONCE = 2;
/** Estimates err, and what is cut to the limit is marked. */
const READ_SHARE = 0.8;

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
    const work = attempt(request, AbortSignal.any([signal, closing.signal])).finally(() => {
      running.delete(session);
    });
    running.set(session, work);
    return work;
  }

  async function attempt(request: CompactionRequest, signal: AbortSignal) {
    const { session } = request;
    try {
      const permit = await permits.acquire(signal);
      try {
        const report = await compact(request, deps, signal);
        resting.succeeded(session);
        if (report.kind === 'compacted') log.info('conversation summed up', { session, ...report });
        return report;
      } finally {
        permit[Symbol.dispose]();
      }
    } catch (error) {
      if (!closing.signal.aborted) resting.failed(session);
      log.warn('conversation not summed up', { session, error });
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
      const left = Promise.withResolvers<never>();
      const leave = () => left.reject(signal.reason);
      signal.addEventListener('abort', leave, { once: true });
      try {
        return await Promise.race([start(request, signal), left.promise]);
      } finally {
        signal.removeEventListener('abort', leave);
      }
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
  const before = await deps.sessions.load(request.session);
  const once = request.policy.engine === 'lossless' ? losslessStep : compactOnce;
  let messages = 0;
  let steps = 0;
  for (; steps < MAX_STEPS; steps += 1) {
    const covered = await once(request, deps, signal);
    if (covered === undefined) break;
    messages += covered;
  }
  const tokensBefore = entriesTokens(before);
  if (steps === 0) return { kind: 'nothing', tokens: tokensBefore };
  const tokensAfter = entriesTokens(await deps.sessions.load(request.session));
  return { kind: 'compacted', messages, tokensBefore, tokensAfter };
}

/** How many messages the new summary stands for; undefined where none was made. */
async function compactOnce(
  { session, payer, model, policy, size, keepTokens = keptTokens(policy, size) }: CompactionRequest,
  { sessions, side, clock, models, outdated }: CompactorDeps,
  signal: AbortSignal,
): Promise<number | undefined> {
  const maxTokens = maxSummaryTokens(policy, size);
  const registry = models();
  const { contextTokens } = registry.resolve(registry.fast(model));
  const audience = policy.forAudience ? audienceOf(registry.resolve(model)) : undefined;
  const system = compactionPrompt(maxTokens, audience);
  const readTokens = Math.floor(callBudget(contextTokens, maxTokens).inputTokens * READ_SHARE);
  const limits = { keepTokens, summaryTokens: maxTokens, readTokens };
  const plan = planCompaction(await sessions.load(session), limits);
  if (plan === undefined) return undefined;
  const written = await side.complete(
    {
      role: 'compaction',
      payer,
      besides: model,
      system,
      text: compactionText(takenUp(plan.covered), readTokens, newBoundary()),
      maxTokens: maxTokens * 2,
    },
    signal,
  );
  const entry = summaryEntry(plan, written, maxTokens, clock.now());
  if (entry === undefined) throw new SummaryUselessError();
  const isWritten = await sessions.appendIf(session, [entry], (window) =>
    stillStands(plan, window),
  );
  if (isWritten) outdated(session);
  return isWritten ? plan.covered.filter(isMessage).length : undefined;
}

const isMessage = ({ role }: TranscriptEntry) =>
  role === 'user' || role === 'assistant' || role === 'tool';

// When what failed for a session may be tried again: after a while that doubles with each failure.
// Kept in memory only; a restart tries again.

export interface RetryTimes {
  isResting(session: SessionKey): boolean;
  failed(session: SessionKey): void;
  succeeded(session: SessionKey): void;
}

const FIRST_REST_MS = 60_000;
const LONGEST_REST_MS = 3_600_000;
const MAX_SESSIONS = 1000;

type Rest = { readonly untilMs: number; readonly restMs: number };

export function createRetryTimes(clock: Clock): RetryTimes {
  const rests = new Map<SessionKey, Rest>();
  return {
    isResting: (session) => (rests.get(session)?.untilMs ?? 0) > clock.monotonic(),
    failed(session) {
      const last = rests.get(session)?.restMs;
      const restMs = last === undefined ? FIRST_REST_MS : Math.min(2 * last, LONGEST_REST_MS);
      rests.delete(session);
      rests.set(session, { untilMs: clock.monotonic() + restMs, restMs });
      const [oldest] = rests.keys();
      if (rests.size > MAX_SESSIONS && oldest !== undefined) rests.delete(oldest);
    },
    succeeded: (session) => void rests.delete(session),
  };
}
