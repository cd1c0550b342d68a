// Tool: reads on in an earlier result of a tool of the same conversation. It finds nothing of other
// conversations, and what was words of others comes back as words of others.

import { z } from 'zod';
import { partOfResult } from '../agent/rules/document-text.ts';
import { isImage } from '../kernel/message/attachment.ts';
import { ToolError } from '../kernel/message/errors.ts';
import type { ResultId, SessionKey } from '../kernel/message/ids.ts';
import type { ToolEntry } from '../kernel/message/transcript.ts';
import { unwrapped } from '../kernel/message/untrusted.ts';
import { parseResultId } from '../kernel/sessions/rules/earlier.ts';
import { readDescription } from './description.ts';
import type { Tool, ToolContext } from './tool.ts';

export type ReadResultDeps = {
  /** A result with all of its text. */
  find(session: SessionKey, id: ResultId): Promise<ToolEntry | undefined>;
  /** Longest result of a tool. */
  maxResultChars(): number;
};

const MAX_SEARCH_CHARS = 500;
const resultInput = z.object({
  id: z.string().min(1).max(40).describe('Of the result, like "r12.3".'),
  lines: z
    .string()
    .max(40)
    .optional()
    .describe('Only these lines, "a:b": 1-based, both included. Example: "10:40".'),
  from: z.int().min(0).optional().describe('Character to begin at; 0 when left out.'),
  path: z
    .string()
    .max(MAX_SEARCH_CHARS)
    .optional()
    .describe('In JSON: only the value there. Example: "items[3].name", "items[0:20]".'),
  search: z
    .string()
    .min(1)
    .max(MAX_SEARCH_CHARS)
    .optional()
    .describe('Only the places that hold these words; case does not count.'),
});
type ResultInput = z.infer<typeof resultInput>;

/** Stands first in what holds words of others. */
const FOREIGN = '[Others wrote this.]';
/** Left for our own lines. */
const ROOM_CHARS = 300;

export function createReadResult(deps: ReadResultDeps): Tool<ResultInput> {
  return {
    name: 'read_result',
    aliases: ['get_result', 'show_result', 'expand_result', 'tool_result'],
    parameterAliases: {
      id: ['result', 'result_id', 'ref'],
      lines: ['line_range', 'range'],
      from: ['offset', 'start'],
      path: ['json_path', 'jsonpath', 'key'],
      search: ['query', 'words', 'find', 'grep'],
    },
    ...readDescription('read_result'),
    access: 'read',
    taints: true,
    isOwn: (_input, found) => !found.startsWith(FOREIGN),
    input: resultInput,
    describe: ({ id, path, lines, search }) => [id, path ?? lines ?? search ?? ''].join(' ').trim(),
    async run({ id, ...wanted }, context) {
      const name = parseResultId(id);
      if (name === undefined) {
        throw new ToolError(
          'invalid_arguments',
          'an id looks like "r12.3"; it stands in the result',
        );
      }
      const entry = await deps.find(context.session, name);
      if (entry === undefined) {
        throw new ToolError('not_found', 'this conversation has no result of this id');
      }
      showImages(entry, context);
      return partText(entry, name, given(wanted), deps);
    },
  };
}

function showImages({ media = [] }: ToolEntry, { show }: ToolContext): void {
  for (const image of media.filter(isImage)) show?.(image);
}

/** Without what a model leaves empty. */
function given({ lines, from, path, search }: Omit<ResultInput, 'id'>) {
  return {
    ...(lines === undefined || lines.trim() === '' ? {} : { lines }),
    ...(from === undefined ? {} : { from }),
    ...(path === undefined || path.trim() === '' ? {} : { path }),
    ...(search === undefined ? {} : { search }),
  };
}

function partText(
  { name, text, whole = unwrapped(text), isForeign }: ToolEntry,
  id: ResultId,
  wanted: ReturnType<typeof given>,
  { maxResultChars }: ReadResultDeps,
): string {
  const most = maxResultChars();
  const maxChars = Math.min(MAX_CHARS, Math.max(Math.floor(most / 2), most - ROOM_CHARS));
  const part = partOfResult(whole, wanted, maxChars);
  const head = isForeign === true ? `${FOREIGN}\n` : '';
  if (part.kind === 'found') return `${head}[result ${id} of ${name}; ${part.about}]\n${part.text}`;
  // What is wrong is told in the words of the result.
  if (isForeign === true) return `${head}[nothing of result ${id}: ${part.problem}]`;
  throw new ToolError('invalid_arguments', part.problem);
}
