// What comes next in a pipeline or a loop, told from the answers there are: so that one that is taken
// up after a crash goes on where it was.

import { fieldsOf, parseJson } from '../../../lib/json/json.ts';
import { headOf, shortened } from '../../../lib/text/cut.ts';
import type { VotingConfig } from '../settings.ts';
import type { HelperRun, PartAnswer, Plan, Step, Until } from './subagent.ts';
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

export type Next =
  | {
      readonly kind: 'ask';
      /** Counted from 1. */
      readonly part: number;
      /** Who is asked, all at once; counted from 1. */
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
  { plan, answers }: Pick<HelperRun, 'plan' | 'answers'>,
  voting: VotingConfig,
): Next {
  if (plan.kind === 'pipeline') return nextStep(plan.steps, answers, voting);
  if (plan.kind === 'loop') return nextRound(plan, answers);
  return { kind: 'over', state: 'failed', text: 'This is no series.' };
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
      return { kind: 'ask', part, voters: nextVoters(given, more), isVote, prompt, profile };
    }
    results.push(verdict?.kind === 'won' ? winner(votes, verdict.key, voting) : (votes[0] ?? ''));
  }
  return { kind: 'over', state: 'done', text: results.at(-1) ?? '' };
}

/** A killed process may have taken the answer of the second voter before that of the first. */
function nextVoters(given: readonly PartAnswer[], more: number): readonly number[] {
  const heard = given.map(({ vote }, at) => vote ?? at + 1);
  const all = Array.from({ length: given.length + more }, (_, at) => at + 1);
  return all.filter((voter) => !heard.includes(voter)).slice(0, more);
}

/** Of a vote that an answer wins by a lead of `aheadBy`, as it is configured. */
export function voteTermsOf(config: VotingConfig, aheadBy: number): VoteTerms {
  const { gate, maxEntropy, minMargin, minConfidence, maxFlagged, pilotVoters: voters } = config;
  const accepting = gate ? { gate: { voters, maxEntropy, minMargin, minConfidence } } : {};
  return { aheadBy, most: Math.max(usualMost(aheadBy), voters), maxFlagged, ...accepting };
}

/** How the vote on a step stands. */
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

/** The answers with how often they were given, for people. */
function counted(votes: readonly string[]): string {
  const counts = [...Map.groupBy(votes, normalised)].map(([key, { length }]) => ({ key, length }));
  const told = counts
    .sort((one, other) => other.length - one.length)
    .map(({ key, length }) => `${length} × "${headOf(key, MAX_COUNTED_CHARS)}"`);
  return `: ${told.join(', ')}`;
}

/** A word somewhere in the text is no condition that is met. */
export function isMet(until: Until, answer: string): boolean {
  if (until.kind === 'line') {
    return answer.split(/\r?\n/).some((line) => line.trim() === until.text.trim());
  }
  const found = lastObject(answer);
  return found !== undefined && Object.hasOwn(found, until.field)
    ? found[until.field] === until.equals
    : false;
}

/** The JSON object the answer is or ends with, in a code fence or not. */
function lastObject(answer: string): Readonly<Record<string, unknown>> | undefined {
  const text = answer.trim().replace(/\s*```$/, '');
  for (let at = text.lastIndexOf('{'); at !== -1; at = text.lastIndexOf('{', at - 1)) {
    const found = fieldsOf(parseJson(text.slice(at)));
    if (found !== undefined) return found;
    if (at === 0) return undefined;
  }
  return undefined;
}
