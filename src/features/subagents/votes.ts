// How votes on steps ended, as sums over all of them: what /status and the command line tell.

import type { VoteRecord } from '../../kernel/observe/telemetry.ts';
import { jsonRows, type OpenRows, type Rows } from '../../kernel/rows.ts';
import { number, rowShape } from '../../lib/json/json.ts';
import { type Figures, type Verdict, VOTE_TARGET, votersFor } from './rules/vote.ts';

const SUMS = 'sums';

type Sums = {
  /** Ended by what the pilot voters said, by a lead, by neither. */
  readonly gate: number;
  readonly lead: number;
  readonly undecided: number;
  /** Answers: votes, those for what had the most, and those that could not be used. */
  readonly votes: number;
  readonly agreed: number;
  readonly flagged: number;
};

const ROW = rowShape<Sums>({
  ...{ gate: number, lead: number, undecided: number },
  ...{ votes: number, agreed: number, flagged: number },
});
const NONE: Sums = { gate: 0, lead: 0, undecided: 0, votes: 0, agreed: 0, flagged: 0 };
const PERCENT = 100;

type VoteOver = Pick<VoteRecord, 'outcome' | 'votes' | 'flagged'>;

export class Votes {
  readonly #sums: Rows<Sums>;
  readonly #over: (vote: VoteOver) => void;

  /** `over` hears of each vote that ended. */
  constructor(rows: OpenRows, over: (vote: VoteOver) => void = () => undefined) {
    this.#sums = rows({ ...jsonRows(ROW), scope: 'votes', prefix: '' });
    this.#over = over;
  }

  /** One that is not over is none yet. */
  async note(verdict: Verdict): Promise<void> {
    if (verdict.kind === 'ask') return;
    const how = verdict.kind === 'won' ? verdict.by : 'undecided';
    const { votes, flagged } = verdict.figures;
    this.#over({ outcome: how, votes, flagged });
    await this.#sums.change(SUMS, (sums = NONE) => ({
      ...withAnswers(sums, verdict.figures),
      [how]: sums[how] + 1,
    }));
  }

  /** For people; nothing where there was no vote. */
  async lines(): Promise<readonly string[]> {
    const { gate, lead, undecided, votes, agreed, flagged } = (await this.#sums.get(SUMS)) ?? NONE;
    const all = gate + lead + undecided;
    if (all === 0) return [];
    const rate = votes === 0 ? 0 : agreed / votes;
    const voters = votersFor(rate, VOTE_TARGET);
    const sure = voters === undefined ? 'more than 15' : `${voters}`;
    const answers = ((votes + flagged) / all).toFixed(1);
    return [
      `Votes on steps: ${all} (${gate} accepted by the pilot voters, ${lead} won by a lead, ${undecided} undecided); ` +
        `${answers} answers each, ${Math.round(rate * PERCENT)} % agree, ${flagged} not usable; ` +
        `voters for 99.9 %: ${sure}`,
    ];
  }
}

function withAnswers(sums: Sums, { votes, agreed, flagged }: Figures): Sums {
  return {
    ...sums,
    votes: sums.votes + votes,
    agreed: sums.agreed + agreed,
    flagged: sums.flagged + flagged,
  };
}
