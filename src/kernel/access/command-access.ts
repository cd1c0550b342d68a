// Who may give a chat command, and where: decided by the access that the command declares. Access to a private
// chat gives no command in a group. Case A03.

import { ADMITTED_ROLES, type AdmittedRole } from './admission.ts';
import type { Standing } from './rights.ts';

/** The lowest role that may; `nobody`: not in that place. */
type Lowest = AdmittedRole | 'nobody';

export type CommandAccess = {
  readonly direct: Lowest;
  readonly group: Lowest;
  /** Harmless enough for a sender whom nothing verifies. */
  readonly unverified?: true;
  /** That it was given is audited; its argument is not, as it may be a code or personal. */
  readonly audited?: true;
};

export const EVERYBODY: CommandAccess = { direct: 'guest', group: 'trusted', unverified: true };
/** Shows or changes one conversation; in a group the one of all members. */
export const CONVERSATION: CommandAccess = { direct: 'guest', group: 'trusted' };
/** Changes how much an answer costs. */
export const COSTS: CommandAccess = { direct: 'trusted', group: 'owner' };
export const PERSONAL: CommandAccess = { direct: 'guest', group: 'nobody' };
/** Decides about others. */
export const OWNER_ONLY: CommandAccess = { direct: 'owner', group: 'nobody' };

/** How much of a command is audited: an owner's decision with its argument. */
export function auditExtent({ direct, audited }: CommandAccess): 'whole' | 'name' | 'none' {
  if (direct === 'owner') return 'whole';
  return audited === true ? 'name' : 'none';
}

export type CommandVerdict = 'yes' | 'not this role' | 'not here' | 'not verified';

export function mayGive(
  access: CommandAccess,
  { role, place, verified }: Omit<Standing, 'medium'>,
): CommandVerdict {
  if (verified === 'unverified' && access.unverified !== true) return 'not verified';
  if (reaches(role, access[place])) return 'yes';
  return place === 'group' && reaches(role, access.direct) ? 'not here' : 'not this role';
}

function reaches(role: AdmittedRole, lowest: Lowest): boolean {
  return lowest !== 'nobody' && ADMITTED_ROLES.indexOf(role) <= ADMITTED_ROLES.indexOf(lowest);
}
