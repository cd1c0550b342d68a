// Finds, checks and runs tools for the agent. A call never throws: an unknown tool, a wrong
// argument, a failure or a deadline is a result that the model can act on, and every result is cut
// to the limit here. One of the three places where errors are caught.

import { z } from 'zod';
import { coerceArguments, parseArguments, type ShapeSchema } from '../core/coerce.ts';
import { nearestName } from '../core/nearest.ts';
import { truncateText } from '../core/truncate.ts';
import { wrapUntrusted } from '../core/untrusted.ts';
import { newBoundary } from '../lib/boundary.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { ToolSpec } from '../providers/provider.ts';
import { runWithDeadline } from './deadline.ts';
import { describeFailure } from './failure.ts';
import type { BoundCall, Tool, Toolbox, ToolContext, ToolOutcome } from './tool.ts';
import type { ToolboxSettings } from './tool-settings.ts';

export type ToolboxDeps = {
  readonly tools: readonly Tool[];
  /** Asked at every use, so that a changed configuration holds from the next turn on. */
  readonly settings: () => ToolboxSettings;
  readonly clock: Clock;
  readonly log: Logger;
};

/** Above any content a tool accepts, with room for JSON escapes. */
const MAX_ARGUMENT_CHARS = 12_000_000;
const RESULT_HINT = 'ask for less at a time, for example a range of lines';
const NAME_ALIASES: Readonly<Record<string, string>> = {
  readfile: 'read_file',
  writefile: 'write_file',
  createfile: 'write_file',
  editfile: 'edit_file',
  listdir: 'list_dir',
  listfiles: 'list_dir',
  listdirectory: 'list_dir',
  ls: 'list_dir',
  gettime: 'time',
  currenttime: 'time',
  getcurrenttime: 'time',
  sendmessage: 'message',
};

type Offered = { readonly tool: Tool; readonly spec: ToolSpec };

export function createToolbox(deps: ToolboxDeps): Toolbox {
  const all = deps.tools.map((tool): Offered => ({ tool, spec: specOf(tool) }));
  const enabled = () => {
    const { disabled } = deps.settings();
    return all.filter(({ tool }) => !disabled.includes(tool.name));
  };
  return {
    offered(rights) {
      const allowed = enabled().filter(({ tool }) => rights[tool.access] !== 'never');
      return {
        specs: allowed.map(({ spec }) => spec),
        guidance: allowed
          .flatMap(({ tool }) => (tool.guidance ? [`### ${tool.name}\n${tool.guidance}`] : []))
          .join('\n\n'),
      };
    },
    bind(name, argumentsJson) {
      const candidates = enabled();
      const found = findTool(candidates, name);
      if (found === undefined) return refused(name, unknownName(name, candidates), deps);
      return bindCall(found, argumentsJson, deps);
    },
  };
}

function specOf(tool: Tool): ToolSpec {
  const { $schema: _, ...schema } = z.toJSONSchema(tool.input, { io: 'input' });
  return { name: tool.name, description: tool.description, schema };
}

/** Also under a name space (`functions.read_file`), other spellings and the usual other names. */
function findTool(offered: readonly Offered[], name: string): Offered | undefined {
  const plain = plainName(name);
  const alias = Object.hasOwn(NAME_ALIASES, plain) ? NAME_ALIASES[plain] : undefined;
  return (
    offered.find(({ tool }) => tool.name === name) ??
    offered.find(({ tool }) => plainName(tool.name) === plain || tool.name === alias)
  );
}

const plainName = (name: string) =>
  (name.split(/[.:/]/).at(-1) ?? '').toLowerCase().replace(/[^a-z0-9]/g, '');

function unknownName(name: string, offered: readonly Offered[]): string {
  const names = offered.map(({ tool }) => tool.name);
  const near = nearestName(name, names);
  const hint = near === undefined ? '' : ` Did you mean ${near}?`;
  return `Error (unknown_tool): there is no tool of this name.${hint} Tools: ${names.join(', ')}.`;
}

const refused = (name: string, text: string, deps: ToolboxDeps): BoundCall => ({
  kind: 'refused',
  name,
  outcome: outcomeOf('failed', text, deps),
});

function outcomeOf(
  status: ToolOutcome['status'],
  text: string,
  { settings }: ToolboxDeps,
): ToolOutcome {
  return { status, text: truncateText(text, settings().maxResultChars, RESULT_HINT) };
}

function bindCall({ tool, spec }: Offered, argumentsJson: string, deps: ToolboxDeps): BoundCall {
  const explain = (problem: string) =>
    refused(
      tool.name,
      `Error (invalid_arguments): ${problem}\nExpected for ${tool.name}: ${JSON.stringify(spec.schema)}`,
      deps,
    );
  if (argumentsJson.length > MAX_ARGUMENT_CHARS) return explain('the arguments are too long');
  const parsed = parseArguments(argumentsJson);
  if (parsed.kind === 'unreadable') return explain(`this is not JSON: ${parsed.problem}`);
  const coerced = coerceArguments(parsed.value, spec.schema as ShapeSchema);
  const checked = tool.input.safeParse(coerced);
  if (!checked.success) return explain(z.prettifyError(checked.error));
  const input = checked.data;
  return {
    kind: 'ready',
    name: tool.name,
    access: tool.access,
    accessIn: ({ isTainted }) => tool.accessOf?.(input, isTainted) ?? tool.access,
    isPosted: tool.isPosted?.(input) ?? false,
    url: tool.urlOf?.(input),
    arguments: JSON.stringify(input),
    detail: tool.describe(input),
    run: (context) => runTool(tool, input, context, deps),
  };
}

async function runTool(
  tool: Tool,
  input: unknown,
  context: ToolContext,
  deps: ToolboxDeps,
): Promise<ToolOutcome> {
  const { settings, clock, log } = deps;
  const { timeoutMs } = settings();
  try {
    const text = await runWithDeadline((signal) => tool.run(input, { ...context, signal }), {
      signal: context.signal,
      timeoutMs,
      clock,
    });
    return shown(tool, input, outcomeOf('ok', text, deps));
  } catch (error) {
    const failure = describeFailure(error);
    const fields = { tool: tool.name, kind: failure.kind, session: context.session, error };
    if (failure.isExpected) log.debug('tool refused', fields);
    else log.warn('tool failed', fields);
    return shown(tool, input, outcomeOf('failed', failure.text, deps));
  }
}

/** A failure too may say what others wrote. */
function shown(tool: Tool, input: unknown, outcome: ToolOutcome): ToolOutcome {
  if (tool.taints !== true || tool.isOwn?.(input, outcome.text) === true) return outcome;
  if (tool.isVerbatim === true) return { ...outcome, isForeign: true };
  const wrapped = wrapUntrusted(`result of ${tool.name}`, [outcome], newBoundary());
  return { ...outcome, text: wrapped, isForeign: true };
}
