// Which tools a model is described where its window has no room for all of them: descriptions that
// fill the window leave none for the conversation. One that is left out still runs when it is called.

import { TOOL_NAMES } from '../../kernel/config/tools.ts';
import type { ModelCapabilities } from '../../providers/rules/model-capabilities.ts';
import { CHARS_PER_TOKEN } from './tokens.ts';

/** What most requests need, the most needed first. The others follow in their own order. */
const FIRST: readonly string[] = [
  'read_earlier',
  'read_file',
  'write_file',
  'list_dir',
  'read_result',
  'expand',
  'remember',
  'recall',
  'web_search',
  'web_fetch',
  'message',
  'cron',
  'search_files',
  'edit_file',
  'read_skill',
  'check_inbox',
  'send_email',
  'exec',
  'search',
];

export type DescribedTool = {
  readonly name: string;
  readonly description: string;
  readonly schema: unknown;
  /** Characters of all that as JSON; worked out once, for it is asked several times a turn. */
  readonly jsonChars: number;
};

export const sized = <T extends Omit<DescribedTool, 'jsonChars'>>(tool: T) => ({
  ...tool,
  jsonChars: JSON.stringify(tool).length,
});

/** Of a list of them. */
export const toolsTokens = (tools: readonly DescribedTool[]) =>
  Math.ceil(tools.reduce((sum, { jsonChars }) => sum + jsonChars + 1, 1) / CHARS_PER_TOKEN);

/**
 * Which tools a model is offered at all. A small one on a local server gets lost among many; one of a
 * service is never taken for small by its name. `smallTools`: names; empty: all.
 */
export function toolsFor<T extends { readonly name: string }>(
  tools: readonly T[],
  { local, capabilities }: OfferedTo,
  smallTools: readonly string[],
): readonly T[] {
  if (capabilities.toolCalling === 'none') return [];
  const takesFew = local && capabilities.sizeClass === 'small' && smallTools.length > 0;
  return takesFew ? tools.filter(({ name }) => smallTools.includes(name)) : tools;
}

type OfferedTo = {
  readonly local: boolean;
  readonly capabilities: Pick<ModelCapabilities, 'sizeClass' | 'toolCalling'>;
};

/** In the order given, so that the provider's cache holds. */
export function toolsWithRoom<T extends DescribedTool>(
  tools: readonly T[],
  maxTokens: number,
): readonly T[] {
  if (toolsTokens(tools) <= maxTokens) return tools;
  const kept = new Set<T>();
  let leftTokens = maxTokens;
  for (const tool of byNeed(tools)) {
    const tokens = toolsTokens([tool]);
    if (tokens > leftTokens) continue;
    leftTokens -= tokens;
    kept.add(tool);
  }
  return tools.filter((tool) => kept.has(tool));
}

function byNeed<T extends DescribedTool>(tools: readonly T[]): readonly T[] {
  const rank = ({ name }: T) => {
    const at = FIRST.indexOf(name);
    return at < 0 ? FIRST.length : at;
  };
  return tools.toSorted((a, b) => rank(a) - rank(b));
}

// Whether a file may name a tool: one that is built in, or one of a tool server, which is known only
// while that runs.

const BUILT_IN: ReadonlySet<string> = new Set(TOOL_NAMES);
const OF_SERVER = /^mcp_[A-Za-z0-9_-]+$/;

export const mayBeTool = (name: string) => BUILT_IN.has(name) || OF_SERVER.test(name);
