// The entries of the configuration that grant or take away tools: by person and by group, under their
// channel and stable id. Which of them count where, core/rights.ts decides.

import {
  ALL_RIGHTS,
  PERMISSIONS,
  type Rights,
  type RightsPolicy,
  TOOL_ACCESSES,
} from './rights.ts';

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
