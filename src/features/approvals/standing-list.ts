// The yeses of owners that hold for longer than once, as people see them and take them back: the same from
// a chat and from the command line.

import {
  removeStanding,
  type StandingRows,
  type StandingUse,
  type StandingYes,
} from './standing-rows.ts';

export type ShownYes = {
  readonly yes: StandingYes;
  /** Epoch milliseconds. */
  readonly until: number;
  readonly used: StandingUse | undefined;
};

const DAY_MS = 86_400_000;
/** Of an id, for people. */
const SHORT_ID_CHARS = 8;

export const shortId = ({ id }: Pick<StandingYes, 'id'>) => id.slice(0, SHORT_ID_CHARS);

/** Epoch milliseconds; what is configured now may be less than it was. */
export const endOf = ({ givenAt, days }: StandingYes, configured: number) =>
  givenAt + Math.min(days, configured) * DAY_MS;

/** What holds now, oldest first. */
export async function shownYeses(
  rows: StandingRows,
  configured: number,
  now: number,
): Promise<readonly ShownYes[]> {
  const all = await rows.yeses.list();
  const shown = all.map(async (yes) => {
    return { yes, until: endOf(yes, configured), used: await rows.uses.get(yes.id) };
  });
  return (await Promise.all(shown)).filter(({ until }) => now < until);
}

/** Takes back the one of this id, or of an id that begins so; `all`: each. How many. */
export async function takeBack(rows: StandingRows, typed: string): Promise<number | 'several'> {
  const wanted = typed.trim().toLowerCase();
  const isMeant = ({ id }: StandingYes) =>
    wanted === 'all' || (wanted !== '' && id.startsWith(wanted));
  const found = (await rows.yeses.list()).filter(isMeant);
  if (wanted !== 'all' && found.length > 1) return 'several';
  for (const yes of found) await removeStanding(rows, yes.id);
  return found.length;
}
