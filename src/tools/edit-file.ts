// Tool: replaces one exact passage of a text file. What counts as a match is core/exact-edit.ts.

import { z } from 'zod';
import { ToolError } from '../core/errors.ts';
import { replaceExactly } from '../core/exact-edit.ts';
import { isOwnFile, writeAccessOf } from '../core/rule-files.ts';
import { readDescription } from './description.ts';
import { decodeText } from './file-text.ts';
import type { Tool } from './tool.ts';
import { PATH_NAMES } from './usual-names.ts';
import {
  checkNotes,
  MAX_PATH_CHARS,
  MAX_WRITE_BYTES,
  type WorkspaceAccess,
} from './workspace-access.ts';
import { refuseOversized } from './write-file.ts';

const EDITED = 'Edited ';

const input = z.object({
  path: z.string().min(1).max(MAX_PATH_CHARS).describe('File, relative to the workspace.'),
  old_text: z.string().describe('The passage as it stands in the file, to the character.'),
  new_text: z.string().describe('What takes its place; empty deletes the passage.'),
});
type Input = z.infer<typeof input>;

export function createEditFile({ files, own }: WorkspaceAccess): Tool<Input> {
  return {
    name: 'edit_file',
    aliases: ['Edit', 'str_replace', 'replace', 'replace_in_file', 'string_replace', 'update_file'],
    parameterAliases: {
      path: PATH_NAMES,
      old_text: ['old_string', 'old_str', 'old', 'search'],
      new_text: ['new_string', 'new_str', 'new', 'replace', 'replacement'],
    },
    ...readDescription('edit_file'),
    access: 'write',
    accessOf: ({ path }, isTainted) => writeAccessOf(path, isTainted),
    // A refusal shows lines of the file.
    taints: true,
    isOwn: ({ path }, found) => isOwnFile(path) || found.startsWith(EDITED),
    isVerbatim: true,
    input,
    describe: ({ path }) => path,
    async run({ path, old_text, new_text }, context) {
      const { workspace } = context;
      checkNotes(path, context);
      let line = 0;
      let [before, after]: [Buffer | undefined, string] = [undefined, ''];
      const change = (content: Buffer | undefined) => {
        if (content === undefined) throw new ToolError('not_found', 'there is no such file');
        const edit = replaceExactly(decodeText(content), old_text, new_text);
        if (edit.kind === 'refused') throw new ToolError('invalid_arguments', edit.reason);
        refuseOversized(Buffer.byteLength(edit.text));
        line = edit.line;
        [before, after] = [content, edit.text];
        return edit.text;
      };
      await files.update(workspace, path, change, { maxBytes: MAX_WRITE_BYTES });
      const wasOwn = before !== undefined && (await own?.holds(before, context));
      if (wasOwn === true) await own?.wrote(path, after, context);
      return `${EDITED}${path} at line ${line}.`;
    },
  };
}
