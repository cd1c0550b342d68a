// What was decided about a person by hand or by a code, as it is kept: one row per channel and id.

import type { Role } from '../../kernel/access/admission.ts';

export type Approval = {
  readonly channel: string;
  readonly userId: string;
  readonly name: string;
  readonly role: Role;
  readonly at: number;
  /** Where this person can be reached, once they have written. */
  readonly chat?: string;
  /** Of a block: all the ids it holds for, each of which has a row; taking one back takes all. */
  readonly ids?: readonly string[];
};
