// A vote among answers: the first that is ahead of every other by k has won. A tie is a tie. What makes
// two answers the same, and how often somebody is asked, is for whoever counts.

export type Tally =
  | { readonly kind: 'won'; readonly key: string; readonly votes: number; readonly lead: number }
  /** `leaders`: with the most votes, in the order in which they were first given; more than one: a tie. */
  | { readonly kind: 'open'; readonly leaders: readonly string[]; readonly lead: number };

/** `votes`: what each voter said, made comparable. `k` below 1 counts as 1. */
export function tally(votes: readonly string[], k: number): Tally {
  const counts = [...Map.groupBy(votes, (vote) => vote)].map(([key, same]) => ({
    key,
    votes: same.length,
  }));
  const most = Math.max(0, ...counts.map((one) => one.votes));
  const leaders = counts.filter((one) => one.votes === most);
  const [first, tied] = leaders;
  if (first === undefined) return { kind: 'open', leaders: [], lead: 0 };
  const others = counts.filter(({ key }) => key !== first.key).map((one) => one.votes);
  const lead = tied === undefined ? most - Math.max(0, ...others) : 0;
  if (lead >= Math.max(1, k)) return { kind: 'won', ...first, lead };
  return { kind: 'open', leaders: leaders.map(({ key }) => key), lead };
}
