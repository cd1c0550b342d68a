// Carries out one LLM_SKILL by a vote: several voters answer the same question side by side, what each
// said is on disk before the next is asked, and an answer counts once the vote is over.

import { voteTermsOf } from '../subagents/rules/subagent-series.ts';
import {
  type Ballot,
  undecidedText,
  type Verdict,
  valueKey,
  verdictOf,
} from '../subagents/rules/vote.ts';
import type { VotingConfig } from '../subagents/settings.ts';
import type { Cast, StepResult } from './rules/state.ts';
import {
  askSkill,
  NOTHING,
  type PreparedSkill,
  readAnswer,
  type SkillAnswer,
  type SkillCall,
  type SkillDeps,
  sumOf,
  unpriced,
  usedUp,
  withSkill,
} from './workflow-ask.ts';

const OVER = 'it was ended meanwhile';

/**
 * @param aheadBy by so many votes an answer has to lead
 * @throws as `withSkill`
 */
export const runVote = (deps: SkillDeps, call: SkillCall, aheadBy: number, signal: AbortSignal) =>
  withSkill(deps, call, signal, async (skill): Promise<StepResult> => {
    const { isForeign, failed } = skill;
    const counted = await count(skill, aheadBy);
    if (counted.kind === 'broken') return failed(counted.error);
    const { verdict, casts } = counted;
    await deps.votes.note(verdict);
    if (verdict.kind === 'undecided') {
      return { kind: 'undecided', error: undecidedText(verdict), isForeign };
    }
    const won = casts.find(({ ballot }) => ballot.kind === 'vote' && ballot.key === verdict.key);
    return { kind: 'skill', value: won?.value ?? {}, isForeign, spent: NOTHING };
  });

type Counted =
  | {
      readonly kind: 'over';
      readonly verdict: Exclude<Verdict, { readonly kind: 'ask' }>;
      readonly casts: readonly Cast[];
    }
  | { readonly kind: 'broken'; readonly error: string };

async function count(skill: PreparedSkill, aheadBy: number): Promise<Counted> {
  const { deps, call, handle } = skill;
  let casts = call.casts;
  let spent = NOTHING;
  for (;;) {
    const ballots = casts.map(({ ballot }) => ballot);
    const verdict = verdictOf(ballots, voteTermsOf(deps.voting(), aheadBy));
    if (verdict.kind !== 'ask') return { kind: 'over', verdict, casts };
    const over = usedUp(spent, call);
    if (over !== undefined) return { kind: 'broken', error: over };
    const voters = nextVoters(casts, verdict.more);
    const answered = await Promise.allSettled(voters.map((voter) => castOf(skill, voter)));
    const made = answered.map((each) => {
      if (each.status === 'rejected') throw each.reason;
      return each.value;
    });
    if (call.hasMoneyLimit && made.some(({ answer }) => answer.micros === undefined)) {
      return { kind: 'broken', error: unpriced(handle) };
    }
    if (made.some(({ isKept }) => !isKept)) return { kind: 'broken', error: OVER };
    spent = made.reduce((sum, { answer }) => sumOf(sum, answer), spent);
    casts = [...casts, ...made.map(({ cast }) => cast)];
  }
}

/** After a kill those that were not heard. */
function nextVoters(casts: readonly Cast[], more: number): readonly number[] {
  const all = Array.from({ length: casts.length + more }, (_, at) => at + 1);
  return all.filter((each) => !casts.some(({ voter }) => voter === each)).slice(0, more);
}

async function castOf(skill: PreparedSkill, voter: number) {
  const { deps, call, question, schema } = skill;
  const voting = deps.voting();
  const { temperature } = voting;
  const answer = await askSkill(skill, question, { role: 'vote', temperature });
  const cast = { voter, ...readBallot(answer, schema, voting) };
  const isKept = await call.keep(cast, { tokens: answer.tokens, micros: answer.micros ?? 0 });
  return { cast, answer, isKept };
}

function readBallot(
  { text, isCut }: SkillAnswer,
  schema: PreparedSkill['schema'],
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
