// What a turn may do, from who asked and where. A right is never more than both the person's and the
// place's; reading what others wrote makes a turn careful, and nothing makes it careless again.

/**
 * What a tool does to the world. `read`: looks into the workspace and memory. `web`: reads from the
 * net. `say`: speaks in this chat before the answer. `write`: changes files of the workspace.
 * `rules`: changes what later turns are told to do. `send`: speaks outside this chat. `execute`: runs
 * programs. `schedule`: makes later turns.
 */
export const TOOL_ACCESSES = [
  'read',
  'web',
  'say',
  'write',
  'rules',
  'send',
  'execute',
  'schedule',
] as const;
export type ToolAccess = (typeof TOOL_ACCESSES)[number];

/**
 * `ask`: each call needs the approval of an owner. `local`: only a call whose effects can leave this
 * machine does. From the widest to the narrowest.
 */
export const PERMISSIONS = ['free', 'local', 'ask', 'never'] as const;
export type Permission = (typeof PERMISSIONS)[number];
/** What the configuration can say. */
export const CONFIGURED_PERMISSIONS = ['free', 'ask', 'never'] as const;

export type Rights = Readonly<Record<ToolAccess, Permission>> & {
  /** Calls about nothing but the asker's own notes and reminders need no approval for these. */
  readonly own?: readonly ToolAccess[];
  /** Files of the workspace, and what the person attaches, are their own words unless recorded otherwise. */
  readonly trustsFiles?: true;
};

/**
 * How far the effects of one call go. `notes`: what is noted of the asker, which is kept apart where
 * untrusted content is in view; `self`: reminders to the asker; `machine`: nothing can leave this machine.
 */
export type Reach = 'notes' | 'self' | 'machine' | 'outside';

/** How much is asked of owners; from the widest to the narrowest. */
export const APPROVAL_POLICIES = ['open', 'normal', 'strict'] as const;
export type ApprovalPolicy = (typeof APPROVAL_POLICIES)[number];

/** For people. */
export const POLICY_WORDS: Readonly<Record<ApprovalPolicy, string>> = {
  open: 'Nothing is asked, except while untrusted content is in view and before the first message to somebody.',
  normal:
    'Asked before what can leave this machine or changes instruction files, and before any effect while ' +
    'untrusted content is in view.',
  strict: 'Asked before every program, job and message to others.',
};

/** The narrower of two, where both are there. */
export function stricterPolicy<T extends ApprovalPolicy | undefined>(one: T, other: T): T {
  if (one === undefined || other === undefined) return one ?? other;
  return APPROVAL_POLICIES.indexOf(one) > APPROVAL_POLICIES.indexOf(other) ? one : other;
}

/** `mail`: a sender's identity may be proven there, and still others wrote parts of the text. */
export type Medium = 'chat' | 'mail';

/** Who asks, as what, and where. */
export type SenderStanding = {
  readonly role: 'owner' | 'trusted' | 'guest';
  readonly place: 'direct' | 'group';
  readonly verified: 'verified' | 'asserted' | 'unverified';
  readonly medium: Medium;
};

/** What the configuration says of this person and of this group. */
type RightsPolicy = {
  readonly person?: Partial<Rights>;
  readonly group?: Partial<Rights>;
  /** Left out: `strict`. */
  readonly approvals?: ApprovalPolicy;
};

const every = <T extends Permission>(permission: T) =>
  Object.fromEntries(TOOL_ACCESSES.map((access) => [access, permission])) as Readonly<
    Record<ToolAccess, T>
  >;

export const NO_RIGHTS: Rights = every('never');
export const ALL_RIGHTS = every('free');
/** Narrowing by it changes nothing. */
export const UNRESTRICTED: Rights = { ...ALL_RIGHTS, own: TOOL_ACCESSES, trustsFiles: true };
/** Of what is done again by itself: it may look, and changes nothing. */
export const LOOKING_RIGHTS: Rights = { ...NO_RIGHTS, read: 'free' };
const READER: Rights = { ...NO_RIGHTS, read: 'free', web: 'free', say: 'free' };
const OWNER: Rights = {
  ...every('ask'),
  read: 'free',
  web: 'free',
  say: 'free',
  write: 'free',
};
const OWN_NOTES = { own: ['write'], trustsFiles: true } as const;
const NOTE_KEEPER: Rights = { ...READER, own: ['write', 'schedule'] };
const same = (rights: Rights) => ({ strict: rights, normal: rights, open: rights });
const BY_ROLE: Readonly<Record<SenderStanding['role'], Readonly<Record<ApprovalPolicy, Rights>>>> =
  {
    owner: {
      strict: OWNER,
      normal: { ...OWNER, ...OWN_NOTES, execute: 'local', schedule: 'free' },
      open: { ...ALL_RIGHTS, ...OWN_NOTES },
    },
    trusted: { strict: READER, normal: NOTE_KEEPER, open: NOTE_KEEPER },
    guest: same(NO_RIGHTS),
  };

/**
 * An entry for a person widens or narrows what they have in a direct conversation, one for a group
 * what can be done there; neither exceeds the other, and none helps a sender whom nothing verifies.
 */
export function rightsOf(standing: SenderStanding, policy: RightsPolicy = {}): Rights {
  const { role, place, verified, medium } = standing;
  if (verified === 'unverified') return NO_RIGHTS;
  const ofRole = BY_ROLE[role][policy.approvals ?? 'strict'];
  const usual = medium === 'mail' ? narrowed(ofRole, READER) : ofRole;
  const ofPerson = overridden(usual, policy.person);
  return place === 'group' ? narrowed(ofPerson, overridden(READER, policy.group)) : ofPerson;
}

function overridden(rights: Rights, entry: Partial<Rights> = {}): Rights {
  const pairs = TOOL_ACCESSES.map((access) => [access, entry[access] ?? rights[access]] as const);
  const own = rights.own?.filter((access) => entry[access] === undefined);
  return { ...rights, ...Object.fromEntries(pairs), ...(own === undefined ? {} : { own }) };
}

/** The narrower of the two for each access. */
export function narrowed(one: Rights, other: Rights): Rights {
  const entries = TOOL_ACCESSES.map((access) => {
    const rank = Math.max(PERMISSIONS.indexOf(one[access]), PERMISSIONS.indexOf(other[access]));
    return [access, PERMISSIONS[rank] ?? 'never'] as const;
  });
  const own = TOOL_ACCESSES.filter(
    (access) => one.own?.includes(access) && other.own?.includes(access),
  );
  return {
    ...(Object.fromEntries(entries) as Record<ToolAccess, Permission>),
    ...(own.length === 0 ? {} : { own }),
    ...(one.trustsFiles && other.trustsFiles ? { trustsFiles: true } : {}),
  };
}

/** What a turn that was shown words of others does not do by itself. */
const CAREFUL: readonly ToolAccess[] = ['rules', 'send', 'execute', 'schedule'];

export function permissionOf(
  access: ToolAccess,
  rights: Rights,
  isTainted: boolean,
  reach: Reach = 'outside',
): Exclude<Permission, 'local'> {
  // What is noted where untrusted content is in view counts as `rules`, and is kept apart.
  if (reach === 'notes' && rights.own?.includes('write') === true) return 'free';
  const isOwn = reach === 'self' && rights.own?.includes(access) === true;
  const permission = isOwn ? 'free' : rights[access];
  const settled = permission !== 'local' ? permission : reach === 'outside' ? 'ask' : 'free';
  return settled === 'free' && isTainted && CAREFUL.includes(access) ? 'ask' : settled;
}

/** Looking again changes nothing: such calls may run side by side, and once more after a crash. */
export function isRepeatable(access: ToolAccess): boolean {
  return access === 'read' || access === 'web';
}

// The entries of the configuration that grant or take away tools: by person and by group, under their
// channel and stable id. Which of them count where, rightsOf decides.

export type ToolPolicyEntry = {
  /** `channel:id`. */
  readonly who: string;
  readonly approvals?: ApprovalPolicy | undefined;
} & { readonly [access in ToolAccess]?: Permission | undefined };

export type ToolPolicies = {
  /** By role, where no entry says otherwise. */
  readonly approvals: Readonly<Record<'owner' | 'trusted', ApprovalPolicy>>;
  readonly people: readonly ToolPolicyEntry[];
  readonly groups: readonly ToolPolicyEntry[];
};

export type Whose = {
  readonly channel: string;
  /** All ids of the person. */
  readonly ids: readonly string[];
  /** All ids of the group; empty where it is none. */
  readonly group: readonly string[];
};

/** Where several entries are about one person or group, the narrowest counts. */
export function toolPolicyOf({ people, groups }: ToolPolicies, whose: Whose): RightsPolicy {
  const { channel } = whose;
  const person = joined(people, namesIn(channel, whose.ids));
  const group = joined(groups, namesIn(channel, whose.group));
  return {
    ...(person === undefined ? {} : { person }),
    ...(group === undefined ? {} : { group }),
  };
}

/**
 * How much is asked of owners for somebody there. `chosen`: by an owner for this person, before what is
 * configured. Only a private chat has less than `strict`, and a group what its entry says, at most what
 * the person has.
 */
export function approvalPolicyOf(
  { approvals, people, groups }: ToolPolicies,
  { role, place, medium }: SenderStanding,
  whose: Whose,
  chosen: ApprovalPolicy | undefined,
): ApprovalPolicy {
  if (medium === 'mail' || role === 'guest') return 'strict';
  const said = (entries: readonly ToolPolicyEntry[], ids: readonly string[]) =>
    entries
      .filter(({ who }) => namesIn(whose.channel, ids).includes(who))
      .map((entry) => entry.approvals)
      .reduce(stricterPolicy, undefined);
  const own = chosen ?? said(people, whose.ids) ?? approvals[role];
  return place === 'group' ? stricterPolicy(own, said(groups, whose.group) ?? 'strict') : own;
}

/** What is taken from somebody who is known by these names, `channel:id`, on whichever door they come. */
export function takenFrom({ people }: ToolPolicies, names: readonly string[]): Rights {
  return overridden(UNRESTRICTED, joined(people, names));
}

const namesIn = (channel: string, ids: readonly string[]) => ids.map((id) => `${channel}:${id}`);

function joined(
  entries: readonly ToolPolicyEntry[],
  names: readonly string[],
): Partial<Rights> | undefined {
  const found = entries.filter(({ who }) => names.includes(who));
  if (found.length === 0) return undefined;
  const pairs = TOOL_ACCESSES.flatMap((access) => {
    const said = found.flatMap((entry) => entry[access] ?? []);
    const narrowest = PERMISSIONS.findLast((permission) => said.includes(permission));
    return narrowest === undefined ? [] : [[access, narrowest] as const];
  });
  return Object.fromEntries(pairs);
}
