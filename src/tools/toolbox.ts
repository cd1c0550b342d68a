// The toolbox: validates and coerces arguments, checks access, runs a tool with its timeout. Its
// settings come from the configuration.

import { z } from 'zod';
import { isRepeatable } from '../kernel/access/rights.ts';
import type { Config } from '../kernel/config/config.ts';
import type { ToolFailureKind } from '../kernel/message/errors.ts';
import { wrapUntrusted } from '../kernel/message/untrusted.ts';
import { newBoundary } from '../lib/boundary.ts';
import { coerceArguments, parseArguments, type ShapeSchema } from '../lib/json/coerce.ts';
import { canonicalJson } from '../lib/json/json.ts';
import type { Logger } from '../lib/logger.ts';
import { truncateText } from '../lib/text/cut.ts';
import type { Clock } from '../lib/time/clock.ts';
import {
  createCatalog,
  describeFailure,
  type FoundTool,
  failureOf,
  runWithDeadline,
  type ToolFailure,
} from './catalog.ts';
import type { BoundCall, Tool, Toolbox, ToolContext, ToolOutcome } from './tool.ts';

export type ToolboxSettings = ReturnType<typeof toolboxSettings>;

const MEMORY_TOOLS = ['remember', 'recall'];
const WEB_TOOLS = ['web_fetch', 'web_search'];
const MAIL_TOOLS = ['send_email'];

export function toolboxSettings(config: Pick<Config, 'agents' | 'channels' | 'memory' | 'tools'>) {
  const { disabled, timeoutSecs, web } = config.tools;
  return {
    /** Names of tools the agent does not get. */
    disabled: [
      ...disabled,
      ...(config.memory.enabled ? [] : MEMORY_TOOLS),
      ...(web.enabled ? [] : WEB_TOOLS),
      ...(config.channels.email.enabled ? [] : MAIL_TOOLS),
    ],
    maxResultChars: config.agents.defaults.maxToolResultChars,
    timeoutMs: timeoutSecs * 1000,
  };
}

// Finds, checks and runs tools for the agent. A call never throws: an unknown tool, a wrong
// argument, a failure or a deadline is a result that the model can act on, and every result is cut
// to the limit here. One of the three places where errors are caught.

type ToolboxDeps = {
  /** In a stable order; asked at every use, because tools of servers come and go. */
  readonly tools: () => readonly Tool[];
  /** Asked at every use, so that a changed configuration holds from the next turn on. */
  readonly settings: () => ToolboxSettings;
  readonly clock: Clock;
  readonly log: Logger;
};

/** Above any content a tool accepts, with room for JSON escapes. */
const MAX_ARGUMENT_CHARS = 12_000_000;
/** Of one result that is too long to be shown. */
const MAX_WHOLE_CHARS = 1_000_000;
/** Before the second try of a call that failed on the way. */
const RETRY_MS = 500;
const RESULT_HINT = 'ask for less at a time, for example a range of lines';
export function createToolbox(deps: ToolboxDeps): Toolbox {
  const catalog = createCatalog(deps);
  return {
    missing: () => catalog.missing(),
    offered(rights, mayUse = () => true) {
      const allowed = catalog
        .usable()
        .filter(({ tool }) => rights[tool.access] !== 'never' && mayUse(tool.name));
      return {
        specs: allowed.map(({ spec }) => spec),
        guidance: allowed
          .flatMap(({ tool }) => (tool.guidance ? [`### ${tool.name}\n${tool.guidance}`] : []))
          .join('\n\n'),
      };
    },
    bind(name, argumentsJson) {
      const found = catalog.find(name);
      if (found.kind === 'unknown') return refused(name, 'unknown_tool', found.reason, deps);
      return bindCall(found, argumentsJson, deps);
    },
  };
}

const refused = (
  name: string,
  kind: ToolFailureKind,
  reason: string,
  deps: ToolboxDeps,
): BoundCall => ({ kind: 'refused', name, outcome: failed(failureOf(kind, reason), deps) });

function limited(text: string, { settings }: ToolboxDeps): Pick<ToolOutcome, 'text' | 'whole'> {
  const { maxResultChars } = settings();
  if (text.length <= maxResultChars) return { text };
  const whole = truncateText(text, MAX_WHOLE_CHARS, 'more was not kept');
  return { text: truncateText(text, maxResultChars, RESULT_HINT), whole };
}

const failed = ({ kind, text }: ToolFailure, deps: ToolboxDeps): ToolOutcome => ({
  status: 'failed',
  ...limited(text, deps),
  failure: kind,
});

function bindCall(
  { tool, spec, implied }: Extract<FoundTool, { kind: 'found' }>,
  argumentsJson: string,
  deps: ToolboxDeps,
): BoundCall {
  const explain = (problem: string) => {
    const shape = `Expected for ${tool.name}: ${JSON.stringify(spec.schema)}`;
    return refused(tool.name, 'invalid_arguments', `${problem}\n${shape}`, deps);
  };
  if (argumentsJson.length > MAX_ARGUMENT_CHARS) return explain('the arguments are too long');
  const parsed = parseArguments(argumentsJson);
  if (parsed.kind === 'unreadable')
    return explain(`the arguments cannot be read: ${parsed.problem}`);
  const coerced = coerceArguments(
    parsed.value,
    spec.schema as ShapeSchema,
    tool.parameterAliases,
    implied,
  );
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
    async seal(context) {
      try {
        return await tool.sealOf?.(input, context);
      } catch (error) {
        return failed(describeFailure(error), deps);
      }
    },
    standing: () =>
      tool.standing?.(input) ?? {
        pattern: canonicalJson(JSON.stringify(input)),
        evenTainted: false,
      },
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
  let isOwn = false;
  const own = () => {
    isOwn = true;
  };
  try {
    const run = (signal: AbortSignal) => tryTwice(tool, input, { ...context, own, signal });
    const text = await runWithDeadline(run, {
      signal: context.signal,
      timeoutMs: tool.timeoutMs?.(input) ?? settings().timeoutMs,
      clock,
    });
    const outcome = { status: 'ok', ...limited(text, deps) } as const;
    return isOwn ? outcome : shown(tool, input, outcome);
  } catch (error) {
    const failure = describeFailure(error);
    const { session, turnId } = context;
    const fields = { tool: tool.name, kind: failure.kind, session, turnId, error };
    if (failure.isExpected) log.debug('tool refused', fields);
    else log.warn('tool failed', fields);
    return shown(tool, input, failed(failure, deps));
  }
}

/** Once more after a passing failure, where asking again changes nothing; within the same deadline. */
async function tryTwice(tool: Tool, input: unknown, context: ToolContext): Promise<string> {
  try {
    return await tool.run(input, context);
  } catch (error) {
    if (!isRepeatable(tool.access) || !describeFailure(error).isTransient) throw error;
    await context.clock.sleep(RETRY_MS, context.signal);
    return tool.run(input, context);
  }
}

/** A failure too may say what others wrote. */
function shown(tool: Tool, input: unknown, outcome: ToolOutcome): ToolOutcome {
  if (tool.taints !== true || tool.isOwn?.(input, outcome.text) === true) return outcome;
  if (tool.isVerbatim === true) return { ...outcome, isForeign: true };
  const wrapped = wrapUntrusted(`result of ${tool.name}`, [outcome], newBoundary());
  return { ...outcome, text: wrapped, isForeign: true };
}

// Names of parameters that several tools share, as models write them.

export const PATH_NAMES = [
  'file_path',
  'filepath',
  'file',
  'filename',
  'dir_path',
  'directory',
  'dir',
  'folder',
] as const;

export const QUERY_NAMES = ['q', 'search_query', 'search', 'text'] as const;
