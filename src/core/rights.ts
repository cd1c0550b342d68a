// What a turn may do, from who asked and where. A right is never more than both the person's and the
// chat's; reading what others wrote makes a turn careful, and nothing makes it careless again.

/**
 * What a tool does to the world. `read`: looks into the workspace and memory. `web`: reads from the
 * net. `write`: changes files of the workspace. `rules`: changes what later turns are told to do.
 * `send`: speaks outside this chat. `execute`: runs programs. `schedule`: makes later turns.
 */
export const TOOL_ACCESSES = [
  'read',
  'web',
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

/** The narrower of the two for each access. */
export function narrowed(one: Rights, other: Rights): Rights {
  const entries = TOOL_ACCESSES.map((access) => {
    const rank = Math.max(PERMISSIONS.indexOf(one[access]), PERMISSIONS.indexOf(other[access]));
    return [access, PERMISSIONS[rank] ?? 'never'] as const;
  });
  return Object.fromEntries(entries) as Rights;
}
