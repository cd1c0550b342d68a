// What a turn may do, from the sender and the place. A right never exceeds those of the person and
// of the place; untrusted content taints a turn, and nothing lifts the taint.

/**
 * A tool's kind of access. `read`: reads the workspace and memory. `web`: reads from the internet.
 * `say`: writes in this chat before the answer. `write`: changes files of the workspace. `rules`:
 * changes what later turns follow. `send`: sends outside this chat. `execute`: runs programs.
 * `schedule`: creates later turns.
 */
import { t } from '../../lib/texts.ts';

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
 * `ask`: each call needs an approval. `local`: only calls whose effects can leave this machine do.
 * From the widest to the narrowest.
 */
export const PERMISSIONS = ['free', 'local', 'ask', 'never'] as const;
export type Permission = (typeof PERMISSIONS)[number];
/** Values in the configuration. */
export const CONFIGURED_PERMISSIONS = ['free', 'ask', 'never'] as const;

export type Rights = Readonly<Record<ToolAccess, Permission>> & {
  /** For these, calls that concern only the sender's own notes and reminders need no approval. */
  readonly own?: readonly ToolAccess[];
  /**
   * Files of the workspace and the person's attachments are trusted unless recorded as untrusted.
   */
  readonly trustsFiles?: true;
};

/**
 * The extent of a call's effects. `notes`: notes about the sender, stored separately in a tainted
 * conversation; `self`: reminders to the sender; `machine`: nothing leaves this machine.
 */
export type Reach = 'notes' | 'self' | 'machine' | 'outside';

/** Resets a choice of a person. */
export const AUTOMATIC = 'auto' as const;

/** How often owners are asked; from the widest to the narrowest. */
export const APPROVAL_POLICIES = ['open', 'normal', 'strict'] as const;
export type ApprovalPolicy = (typeof APPROVAL_POLICIES)[number];

/** Texts for people. */
export const POLICY_WORDS: Readonly<Record<ApprovalPolicy, string>> = {
  open: t`Nothing is asked, except while untrusted content is in view and before the first message to a person.`,
  normal:
    t`Asked before what can leave this machine or changes instruction files, and before any effect while ` +
    t`untrusted content is in view.`,
  strict: t`Asked before every program, job and message to others.`,
};

/** The narrower of two; either may be absent. */
export function stricterPolicy<T extends ApprovalPolicy | undefined>(one: T, other: T): T {
  if (one === undefined || other === undefined) return one ?? other;
  return APPROVAL_POLICIES.indexOf(one) > APPROVAL_POLICIES.indexOf(other) ? one : other;
}

/** `mail`: even if the sender's identity is proven, parts of the text may be untrusted content. */
export type Medium = 'chat' | 'mail';

/** The sender, their role, and the place. */
export type SenderStanding = {
  readonly role: 'owner' | 'trusted' | 'guest';
  readonly place: 'direct' | 'group';
  readonly verified: 'verified' | 'asserted' | 'unverified';
  readonly medium: Medium;
};

/** The configured rights of this person and of this group. */
type RightsPolicy = {
  readonly person?: Partial<Rights>;
  readonly group?: Partial<Rights>;
  /** Absent: `strict`. */
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
/** For automatic repeats: may read, and changes nothing. */
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
 * An entry for a person widens or narrows their rights in a direct conversation, one for a group
 * what can be done there; neither exceeds the other, and none applies to an unverified sender.
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

/** Accesses that need an approval in a tainted turn. */
const CAREFUL: readonly ToolAccess[] = ['rules', 'send', 'execute', 'schedule'];

export function permissionOf(
  access: ToolAccess,
  rights: Rights,
  isTainted: boolean,
  reach: Reach = 'outside',
): Exclude<Permission, 'local'> {
  // Notes in a tainted conversation count as `rules` and are stored separately.
  if (reach === 'notes' && rights.own?.includes('write') === true) return 'free';
  const isOwn = reach === 'self' && rights.own?.includes(access) === true;
  const permission = isOwn ? 'free' : rights[access];
  const settled = permission !== 'local' ? permission : reach === 'outside' ? 'ask' : 'free';
  return settled === 'free' && isTainted && CAREFUL.includes(access) ? 'ask' : settled;
}

/** Reading again changes nothing: such calls may run in parallel, and again after a crash. */
export function isRepeatable(access: ToolAccess): boolean {
  return access === 'read' || access === 'web';
}

// Configured entries that grant or revoke tools: by person and by group, under their channel and
// stable id. rightsOf decides which of them apply.

export type ToolPolicyEntry = {
  /** `channel:id`. */
  readonly who: string;
  readonly approvals?: ApprovalPolicy | undefined;
} & { readonly [access in ToolAccess]?: Permission | undefined };

export type ToolPolicies = {
  /** By role, if no entry applies. */
  readonly approvals: Readonly<Record<'owner' | 'trusted', ApprovalPolicy>>;
  readonly people: readonly ToolPolicyEntry[];
  readonly groups: readonly ToolPolicyEntry[];
};

/** What an owner chose since, by `owner`, `trusted`, or group as `channel:id`, before the configuration. */
export type ChosenPolicies = ReadonlyMap<string, ApprovalPolicy>;

export function withChosen(policies: ToolPolicies, chosen: ChosenPolicies): ToolPolicies {
  const { owner, trusted } = policies.approvals;
  const { groups } = policies;
  const known = new Set(groups.map(({ who }) => who));
  const others = [...chosen].filter(([who]) => who.includes(':') && !known.has(who));
  return {
    ...policies,
    approvals: {
      owner: chosen.get('owner') ?? owner,
      trusted: chosen.get('trusted') ?? trusted,
    },
    groups: [
      ...groups.map((entry) => ({ ...entry, approvals: chosen.get(entry.who) ?? entry.approvals })),
      ...others.map(([who, approvals]) => ({ who, approvals })),
    ],
  };
}

export type Whose = {
  readonly channel: string;
  /** All ids of the person. */
  readonly ids: readonly string[];
  /** All ids of the group; empty if it is none. */
  readonly group: readonly string[];
};

/** If several entries match one person or group, the narrowest applies. */
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
 * How often owners are asked about a person in a place. `chosen`: set by an owner for this person,
 * overrides the configuration. Only a private chat is less than `strict`; a group has what its
 * entry says, at most what the person has.
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

/** The rights revoked from a person with these names, `channel:id`, on any channel. */
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
