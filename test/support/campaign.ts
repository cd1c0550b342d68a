// How much a test tries that could go on for ever: kills, random cases, sizes of hostile inputs. A
// short campaign of each kind is part of `npm test`; `npm run test:long` runs them in full.

const IS_FULL = process.env['CAMPAIGN'] === 'full';

type Figures = { readonly short: number; readonly full: number };

/** The figure of this run. */
export const campaign = ({ short, full }: Figures): number => (IS_FULL ? full : short);

/** Whether what a short campaign leaves out is tried. */
export const isFullCampaign = (): boolean => IS_FULL;

const SEED = Number(process.env['FC_SEED'] ?? 20_261_122);

/** All in the full campaign, else so many, spread over the list from a place that the seed names. */
export function campaignOf<T>(all: readonly T[], short: number): readonly T[] {
  if (IS_FULL) return all;
  const picked = Array.from({ length: short }, (_, index) => {
    const at = (SEED + Math.floor((index * all.length) / short)) % all.length;
    return all.slice(at, at + 1);
  });
  return picked.flat();
}
