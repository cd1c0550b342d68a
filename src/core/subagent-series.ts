// What comes next in a pipeline or a loop, told from the answers there are: so that one that is taken
// up after a crash goes on where it was.

import type { HelperRun, PartAnswer, Plan, Step, Until } from './subagent.ts';
import { tally } from './vote.ts';

export type Next =
  | {
      readonly kind: 'ask';
      /** Counted from 1. */
      readonly part: number;
      readonly vote: number;
      readonly prompt: string;
      readonly profile: string | undefined;
    }
  | { readonly kind: 'over'; readonly state: 'done' | 'failed'; readonly text: string };

type Vote =
  | { readonly kind: 'won'; readonly text: string }
  | { readonly kind: 'more' }
  | { readonly kind: 'undecided'; readonly text: string };

const MAX_CARRIED_CHARS = 8000;
const MAX_COUNTED_CHARS = 60;

export function nextOf({ plan, answers }: Pick<HelperRun, 'plan' | 'answers'>): Next {
  if (plan.kind === 'pipeline') return nextStep(plan.steps, answers);
  if (plan.kind === 'loop') return nextRound(plan, answers);
  return { kind: 'over', state: 'failed', text: 'This is no series.' };
}

function nextStep(steps: readonly Step[], answers: readonly PartAnswer[]): Next {
  const results: string[] = [];
  for (const [index, step] of steps.entries()) {
    const part = index + 1;
    const votes = answers.filter((answer) => answer.part === part).map(({ text }) => text);
    const vote = voteOf(votes, step.aheadBy);
    if (vote.kind === 'undecided') {
      return { kind: 'over', state: 'failed', text: `Step ${part}: ${vote.text}` };
    }
    if (vote.kind === 'more') {
      const prompt = stepPrompt(step, part, steps.length, results);
      return { kind: 'ask', part, vote: votes.length + 1, prompt, profile: step.profile };
    }
    results.push(vote.text);
  }
  return { kind: 'over', state: 'done', text: results.at(-1) ?? '' };
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
  return { kind: 'ask', part, vote: 1, prompt, profile: plan.profile };
}

function untilText(until: Until): string {
  const how =
    until.kind === 'line'
      ? `put this alone on the last line of your answer: ${until.text}`
      : `end your answer with a JSON object whose field ${until.field} is ${JSON.stringify(until.equals)}`;
  return `Only if the whole task is finished, ${how}`;
}

const carried = (text: string) =>
  text.length <= MAX_CARRIED_CHARS
    ? text
    : `${text.slice(0, MAX_CARRIED_CHARS).toWellFormed()}\n[cut here]`;

/**
 * The answer that leads by `aheadBy`; it is asked 2k+1 times at most. Answers count as the same
 * without case, spacing, marks around them and a full stop. A tie is no lead.
 */
export function voteOf(votes: readonly string[], aheadBy: number): Vote {
  const standing = tally(votes.map(normalised), aheadBy);
  if (standing.kind === 'won') {
    return { kind: 'won', text: votes.find((one) => normalised(one) === standing.key) ?? '' };
  }
  if (votes.length < 2 * aheadBy + 1) return { kind: 'more' };
  const counts = [...Map.groupBy(votes, normalised)].map(([key, { length }]) => ({ key, length }));
  const told = counts
    .sort((one, other) => other.length - one.length)
    .map(({ key, length }) => `${length} × "${key.slice(0, MAX_COUNTED_CHARS).toWellFormed()}"`);
  const text = `no answer leads by ${aheadBy} after ${votes.length} votes: ${told.join(', ')}`;
  return { kind: 'undecided', text };
}

function normalised(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/\s+/g, ' ')
    .replace(/^[\s*_`"'#>]+|[\s*_`"'.!]+$/g, '');
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
    const found = objectIn(text.slice(at));
    if (found !== undefined) return found;
    if (at === 0) return undefined;
  }
  return undefined;
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}
