// What helpers, steps and workflows took so far, by kind of task, and what it says of the next one:
// limits as low as experience allows, and higher ones again where they were too low. Pure rules.

import type { Config } from '../../../kernel/config/config.ts';
import type { TOOL_NAMES } from '../../../kernel/config/tools.ts';
import type { TranscriptEntry } from '../../../kernel/message/transcript.ts';
import type { Plan } from './subagent.ts';

type ToolName = (typeof TOOL_NAMES)[number];

/** What the tools of a type do weighs more than those behind it. A name that is no tool does not compile. */
const TOOLS_OF = {
  shell: ['exec', 'execute_code'],
  helpers: ['spawn', 'workflow'],
  files: ['write_file', 'edit_file', 'checkpoint'],
  mail: ['send_email', 'check_inbox', 'message', 'send_file'],
  web: ['web_fetch', 'web_search', 'search', 'financial_search'],
  memory: ['remember', 'recall', 'session_search', 'read_earlier'],
  look: ['read_file', 'read_document', 'read_result', 'list_dir', 'search_files', 'read_skill'],
} as const satisfies Readonly<Record<string, readonly ToolName[]>>;

/** `other`: tools of another kind, or of other servers; `answer`: none. */
export type TaskType = keyof typeof TOOLS_OF | 'other' | 'answer';

/** By the tools that were really used, the one that weighs most. */
export function taskTypeOf(tools: readonly string[]): TaskType {
  if (tools.length === 0) return 'answer';
  const types = Object.keys(TOOLS_OF) as readonly (keyof typeof TOOLS_OF)[];
  const isOf = (type: keyof typeof TOOLS_OF) => TOOLS_OF[type].some((name) => tools.includes(name));
  return types.find(isOf) ?? 'other';
}

/** What a helper is for, known before it begins. */
export type HelperKind = 'task' | 'pipeline' | 'loop' | 'vote';

export const helperKind = (above: Plan['kind'], own: Plan): HelperKind =>
  own.kind === 'task' && own.isVote === true ? 'vote' : above;

/** One that is over. `hit`: it ended at this limit. */
export type Execution = {
  readonly id: string;
  /** What was known of it before it began, see `groupOf`. */
  readonly group: string;
  readonly type: TaskType;
  readonly model: string;
  readonly rounds: number;
  readonly maxRounds: number;
  readonly tokens: number;
  readonly maxTokens: number;
  readonly outcome: 'done' | 'failed' | 'limit';
  readonly hit?: 'rounds' | 'tokens';
  /** Millionths of the currency; 0 where no price is known. */
  readonly micros: number;
  readonly ms: number;
  readonly tools: number;
  readonly depth: number;
  /** Epoch milliseconds. */
  readonly at: number;
};

export const groupOf = (kind: HelperKind, profile: string | undefined) =>
  profile === undefined ? kind : `${kind} of ${profile}`;

/** What the entries of its turn tell of a helper. */
export function takenBy(
  entries: readonly TranscriptEntry[],
  limits: Pick<Execution, 'maxRounds' | 'maxTokens'>,
  isDone: boolean,
): Pick<Execution, 'type' | 'rounds' | 'tokens' | 'outcome' | 'hit' | 'tools'> {
  const answers = entries.filter((entry) => entry.role === 'assistant');
  const used = entries.flatMap((entry) => (entry.role === 'tool' ? [entry.name] : []));
  const rounds = Math.min(answers.length, limits.maxRounds);
  const tokens = answers.reduce(
    (sum, { usage }) => sum + (usage === undefined ? 0 : usage.inputTokens + usage.outputTokens),
    0,
  );
  const taken = { type: taskTypeOf(used), rounds, tokens, tools: used.length };
  // The last words of a turn that ends at a limit are a call more, or come before its tokens are used
  // up; an answer that was written so counts as one and may still lack what the helper was for.
  if (answers.length > limits.maxRounds) return { ...taken, outcome: 'limit', hit: 'rounds' };
  if (2 * tokens >= limits.maxTokens) return { ...taken, outcome: 'limit', hit: 'tokens' };
  return { ...taken, outcome: isDone ? 'done' : 'failed' };
}

export type Advice = {
  readonly rounds: number;
  readonly tokens: number;
  readonly depth: number;
  /** 0 to 1. */
  readonly confidence: number;
};

export type Configured = Pick<Advice, 'rounds' | 'tokens' | 'depth'>;

/** What holds for a helper without advice. */
export function configuredOf({ agents }: Config): Configured {
  const { tokens, maxDepth: depth } = agents.subagents;
  return { rounds: agents.defaults.maxToolIterations, tokens, depth };
}

const MIN_ROUNDS = 3;
const SPARE_ROUNDS = 2;
const QUARTILE = 0.75;
/** Of the configured tokens: for what usually takes less than three rounds, and for the rest. */
const SHORT_SHARE = 0.3;
const LONG_SHARE = 0.5;
const MANY_TOOLS = 3;
/** Newest runs of a kind in which a limit that was too low is remembered. */
const REMEMBERED = 20;

/**
 * For the next one of a group, of its runs with one model, oldest first; with no data the configured
 * limits, and never more than those. Each type of task that the group turned out to hold counts for
 * itself, so that many short ones do not starve a long one; who ended at a limit is given twice that.
 */
export function advise(runs: readonly Execution[], configured: Configured): Advice {
  const usable = runs.filter(({ outcome }) => outcome !== 'failed');
  if (usable.length === 0) return { ...configured, confidence: 0 };
  const types = [...Map.groupBy(usable, ({ type }) => type).values()];
  const hits = runs.slice(-REMEMBERED);
  const raised = (hit: Execution['hit'], limit: (run: Execution) => number) =>
    Math.max(0, ...hits.filter((run) => run.hit === hit).map((run) => 2 * limit(run)));
  const usualRounds = Math.max(
    ...types.map((some) => percentile(some, ({ rounds }) => rounds) + SPARE_ROUNDS),
  );
  const usualTokens = Math.max(...types.map((some) => percentile(some, ({ tokens }) => tokens)));
  const isShort = mean(usable, ({ rounds }) => rounds) < 3;
  const share = Math.round((isShort ? SHORT_SHARE : LONG_SHARE) * configured.tokens);
  const isDeep =
    mean(usable, ({ tools }) => tools) > MANY_TOOLS ||
    usable.some(({ type }) => type === 'helpers');
  const rounds = Math.max(
    MIN_ROUNDS,
    usualRounds,
    raised('rounds', (run) => run.maxRounds),
  );
  const tokens = Math.max(
    share,
    2 * usualTokens,
    raised('tokens', (run) => run.maxTokens),
  );
  return {
    rounds: Math.min(rounds, configured.rounds),
    tokens: Math.min(tokens, configured.tokens),
    depth: Math.min(isDeep ? 2 : 1, configured.depth),
    confidence: confidenceOf(Math.max(...types.map(({ length }) => length))),
  };
}

const confidenceOf = (runs: number) => Math.min(1, (Math.log2(runs) + 1) / 6);

/** The smallest value that three quarters do not exceed. */
function percentile(runs: readonly Execution[], of: (run: Execution) => number): number {
  const sorted = runs.map(of).sort((one, other) => one - other);
  return sorted[Math.ceil(QUARTILE * sorted.length) - 1] ?? 0;
}

function mean(runs: readonly Execution[], of: (run: Execution) => number): number {
  return runs.reduce((sum, run) => sum + of(run), 0) / runs.length;
}
