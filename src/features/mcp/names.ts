// What tools of servers are called: `mcp_<server>_<tool>`, within what the vendors of models take
// (letters, digits, `_` and `-`, 64 characters), and never the same twice.

import { createHash } from 'node:crypto';
import { matchesWildcard } from '../../lib/text/wildcard.ts';

const MAX_CHARS = 64;
const HASH_CHARS = 8;

/** By the server's own name of each tool; a name says the same whatever else the server has. */
export function toolNames(server: string, tools: readonly string[]): ReadonlyMap<string, string> {
  const plain = tools.map((tool) => [tool, plainName(server, tool)] as const);
  const named = plain.map(([tool, name]) => {
    const isAlone = plain.filter(([, other]) => other === name).length === 1;
    return [tool, isAlone && name.length <= MAX_CHARS ? name : hashed(name, server, tool)] as const;
  });
  return new Map(named);
}

const plainName = (server: string, tool: string) =>
  `mcp_${server}_${tool.replace(/[^A-Za-z0-9_-]/g, '_')}`;

function hashed(name: string, server: string, tool: string): string {
  const hash = createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, HASH_CHARS);
  return `${name.slice(0, MAX_CHARS - HASH_CHARS - 1)}_${hash}`;
}

/** Whether a pattern of the configuration means a tool; `*` stands for any text. */
export const isMeant = (patterns: readonly string[], tool: string): boolean =>
  patterns.some((pattern) => matchesWildcard(tool, pattern));
