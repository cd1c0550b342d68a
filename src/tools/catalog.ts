// The tools by name, with aliases and suggestions, and the texts of failures shown to the model.

import { z } from 'zod';
import { sized } from '../agent/rules/tool-room.ts';
import { NanobotError, ToolError, type ToolFailureKind } from '../kernel/message/errors.ts';
import { within } from '../lib/async.ts';
import { GuardedFileError, type GuardReason } from '../lib/files/guarded-path.ts';
import { SafeFetchError, type SafeFetchReason } from '../lib/net/checked-address.ts';
import { nearestName } from '../lib/text/nearest.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { MissingTool, OfferedTool, Tool } from './tool.ts';

export type CatalogDeps = {
  /** In a stable order: the prompt cache of the model holds as long as nothing changes. */
  readonly tools: () => readonly Tool[];
  readonly settings: () => { readonly disabled: readonly string[] };
};

export type Listed = { readonly tool: Tool; readonly spec: OfferedTool };

export type FoundTool =
  | (Listed & {
      readonly kind: 'found';
      /** Arguments that the name stands for. */
      readonly implied: Readonly<Record<string, unknown>>;
    })
  | { readonly kind: 'unknown'; readonly reason: string };

const NOTHING_IMPLIED = {};

export function createCatalog({ tools, settings }: CatalogDeps) {
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
    /** What is switched on and can work. */
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
const reasonOf = (tool: Tool) => tool.unavailableBecause?.() ?? 'what it needs is missing';

function specOf(tool: Tool): OfferedTool {
  const { $schema: _, ...schema } = tool.schema ?? z.toJSONSchema(tool.input, { io: 'input' });
  return sized({ name: tool.name, description: tool.description, schema });
}

type Meant = { readonly tool: Tool; readonly implied: Readonly<Record<string, unknown>> };

/** Also under a name space (`functions.read_file`), other spellings and the usual other names. */
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
  return `there is no tool of this name.${hint} Tools: ${names.join(', ')}.`;
}

// Runs a tool until it ends, its time is up or the turn is stopped; a tool that does not listen to
// its signal is left behind, it never holds the turn.

/** @throws ToolError timeout, cancelled, or what the work throws */
export async function runWithDeadline<T>(
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

// A tool's failure as the sentence the model reads: what kind, what happened. Failures nobody
// expected are told in general words; their details belong in the log.

export type ToolFailure = {
  readonly kind: ToolFailureKind;
  /** What happened, without the kind. */
  readonly message: string;
  readonly text: string;
  readonly isExpected: boolean;
  /** It came on the way: the same call may work a moment later. */
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
  if (error instanceof NanobotError) return failureOf('execution', error.message);
  const text = 'the tool failed for a reason of its own; another try may fail as well';
  return { ...failureOf('execution', text), isExpected: false };
}

export function failureOf(kind: ToolFailureKind, message: string): ToolFailure {
  return {
    kind,
    message,
    text: `Error (${kind}): ${message}`,
    isExpected: true,
    isTransient: false,
  };
}
