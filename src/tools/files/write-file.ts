// Tool: writes a whole file of the workspace in one step.

import { z } from 'zod';
import { writeAccessOf } from '../../agent/rules/rule-files.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { readDescription } from '../description.ts';
import type { Tool } from '../tool.ts';
import { PATH_NAMES } from '../toolbox.ts';
import {
  checkNotes,
  MAX_PATH_CHARS,
  MAX_WRITE_BYTES,
  type WorkspaceAccess,
} from './workspace-access.ts';

const writeInput = z.object({
  path: z.string().min(1).max(MAX_PATH_CHARS).describe('File, relative to the workspace.'),
  content: z.string().describe('The whole new content.'),
});
type WriteInput = z.infer<typeof writeInput>;

export function createWriteFile({ files, own }: WorkspaceAccess): Tool<WriteInput> {
  return {
    name: 'write_file',
    aliases: ['Write', 'create_file', 'save_file', 'new_file'],
    parameterAliases: { path: PATH_NAMES, content: ['contents', 'text', 'file_text', 'body'] },
    ...readDescription('write_file'),
    access: 'write',
    accessOf: ({ path }, isTainted) => writeAccessOf(path, isTainted),
    input: writeInput,
    describe: ({ path }) => path,
    async run({ path, content }, context) {
      const { workspace } = context;
      checkNotes(path, context);
      const bytes = Buffer.byteLength(content);
      refuseOversized(bytes);
      const result = await files.write(workspace, path, content);
      await own?.wrote(path, content, context);
      const verb = result === 'created' ? 'Created' : 'Replaced';
      return `${verb} ${path} (${bytes.toLocaleString('en-US')} bytes).`;
    },
  };
}

/** @throws ToolError invalid_arguments */
export function refuseOversized(bytes: number): void {
  if (bytes <= MAX_WRITE_BYTES) return;
  const limit = MAX_WRITE_BYTES.toLocaleString('en-US');
  throw new ToolError('invalid_arguments', `the content is too large; the limit is ${limit} bytes`);
}
