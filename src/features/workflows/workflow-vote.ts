// Carries out one LLM_SKILL by a vote: several voters answer the same question side by side, what each
// said is on disk before the next is asked, and an answer counts once the vote is over.

import { z } from 'zod';
import { failureText } from '../../agent/stream.ts';
import { ProviderError } from '../../kernel/message/errors.ts';
import { voteTermsOf } from '../subagents/rules/subagent-series.ts';
import {
  type Ballot,
  undecidedText,
  type Verdict,
  valueKey,
  verdictOf,
} from '../subagents/rules/vote.ts';
import type { VotingConfig } from '../subagents/settings.ts';
import type { Cast, Spent, StepResult } from './rules/result.ts';
import {
  type Asking,
  askSkill,
  fits,
  handleFor,
  missing,
  promptOf,
  readAnswer,
  type SkillAnswer,
  type SkillCall,
  type SkillDeps,
  systemFor,
  tooLong,
  unpriced,
  usedUp,
} from './workflow-ask.ts';

type Counting = {
  readonly deps: SkillDeps;
  readonly call: SkillCall;
  readonly asking: Asking;
  readonly schema: z.ZodType;
};

const NOTHING = { tokens: 0, micros: 0 };
const OVER = 'it was ended meanwhile';

/**
 * @param aheadBy by so many votes an answer has to lead
 * @throws SpendingRefusedError, or the signal's reason
 */
export async function runVote(
  deps: SkillDeps,
  call: SkillCall,
  aheadBy: number,
  signal: AbortSignal,
): Promise<StepResult> {
  const prompt = promptOf(call);
  if (prompt.kind === 'missing') return missing(prompt.paths);
  const { isForeign } = prompt;
  const failed = (error: string, mayRetry: boolean) =>
    ({ kind: 'failed', error, mayRetry, isForeign }) as const;
  try {
    const handle = handleFor(deps, call);
    const messages = [{ role: 'user' as const, text: prompt.value }];
    const question = { system: systemFor(call.capability), messages };
    if (!fits(handle, question)) return failed(tooLong(handle), false);
    const { temperature } = deps.voting();
    const asking = { handle, question, role: 'vote', temperature } as const;
    const schema = z.fromJSONSchema(call.capability.output);
    const counted = await count({ deps, call, asking, schema }, aheadBy, signal);
    if (counted.kind === 'broken') return failed(counted.error, false);
    const { verdict, casts } = counted;
    await deps.votes.note(verdict);
    if (verdict.kind === 'undecided') {
      return { kind: 'undecided', error: undecidedText(verdict), isForeign };
    }
    const won = casts.find(({ ballot }) => ballot.kind === 'vote' && ballot.key === verdict.key);
    return { kind: 'skill', value: won?.value ?? {}, isForeign, spent: NOTHING };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ProviderError) return failed(failureText(error), true);
    throw error;
  }
}

type Counted =
  | {
      readonly kind: 'over';
      readonly verdict: Exclude<Verdict, { readonly kind: 'ask' }>;
      readonly casts: readonly Cast[];
    }
  | { readonly kind: 'broken'; readonly error: string };

async function count(counting: Counting, aheadBy: number, signal: AbortSignal): Promise<Counted> {
  const { deps, call, asking } = counting;
  let casts = call.casts;
  let spent = NOTHING;
  for (;;) {
    const terms = voteTermsOf(deps.voting(), aheadBy);
    const verdict = verdictOf(
      casts.map(({ ballot }) => ballot),
      terms,
    );
    if (verdict.kind !== 'ask') return { kind: 'over', verdict, casts };
    const over = usedUp(spent, call);
    if (over !== undefined) return { kind: 'broken', error: over };
    const answered = await Promise.allSettled(
      nextVoters(casts, verdict.more).map((voter) => castOf(counting, voter, signal)),
    );
    const made = answered.map((each) => {
      if (each.status === 'rejected') throw each.reason;
      return each.value;
    });
    if (call.hasMoneyLimit && made.some(({ answer }) => answer.micros === undefined)) {
      return { kind: 'broken', error: unpriced(asking.handle) };
    }
    if (made.some(({ isKept }) => !isKept)) return { kind: 'broken', error: OVER };
    spent = made.reduce((sum, { answer }) => sumOf(sum, answer), spent);
    casts = [...casts, ...made.map(({ cast }) => cast)];
  }
}

const sumOf = (sum: Spent, { tokens, micros = 0 }: SkillAnswer): Spent => ({
  tokens: sum.tokens + tokens,
  micros: sum.micros + micros,
});

/** After a kill those that were not heard. */
function nextVoters(casts: readonly Cast[], more: number): readonly number[] {
  const all = Array.from({ length: casts.length + more }, (_, at) => at + 1);
  return all.filter((each) => !casts.some(({ voter }) => voter === each)).slice(0, more);
}

async function castOf(
  { deps, call, asking, schema }: Counting,
  voter: number,
  signal: AbortSignal,
) {
  const answer = await askSkill(deps, call, asking, signal);
  const cast = { voter, ...readBallot(answer, schema, deps.voting()) };
  const isKept = await call.keep(cast, { tokens: answer.tokens, micros: answer.micros ?? 0 });
  return { cast, answer, isKept };
}

function readBallot(
  { text, isCut }: SkillAnswer,
  schema: z.ZodType,
  { maxAnswerChars }: VotingConfig,
): Omit<Cast, 'voter'> {
  const flagged = (flag: Extract<Ballot, { kind: 'flagged' }>['flag']) => ({
    ballot: { kind: 'flagged', flag } as const,
  });
  if (text.trim() === '') return flagged('empty');
  if (isCut || text.length > maxAnswerChars) return flagged('too long');
  const read = readAnswer(text, schema);
  if (read.kind === 'no fit') return flagged('malformed');
  return { ballot: { kind: 'vote', key: valueKey(read.value) }, value: read.value };
}
