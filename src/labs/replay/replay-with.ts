// What a turn that is played again is asked with: as it is on record, as it is today, or as whoever asks
// wants it; and in words what of the record is not there.

import {
  type AskedTexts,
  type RecordedAsk,
  recordedAsk,
} from '../../features/request-log/rules/asked.ts';
import { ALL_RIGHTS, type Rights } from '../../kernel/access/rights.ts';
import type { AssistantEntry } from '../../kernel/message/transcript.ts';
import type { RecordedTurn } from './rules/replay.ts';

export type ReplayAsk = {
  /** Of the first call of the main model, or of whoever was asked first. */
  readonly first: RecordedAsk | undefined;
  /** Of a message behind so many answers: those of the call that it was shown in. */
  rightsAfter(answers: number): Rights;
};

export function replayAsk({ answers }: RecordedTurn, texts: AskedTexts): ReplayAsk {
  const asks = answers.map(({ asked }) => recordedAsk(asked, texts));
  return {
    first: firstOf(asks),
    rightsAfter: (count) =>
      asks.slice(count).find((ask) => ask !== undefined)?.rights ?? ALL_RIGHTS,
  };
}

/** What a turn was asked with that was played again. */
export const playedAsk = (answers: readonly AssistantEntry[], texts: AskedTexts) =>
  firstOf(answers.map(({ asked }) => recordedAsk(asked, texts)));

const firstOf = (asks: readonly (RecordedAsk | undefined)[]) =>
  asks.find((ask) => ask?.prompt !== undefined) ?? asks.find((ask) => ask !== undefined);

/** A sentence for each thing that could not be as it was. */
export function missingOf(ask: RecordedAsk | undefined): readonly string[] {
  if (ask === undefined) {
    return [
      'what it was asked with is not on record: prompt, tools and settings are those of today, and it has all rights',
    ];
  }
  const { lost } = ask;
  return lost.length === 0 ? [] : [`not on record any more, or not whole: ${lost.join(', ')}`];
}
