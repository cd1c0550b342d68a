// Tool: lists a folder of the workspace.

import { z } from 'zod';
import type { GuardedEntry } from '../../lib/files/guarded-entries.ts';
import { nameOnLine } from '../../lib/text/characters.ts';
import { readDescription } from '../description.ts';
import type { Tool } from '../tool.ts';
import { PATH_NAMES } from '../toolbox.ts';
import { checkNotes, MAX_PATH_CHARS, type WorkspaceAccess } from './workspace-access.ts';

const MAX_ENTRIES = 500;

const listInput = z.object({
  path: z
    .string()
    .max(MAX_PATH_CHARS)
    .default('.')
    .describe('Folder, relative to the workspace; "." is the workspace itself.'),
});
type ListInput = z.infer<typeof listInput>;

export function createListDir({ files, own }: WorkspaceAccess): Tool<ListInput> {
  return {
    name: 'list_dir',
    aliases: ['ls', 'LS', 'dir', 'list_files', 'list_directory', 'list_folder', 'tree'],
    parameterAliases: { path: PATH_NAMES },
    ...readDescription('list_dir'),
    access: 'read',
    // Who unpacks an archive lets others name files.
    taints: true,
    isVerbatim: true,
    input: listInput,
    describe: ({ path }) => path,
    async run({ path }, context) {
      const { workspace } = context;
      checkNotes(path, context);
      const listing = await files.list(workspace, path, { maxEntries: MAX_ENTRIES });
      const names = listing.entries.map(({ name }) => name);
      if (await own?.named(path, names, context)) context.own?.();
      const lines = listing.entries.map(describeEntry);
      if (lines.length === 0) lines.push('(the folder is empty)');
      if (listing.omitted > 0) lines.push(`[${listing.omitted} more entries not shown]`);
      if (listing.hidden > 0) lines.push(`[${listing.hidden} protected entries not shown]`);
      return lines.join('\n');
    },
  };
}

function describeEntry({ name: given, kind, bytes }: GuardedEntry): string {
  const name = nameOnLine(given);
  switch (kind) {
    case 'folder':
      return `folder  ${name}/`;
    case 'file':
      return `file    ${name}  (${bytes.toLocaleString('en-US')} bytes)`;
    case 'link':
      return `link    ${name}  (not followed)`;
    case 'other':
      return `other   ${name}`;
  }
}
