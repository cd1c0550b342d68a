// Statistics of earlier subagents, steps and workflows by kind of task, and the limits derived from
// them: as low as experience allows, raised again where they were too low. Pure.

import type { Config } from '../../../kernel/config/config.ts';
import type { TOOL_NAMES } from '../../../kernel/config/limits.ts';
import type { TranscriptEntry } from '../../../kernel/message/transcript.ts';
import { fieldsOf, parseJson } from '../../../lib/json/json.ts';
import { headOf, shortened } from '../../../lib/text/cut.ts';
import type { VotingConfig } from '../settings.ts';
import type { PartAnswer, Plan, Step, SubagentRun, Until } from './subagent.ts';
import {
  type Ballot,
  normalised,
  textBallot,
  undecidedText,
  usualMost,
  type Verdict,
  type VoteTerms,
  verdictOf,
} from './vote.ts';

type ToolName = (typeof TOOL_NAMES)[number];

/**
 * Types of tasks by tools; earlier types outweigh later ones. A name that is not a tool does not
 * compile.
 */
const TOOLS_OF = {
  shell: ['exec', 'execute_code'],
  helpers: ['spawn', 'workflow'],
  files: ['write_file', 'edit_file', 'checkpoint'],
  mail: ['send_email', 'check_inbox', 'message', 'send_file'],
  web: ['web_fetch', 'web_search', 'search', 'financial_search'],
  memory: ['remember', 'recall', 'session_search', 'semantic_search', 'read_earlier'],
  look: ['read_file', 'read_document', 'read_result', 'list_dir', 'search_files', 'read_skill'],
} as const satisfies Readonly<Record<string, readonly ToolName[]>>;

/** `other`: tools of another kind, or of tool servers; `answer`: no tool. */
type TaskType = keyof typeof TOOLS_OF | 'other' | 'answer';

/** The type of highest weight among the tools that were used. */
export function taskTypeOf(tools: readonly string[]): TaskType {
  if (tools.length === 0) return 'answer';
  const types = Object.keys(TOOLS_OF) as readonly (keyof typeof TOOLS_OF)[];
  const isOf = (type: keyof typeof TOOLS_OF) => TOOLS_OF[type].some((name) => tools.includes(name));
  return types.find(isOf) ?? 'other';
}

/** What a subagent is for, known before its start. */
export type SubagentKind = 'task' | 'pipeline' | 'loop' | 'vote';

export const subagentKind = (above: Plan['kind'], own: Plan): SubagentKind =>
  own.kind === 'task' && own.isVote === true ? 'vote' : above;

/** An ended run. `hit`: the limit that ended it. */
export type Execution = {
  readonly id: string;
  /** What was known before its start, see `groupOf`. */
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

export const groupOf = (kind: SubagentKind, profile: string | undefined) =>
  profile === undefined ? kind : `${kind} of ${profile}`;

/** The usage of a subagent, derived from the entries of its turn. */
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
  // A turn that ends at a limit writes its conclusion in one more call, or before its tokens are
  // used up; such an answer counts as one but may be incomplete.
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

/** The limits without advice. */
export function configuredOf({ agents }: Config): Configured {
  const { tokens, maxDepth: depth } = agents.subagents;
  return { rounds: agents.defaults.maxToolIterations, tokens, depth };
}

const MIN_ROUNDS = 3;
const SPARE_ROUNDS = 2;
const QUARTILE = 0.75;
/**
 * Shares of the configured tokens: for tasks that usually take less than three rounds, and for
 * others.
 */
const SHORT_SHARE = 0.3;
const LONG_SHARE = 0.5;
const MANY_TOOLS = 3;
/** Number of newest runs of a kind in which a limit that was too low is remembered. */
const REMEMBERED = 20;

/**
 * Limits for the next run of a group, from its runs with one model, oldest first; without data, and
 * at most, the configured limits. Each type of task within the group counts separately, so that
 * many short ones do not starve a long one; a run that ended at a limit counts with twice that
 * limit.
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

// The next step of a pipeline or loop, derived from the answers so far, so that a series resumed
// after a crash continues where it was.

export type Next =
  | {
      readonly kind: 'ask';
      /** Counted from 1. */
      readonly part: number;
      /** Voters asked concurrently; counted from 1. */
      readonly voters: readonly number[];
      readonly isVote: boolean;
      readonly prompt: string;
      readonly profile: string | undefined;
    }
  | {
      readonly kind: 'over';
      readonly state: 'done' | 'failed' | 'undecided';
      readonly text: string;
    };

const MAX_CARRIED_CHARS = 8000;
const MAX_COUNTED_CHARS = 60;

export function nextOf(
  { plan, answers }: Pick<SubagentRun, 'plan' | 'answers'>,
  voting: VotingConfig,
): Next {
  if (plan.kind === 'pipeline') return nextStep(plan.steps, answers, voting);
  if (plan.kind === 'loop') return nextRound(plan, answers);
  return { kind: 'over', state: 'failed', text: 'This is not a series.' };
}

function nextStep(
  steps: readonly Step[],
  answers: readonly PartAnswer[],
  voting: VotingConfig,
): Next {
  const results: string[] = [];
  for (const [index, step] of steps.entries()) {
    const part = index + 1;
    const given = answers.filter((answer) => answer.part === part);
    const votes = given.map(({ text }) => text);
    const { profile } = step;
    const isVote = step.aheadBy > 0;
    const verdict = isVote ? stepVerdict(step, votes, voting) : undefined;
    if (verdict?.kind === 'undecided') {
      const text = `Step ${part}: ${undecidedText(verdict)}${counted(votes)}`;
      return { kind: 'over', state: 'undecided', text };
    }
    const more = isVote ? (verdict?.kind === 'ask' ? verdict.more : 0) : 1 - votes.length;
    if (more > 0) {
      const prompt = stepPrompt(step, part, steps.length, results);
      const heard = given.map(({ vote }, at) => vote ?? at + 1);
      return { kind: 'ask', part, voters: nextVoters(heard, more), isVote, prompt, profile };
    }
    results.push(verdict?.kind === 'won' ? winner(votes, verdict.key, voting) : (votes[0] ?? ''));
  }
  return { kind: 'over', state: 'done', text: results.at(-1) ?? '' };
}

/** After a crash the second voter's answer may be stored without the first one's. */
export function nextVoters(heard: readonly number[], more: number): readonly number[] {
  const all = Array.from({ length: heard.length + more }, (_, at) => at + 1);
  return all.filter((voter) => !heard.includes(voter)).slice(0, more);
}

/** The terms of a vote that an answer wins by a lead of `aheadBy`, as configured. */
export function voteTermsOf(config: VotingConfig, aheadBy: number): VoteTerms {
  const { gate, maxEntropy, minMargin, minConfidence, maxFlagged, pilotVoters: voters } = config;
  const accepting = gate ? { gate: { voters, maxEntropy, minMargin, minConfidence } } : {};
  return { aheadBy, most: Math.max(usualMost(aheadBy), voters), maxFlagged, ...accepting };
}

/** The state of the vote on a step. */
export function stepVerdict(
  { aheadBy }: Step,
  votes: readonly string[],
  voting: VotingConfig,
): Verdict {
  const ballots = votes.map((text) => textBallot(text, voting.maxAnswerChars));
  return verdictOf(ballots, voteTermsOf(voting, aheadBy));
}

function winner(votes: readonly string[], key: string, { maxAnswerChars }: VotingConfig): string {
  const isFor = (ballot: Ballot) => ballot.kind === 'vote' && ballot.key === key;
  return votes.find((text) => isFor(textBallot(text, maxAnswerChars))) ?? '';
}

function stepPrompt(step: Step, part: number, count: number, results: readonly string[]): string {
  const before = results.map((text, at) => `Result of step ${at + 1}:\n${carried(text)}`);
  return [...before, `Your step, ${part} of ${count}:\n${step.prompt}`].join('\n\n');
}

function nextRound(plan: Extract<Plan, { kind: 'loop' }>, answers: readonly PartAnswer[]): Next {
  const last = answers.at(-1)?.text;
  if (last !== undefined && isMet(plan.until, last)) {
    return { kind: 'over', state: 'done', text: last };
  }
  const part = answers.length + 1;
  if (part > plan.rounds) {
    const text = `The condition was not met in ${plan.rounds} rounds. The last answer was:\n${last ?? ''}`;
    return { kind: 'over', state: 'failed', text };
  }
  const prompt = [
    plan.task,
    ...(last === undefined ? [] : [`Result of the round before:\n${carried(last)}`]),
    `This is round ${part} of at most ${plan.rounds}. ${untilText(plan.until)}`,
  ].join('\n\n');
  return { kind: 'ask', part, voters: [1], isVote: false, prompt, profile: plan.profile };
}

function untilText(until: Until): string {
  const how =
    until.kind === 'line'
      ? `put this alone on the last line of your answer: ${until.text}`
      : `end your answer with a JSON object whose field ${until.field} is ${JSON.stringify(until.equals)}`;
  return `Only if the whole task is finished, ${how}`;
}

const carried = (text: string) => shortened(text, MAX_CARRIED_CHARS, '\n[cut here]');

/** The answers with their frequencies, for people. */
function counted(votes: readonly string[]): string {
  const counts = [...Map.groupBy(votes, normalised)].map(([key, { length }]) => ({ key, length }));
  const told = counts
    .sort((one, other) => other.length - one.length)
    .map(({ key, length }) => `${length} × "${headOf(key, MAX_COUNTED_CHARS)}"`);
  return `: ${told.join(', ')}`;
}

/** Compares whole lines: a word within a text does not meet a condition. */
export function isMet(until: Until, answer: string): boolean {
  if (until.kind === 'line') {
    return answer.split(/\r?\n/).some((line) => line.trim() === until.text.trim());
  }
  const found = lastObject(answer);
  return found !== undefined && Object.hasOwn(found, until.field)
    ? found[until.field] === until.equals
    : false;
}

/** The JSON object that the answer is or ends with, with or without a code fence. */
function lastObject(answer: string): Readonly<Record<string, unknown>> | undefined {
  const text = answer.trim().replace(/\s*```$/, '');
  for (let at = text.lastIndexOf('{'); at !== -1; at = text.lastIndexOf('{', at - 1)) {
    const found = fieldsOf(parseJson(text.slice(at)));
    if (found !== undefined) return found;
    if (at === 0) return undefined;
  }
  return undefined;
}
