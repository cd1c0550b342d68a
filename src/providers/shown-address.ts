// A server's address as others may read it: without user name, password and query.

/** For what is measured; empty where the text is no address. */
export function basedAt(address: string): { readonly base?: string } {
  if (!URL.canParse(address)) return {};
  const { origin, pathname } = new URL(address);
  return { base: `${origin}${pathname}`.replace(/\/$/, '') };
}
