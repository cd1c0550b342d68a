// Who may give which `/command`, and where: the whole table. Being let in to a chat of one's own opens
// no command in a group, and what decides about others is an owner's alone. Case A03.

import { ADMITTED_ROLES, type AdmittedRole } from './admission.ts';
import type { Standing } from './rights.ts';

/** The lowest role that may; `nobody`: not there, whoever it is. */
type Lowest = AdmittedRole | 'nobody';
type Access = {
  readonly direct: Lowest;
  readonly group: Lowest;
  /** Harmless enough for a sender whom nothing verifies. */
  readonly unverified?: true;
};

const EVERYBODYS: Access = { direct: 'guest', group: 'trusted', unverified: true };
/** Changes one conversation; in a group that of all. */
const CONVERSATION: Access = { direct: 'guest', group: 'trusted' };
/** Changes how much an answer costs. */
const COSTS: Access = { direct: 'trusted', group: 'owner' };
const PERSONAL: Access = { direct: 'guest', group: 'nobody' };
const DECISION: Access = { direct: 'owner', group: 'nobody' };

export const COMMAND_ACCESS: Readonly<Record<string, Access>> = {
  start: EVERYBODYS,
  help: EVERYBODYS,
  whoami: EVERYBODYS,
  new: CONVERSATION,
  compact: CONVERSATION,
  stop: CONVERSATION,
  undo: CONVERSATION,
  restore: { direct: 'guest', group: 'owner' },
  context: { direct: 'guest', group: 'trusted' },
  sessions: PERSONAL,
  usage: { direct: 'guest', group: 'trusted' },
  cost: { direct: 'guest', group: 'trusted' },
  why: { direct: 'guest', group: 'trusted' },
  skills: { direct: 'trusted', group: 'owner' },
  status: { direct: 'trusted', group: 'trusted' },
  model: COSTS,
  local: COSTS,
  mode: COSTS,
  think: COSTS,
  queue: COSTS,
  me: PERSONAL,
  language: PERSONAL,
  timezone: PERSONAL,
  quiet: PERSONAL,
  cron: { direct: 'trusted', group: 'nobody' },
  workflow: { direct: 'trusted', group: 'nobody' },
  agents: { direct: 'trusted', group: 'trusted' },
  kill: { direct: 'trusted', group: 'trusted' },
  memory: { direct: 'guest', group: 'trusted' },
  forget: { direct: 'guest', group: 'owner' },
  export: PERSONAL,
  link: PERSONAL,
  unlink: PERSONAL,
  continue: PERSONAL,
  people: DECISION,
  strangers: DECISION,
  allow: DECISION,
  block: DECISION,
  drop: DECISION,
  approvals: DECISION,
  cluster: DECISION,
  budget: DECISION,
};

/** Change what will be done, what is kept, or who is taken for whom; behind them stand words and codes. */
const DECIDING = ['cron', 'workflow', 'kill', 'forget', 'link', 'unlink'];

/** How much of a command is accounted for: the owner's decisions with what they are about. */
export function accountedFor(name: string): 'whole' | 'name' | 'not' {
  if (COMMAND_ACCESS[name]?.direct === 'owner') return 'whole';
  return DECIDING.includes(name) ? 'name' : 'not';
}

export type CommandVerdict = 'yes' | 'not this role' | 'not here' | 'not verified';

/** A command without a row is nobody's. */
export function mayGive(name: string, standing: Omit<Standing, 'medium'>): CommandVerdict {
  const access = Object.hasOwn(COMMAND_ACCESS, name) ? COMMAND_ACCESS[name] : undefined;
  if (access === undefined) return 'not this role';
  const { role, place, verified } = standing;
  if (verified === 'unverified' && access.unverified !== true) return 'not verified';
  if (reaches(role, access[place])) return 'yes';
  return place === 'group' && reaches(role, access.direct) ? 'not here' : 'not this role';
}

function reaches(role: AdmittedRole, lowest: Lowest): boolean {
  return lowest !== 'nobody' && ADMITTED_ROLES.indexOf(role) <= ADMITTED_ROLES.indexOf(lowest);
}
