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

/** `ask`: an owner says yes to each call. From the widest to the narrowest. */
export const PERMISSIONS = ['free', 'ask', 'never'] as const;
export type Permission = (typeof PERMISSIONS)[number];

export type Rights = Readonly<Record<ToolAccess, Permission>>;

/** `mail`: a sender's identity may be proven there, and still others wrote parts of the text. */
export type Medium = 'chat' | 'mail';

/** Who asks, as what, and where. */
export type Standing = {
  readonly role: 'owner' | 'trusted' | 'guest';
  readonly place: 'direct' | 'group';
  readonly verified: 'verified' | 'asserted' | 'unverified';
  readonly medium: Medium;
};

/** What the configuration says of this person and of this group. */
export type RightsPolicy = {
  readonly person?: Partial<Rights>;
  readonly group?: Partial<Rights>;
};

const every = (permission: Permission): Rights =>
  Object.fromEntries(TOOL_ACCESSES.map((access) => [access, permission])) as Rights;

export const NO_RIGHTS: Rights = every('never');
export const ALL_RIGHTS: Rights = every('free');
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
const BY_ROLE: Readonly<Record<Standing['role'], Rights>> = {
  owner: OWNER,
  trusted: READER,
  guest: NO_RIGHTS,
};

/**
 * An entry for a person widens or narrows what they have in a direct conversation, one for a group
 * what can be done there; neither exceeds the other, and none helps a sender whom nothing verifies.
 */
export function rightsOf(standing: Standing, policy: RightsPolicy = {}): Rights {
  const { role, place, verified, medium } = standing;
  if (verified === 'unverified') return NO_RIGHTS;
  const usual = medium === 'mail' ? narrowed(BY_ROLE[role], READER) : BY_ROLE[role];
  const ofPerson = overridden(usual, policy.person);
  return place === 'group' ? narrowed(ofPerson, overridden(READER, policy.group)) : ofPerson;
}

function overridden(rights: Rights, entry: Partial<Rights> = {}): Rights {
  const pairs = TOOL_ACCESSES.map((access) => [access, entry[access] ?? rights[access]] as const);
  return Object.fromEntries(pairs) as Rights;
}

/** The narrower of the two for each access. */
export function narrowed(one: Rights, other: Rights): Rights {
  const entries = TOOL_ACCESSES.map((access) => {
    const rank = Math.max(PERMISSIONS.indexOf(one[access]), PERMISSIONS.indexOf(other[access]));
    return [access, PERMISSIONS[rank] ?? 'never'] as const;
  });
  return Object.fromEntries(entries) as Rights;
}

/** What a turn that was shown words of others does not do by itself. */
const CAREFUL: readonly ToolAccess[] = ['rules', 'send', 'execute', 'schedule'];

export function permissionOf(access: ToolAccess, rights: Rights, isTainted: boolean): Permission {
  const permission = rights[access];
  return permission === 'free' && isTainted && CAREFUL.includes(access) ? 'ask' : permission;
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
} & { readonly [access in keyof Rights]?: Rights[access] | undefined };

export type ToolPolicies = {
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

/** What is taken from somebody who is known by these names, `channel:id`, on whichever door they come. */
export function takenFrom({ people }: ToolPolicies, names: readonly string[]): Rights {
  return { ...ALL_RIGHTS, ...joined(people, names) };
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
