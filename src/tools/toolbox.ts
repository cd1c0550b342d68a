// The toolbox: validates and coerces arguments, checks access, runs a tool with its timeout. Its
// settings come from the configuration.

import { z } from 'zod';
import { sized } from '../agent/rules/tokens.ts';
import { isRepeatable, type Rights } from '../kernel/access/rights.ts';
import type { Config } from '../kernel/config/config.ts';
import type { Kernel } from '../kernel/feature.ts';
import {
  NanobotError,
  RequestError,
  ToolError,
  type ToolFailureKind,
} from '../kernel/message/errors.ts';
import { wrapUntrusted } from '../kernel/message/untrusted.ts';
import { within } from '../lib/async.ts';
import { newBoundary } from '../lib/boundary.ts';
import { GuardedFileError, type GuardReason } from '../lib/files/guarded-path.ts';
import { coerceArguments, parseArguments, type ShapeSchema } from '../lib/json/coerce.ts';
import { canonicalJson } from '../lib/json/json.ts';
import { SafeFetchError, type SafeFetchReason } from '../lib/net/checked-address.ts';
import { nearestName, truncateText } from '../lib/text/cut.ts';
import type { Clock } from '../lib/time/clock.ts';
import type {
  BoundCall,
  MissingTool,
  OfferedTool,
  Tool,
  Toolbox,
  ToolContext,
  ToolOutcome,
} from './tool.ts';

export type ToolboxSettings = ReturnType<typeof toolboxSettings>;

const MEMORY_TOOLS = ['remember', 'recall'];
const WEB_TOOLS = ['web_fetch', 'web_search'];
const MAIL_TOOLS = ['send_email'];

export function toolboxSettings(config: Pick<Config, 'agents' | 'channels' | 'memory' | 'tools'>) {
  const { disabled, timeoutSecs, web } = config.tools;
  return {
    /** Names of tools that the agent does not get. */
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

type ToolboxDeps = Pick<Kernel, 'clock' | 'log'> & {
  /** In a stable order; called at every use, because tools of servers come and go. */
  readonly tools: () => readonly Tool[];
  /** Read at every use, so that a changed configuration applies from the next turn on. */
  readonly settings: () => ToolboxSettings;
};

/** Above any content that a tool accepts, with room for JSON escapes. */
const MAX_ARGUMENT_CHARS = 12_000_000;
/** Of one result that is too long to be shown. */
const MAX_WHOLE_CHARS = 1_000_000;
/** Before the second try of a call that failed with a temporary error. */
const RETRY_MS = 500;
const RESULT_HINT = 'ask for less at a time, for example a range of lines';
export function createToolbox(deps: ToolboxDeps): Toolbox {
  const catalog = createCatalog(deps);
  return {
    missing: () => catalog.missing(),
    offered(rights, mayUse = () => true) {
      const allowed = catalog
        .usable()
        .filter(({ tool }) => isOffered(tool, rights) && mayUse(tool.name));
      return {
        specs: allowed.map(({ spec }) => spec),
        guidance: (isDescribed) =>
          allowed
            .filter(({ tool }) => tool.guidance && isDescribed(tool.name))
            .map(({ tool }) => `### ${tool.name}\n${tool.guidance}`)
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

const isOffered = ({ access, isForOneself }: Tool, rights: Rights) =>
  rights[access] !== 'never' || (isForOneself === true && rights.own?.includes(access) === true);

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
    reach: tool.reachOf?.(input) ?? 'outside',
    isPosted: tool.isPosted?.(input) ?? false,
    ...(tool.needs === undefined ? {} : { needs: tool.needs(input) }),
    url: tool.urlOf?.(input),
    arguments: JSON.stringify(input),
    detail: tool.describe(input),
    request: (at) => tool.requestOf?.(input, at),
    async seal(context) {
      try {
        return await tool.sealOf?.(input, context);
      } catch (error) {
        return failed(describeFailure(error), deps);
      }
    },
    ...(tool.alwaysAsks === true
      ? { alwaysAsks: true }
      : {
          standing: () =>
            tool.standing?.(input) ?? { pattern: canonicalJson(JSON.stringify(input)) },
        }),
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
    const outcome = failed(failure, deps);
    return isOwn ? outcome : shown(tool, input, outcome);
  }
}

/**
 * Retries once after a temporary failure, if a repeat changes nothing; within the same deadline.
 */
async function tryTwice(tool: Tool, input: unknown, context: ToolContext): Promise<string> {
  try {
    return await tool.run(input, context);
  } catch (error) {
    if (!isRepeatable(tool.access) || !describeFailure(error).isTransient) throw error;
    await context.clock.sleep(RETRY_MS, context.signal);
    return tool.run(input, context);
  }
}

/** A failure may contain untrusted content too. */
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

// The tools by name, with aliases and suggestions, and the texts of failures shown to the model.

export type CatalogDeps = {
  /** In a stable order: the model's prompt cache stays valid as long as nothing changes. */
  readonly tools: () => readonly Tool[];
  readonly settings: () => { readonly disabled: readonly string[] };
};

export type Listed = { readonly tool: Tool; readonly spec: OfferedTool };

type FoundTool =
  | (Listed & {
      readonly kind: 'found';
      /** Arguments that the name implies. */
      readonly implied: Readonly<Record<string, unknown>>;
    })
  | { readonly kind: 'unknown'; readonly reason: string };

const NOTHING_IMPLIED = {};

function createCatalog({ tools, settings }: CatalogDeps) {
  const specs = new WeakMap<Tool, OfferedTool>();
  const listed = (tool: Tool): Listed => {
    const spec = specs.get(tool) ?? specOf(tool);
    specs.set(tool, spec);
    return { tool, spec };
  };
  const enabled = () => {
    const { disabled } = settings();
    return tools().filter(({ name }) => !disabled.includes(name));
  };
  return {
    /** Tools that are switched on and can work. */
    usable: () => enabled().filter(isUsable).map(listed),
    missing: (): readonly MissingTool[] =>
      enabled()
        .filter((tool) => !isUsable(tool))
        .map((tool) => ({ name: tool.name, reason: reasonOf(tool) })),
    find(name: string): FoundTool {
      const all = enabled();
      const meant = meantBy(name, all);
      if (meant === undefined) return { kind: 'unknown', reason: unknownName(name, all) };
      if (!isUsable(meant.tool)) {
        return {
          kind: 'unknown',
          reason: `${meant.tool.name} cannot be used: ${reasonOf(meant.tool)}`,
        };
      }
      return { kind: 'found', ...listed(meant.tool), implied: meant.implied };
    },
  };
}

const isUsable = (tool: Tool) => tool.isAvailable?.() ?? true;
const reasonOf = (tool: Tool) => tool.unavailableBecause?.() ?? 'something it needs is missing';

function specOf(tool: Tool): OfferedTool {
  const { $schema: _, ...schema } = tool.schema ?? z.toJSONSchema(tool.input, { io: 'input' });
  return sized({ name: tool.name, description: tool.description, schema });
}

type Meant = { readonly tool: Tool; readonly implied: Readonly<Record<string, unknown>> };

/**
 * Also finds a name with a name space (`functions.read_file`), other spellings and common aliases.
 */
function meantBy(name: string, tools: readonly Tool[]): Meant | undefined {
  const plain = plainName(name);
  const byName =
    tools.find((tool) => tool.name === name) ??
    tools.find((tool) => plain !== '' && plainName(tool.name) === plain);
  if (byName !== undefined) return { tool: byName, implied: NOTHING_IMPLIED };
  for (const tool of tools) {
    const alias = tool.aliases?.find((each) => plainName(nameOf(each)) === plain);
    if (alias === undefined) continue;
    return { tool, implied: typeof alias === 'string' ? NOTHING_IMPLIED : alias.implies };
  }
  return undefined;
}

const nameOf = (alias: NonNullable<Tool['aliases']>[number]) =>
  typeof alias === 'string' ? alias : alias.name;

const plainName = (name: string) =>
  (name.split(/[.:/]/).at(-1) ?? '').toLowerCase().replace(/[^a-z0-9]/g, '');

function unknownName(name: string, tools: readonly Tool[]): string {
  const names = tools.filter(isUsable).map((tool) => tool.name);
  const near = nearestName(name, names);
  const hint = near === undefined ? '' : ` Did you mean ${near}?`;
  return `there is no tool with this name.${hint} Tools: ${names.join(', ')}.`;
}

// Runs a tool until it ends, its time is up or the turn is stopped; a tool that ignores its signal
// is abandoned, so that it never blocks the turn.

/** @throws ToolError timeout, cancelled, or what the work throws */
async function runWithDeadline<T>(
  work: (signal: AbortSignal) => Promise<T>,
  options: { readonly signal: AbortSignal; readonly timeoutMs: number; readonly clock: Clock },
): Promise<T> {
  const { signal, timeoutMs: ms, clock } = options;
  if (signal.aborted) throw cancelled();
  const late = () => (signal.aborted ? cancelled() : timedOut(ms));
  return within({ clock, ms, signal }, work, late);
}

const cancelled = () => new ToolError('cancelled', 'the turn was stopped');
const timedOut = (timeoutMs: number) =>
  new ToolError('timeout', `the tool did not end within ${timeoutMs / 1000} s`);

// A tool's failure as a sentence for the model: what kind, what happened. Unexpected failures are
// described in general terms; their details belong in the log.

export type ToolFailure = {
  readonly kind: ToolFailureKind;
  /** What happened, without the kind. */
  readonly message: string;
  readonly text: string;
  readonly isExpected: boolean;
  /** The error is temporary: the same call may work a moment later. */
  readonly isTransient: boolean;
};

const KIND_BY_REASON: Readonly<Record<GuardReason, ToolFailureKind>> = {
  malformed: 'invalid_arguments',
  outside: 'blocked',
  protected: 'blocked',
  link: 'blocked',
  hard_link: 'blocked',
  not_found: 'not_found',
  not_a_file: 'invalid_arguments',
  not_a_folder: 'invalid_arguments',
  too_large: 'execution',
  no_permission: 'permission',
  no_space: 'execution',
};

const KIND_BY_FETCH: Readonly<Record<SafeFetchReason, ToolFailureKind>> = {
  bad_url: 'invalid_arguments',
  scheme: 'blocked',
  credentials: 'blocked',
  port: 'blocked',
  private_address: 'blocked',
  not_found: 'not_found',
  redirects: 'execution',
  too_large: 'execution',
  timeout: 'timeout',
  unreachable: 'execution',
  unreadable: 'execution',
};

const TRANSIENT: readonly SafeFetchReason[] = ['timeout', 'unreachable'];

export function describeFailure(error: unknown): ToolFailure {
  if (error instanceof ToolError) {
    const message = [error.message, ...(error.output === undefined ? [] : [error.output])];
    return { ...failureOf(error.kind, message.join('\n')), isTransient: error.isTransient };
  }
  if (error instanceof GuardedFileError)
    return failureOf(KIND_BY_REASON[error.reason], error.message);
  if (error instanceof SafeFetchError) {
    const isTransient = TRANSIENT.includes(error.reason);
    return { ...failureOf(KIND_BY_FETCH[error.reason], error.message), isTransient };
  }
  if (error instanceof RequestError) return failureOf('invalid_arguments', error.message);
  if (error instanceof NanobotError) return failureOf('execution', error.message);
  const text = 'the tool failed; another try may fail too';
  return { ...failureOf('execution', text), isExpected: false };
}

/** In plain words: a model that does not understand a refusal tries again. */
const REFUSALS: readonly ToolFailureKind[] = ['permission', 'blocked'];

export function failureOf(kind: ToolFailureKind, message: string): ToolFailure {
  return {
    kind,
    message,
    text: `${REFUSALS.includes(kind) ? 'Permission denied' : `Error (${kind})`}: ${message}`,
    isExpected: true,
    isTransient: false,
  };
}
