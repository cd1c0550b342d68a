// Brings together what the gate decides from: the configuration in force and what was decided about
// the sender. The decision itself is made by kernel/access/admission.ts.

import type { Persons } from '../../features/people/persons.ts';
import { type AdmissionPolicy, admit, type Verdict } from '../access/admission.ts';
import { accountName } from '../message/account.ts';
import type { InboundMessage } from '../message/message.ts';

export type JudgeDeps = {
  readonly persons: Pick<Persons, 'roleIn'>;
  /** The configured part of the gate, by the name of an account. */
  policy(account: string): Omit<AdmissionPolicy, 'role'>;
};

/** What the gate says of a message now. */
export type Judge = (message: InboundMessage) => Promise<Verdict>;

export function createJudge({ persons, policy }: JudgeDeps): Judge {
  return async (message) => {
    const role = await persons.roleIn(message);
    return admit(message, { ...policy(accountName(message.chat)), role });
  };
}
