// What a turn shows with its question of the messages behind a node; how it is found is in expand-for.ts.

export class Expansion {
  /** Said behind the question in the calls of this turn, and never recorded. */
  note: string | undefined;
}
