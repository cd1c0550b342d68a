// A tool of a server as a tool of the agent. Only the configuration decides about its access and
// whether its results are untrusted (case X05); its description comes from the server, is bounded,
// and is marked as such.

import { hash } from 'node:crypto';
import type { MediaStore } from '../../kernel/media/media.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { neutralLines, verbatim } from '../../kernel/message/untrusted.ts';
import { argumentLines, shownText } from '../../kernel/questions/rules/question-text.ts';
import { headOf, matchesWildcard, shortened } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { Provenance } from '../../tools/files/provenance.ts';
import type { Tool } from '../../tools/tool.ts';
import type { CallOptions, RemoteToolSpec } from './connection.ts';
import { remoteSchema } from './remote-schema.ts';
import { type ReadResult, readResult } from './result.ts';
import type { ToolServerConfig } from './settings.ts';

type CallToolResult = Parameters<typeof readResult>[0];
type Input = Readonly<Record<string, unknown>>;

type RemoteToolDeps = {
  readonly server: string;
  readonly config: ToolServerConfig;
  readonly media: Pick<MediaStore, 'put'>;
  /** Descriptions go into the prompt: a server may repeat a secret it was given. */
  redact(text: string): string;
  readonly own: Pick<Provenance, 'running'>;
  isAvailable(): boolean;
  unavailableBecause(): string;
  /** @throws ToolError */
  call(tool: string, input: Input, options: CallOptions): Promise<CallToolResult>;
};

export type RemoteTools = {
  readonly tools: readonly Tool[];
  /** Keeps the same tools where nothing about them changed, so that the prompt stays the same. */
  next(found: readonly RemoteToolSpec[]): RemoteTools;
};

const MAX_DESCRIPTION_CHARS = 1200;
const MAX_DETAIL_CHARS = 120;

export function createRemoteTools(
  deps: RemoteToolDeps,
  found: readonly RemoteToolSpec[] = [],
  known: ReadonlyMap<string, Tool<Input>> = new Map(),
): RemoteTools {
  const { enabledTools, disabledTools } = deps.config;
  const wanted = found.filter(
    ({ name }) =>
      isMeant(enabledTools, name) && !isMeant(disabledTools, name) && deps.redact(name) === name,
  );
  const names = toolNames(
    deps.server,
    wanted.map(({ name }) => name),
  );
  const byFingerprint = new Map(
    wanted.map((foreign) => {
      const name = names.get(foreign.name) ?? foreign.name;
      const print = fingerprintOf(name, foreign);
      return [print, known.get(print) ?? toolOf(deps, name, foreign)] as const;
    }),
  );
  const tools = [...byFingerprint.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
  return {
    tools,
    next: (others) => createRemoteTools(deps, others, byFingerprint),
  };
}

const fingerprintOf = (name: string, foreign: RemoteToolSpec) =>
  hash('sha256', JSON.stringify([name, foreign]));

function toolOf(deps: RemoteToolDeps, name: string, foreign: RemoteToolSpec): Tool<Input> {
  const { config, server } = deps;
  const { shown, input, isLeftOut } = remoteSchema(foreign.schema, deps.redact);
  const note = isLeftOut ? ' The description of its arguments is too long to show.' : '';
  const words = deps.redact(neutralLines(foreign.description).join('\n').trim());
  const timeoutMs = config.timeoutSecs * 1000;
  return {
    name,
    description: `Tool of the server "${server}", which says of it:${note} ${bounded(words)}`,
    access: accessOf(config, foreign.name),
    ...(config.taints ? { taints: true } : {}),
    ...approvalOf(deps, foreign),
    input,
    schema: shown,
    isAvailable: () => deps.isAvailable(),
    unavailableBecause: () => deps.unavailableBecause(),
    timeoutMs: () => timeoutMs,
    requestOf: (given) => ({
      sentence: t`Use ${verbatim(shownText(foreign.name))} of the tool server ${verbatim(server)}${hintOf(foreign)}?`,
      ...(Object.keys(given).length === 0 ? {} : { text: argumentLines(JSON.stringify(given)) }),
    }),
    describe: (given) => headOf(JSON.stringify(given), MAX_DETAIL_CHARS),
    async run(given, context) {
      const options = { signal: context.signal, timeoutMs };
      const call = () => deps.call(foreign.name, given, options);
      // A program on this machine may write untrusted content into the workspace.
      const isHere = config.command !== '';
      const result = isHere ? await deps.own.running(call, context, config.taints) : await call();
      const read = await readResult(result, deps.media);
      return toldBy({ ...read, text: deps.redact(read.text) }, context.show);
    },
  };
}

/** Said as the server's own word: whether an owner is asked, the configuration alone decides. */
function hintOf({ annotations }: RemoteToolSpec): string {
  if (annotations?.readOnlyHint === true) return ', which calls it read-only';
  return annotations?.destructiveHint === true ? ', which calls it destructive' : '';
}

/** A rule holds for the tool, whatever it is given, while it is that of the same server. */
function approvalOf(
  { config, server }: RemoteToolDeps,
  { name }: RemoteToolSpec,
): Pick<Tool<Input>, 'alwaysAsks' | 'reachOf' | 'standing'> {
  const { trust, command, args, url } = config;
  switch (trust) {
    case 'always_ask':
      return { alwaysAsks: true };
    case 'read_only':
      return { reachOf: () => 'machine' };
    case 'ask_once': {
      const pattern = JSON.stringify(['tool', server, name, command, args, url]);
      return { standing: () => ({ pattern, scope: `${name} of ${server}`, asksOnce: true }) };
    }
  }
}

function accessOf({ access, toolAccess }: ToolServerConfig, tool: string): Tool['access'] {
  return Object.hasOwn(toolAccess, tool) ? (toolAccess[tool] ?? access) : access;
}

function bounded(words: string): string {
  return shortened(words, MAX_DESCRIPTION_CHARS, ' [...]');
}

function toldBy({ text, images, isError }: ReadResult, show: Parameters<Tool['run']>[1]['show']) {
  if (isError) throw new ToolError('execution', text);
  for (const image of images) show?.(image);
  return text;
}

// Names of server tools: `mcp_<server>_<tool>`, within the limits of model vendors (letters,
// digits, `_` and `-`, 64 characters), each unique.

const MAX_CHARS = 64;
const HASH_CHARS = 8;

/** By the server's own name of each tool; the name does not depend on the other tools. */
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
  const short = hash('sha256', `${server}\0${tool}`).slice(0, HASH_CHARS);
  return `${name.slice(0, MAX_CHARS - HASH_CHARS - 1)}_${short}`;
}

/** Whether a pattern of the configuration matches a tool; `*` stands for any text. */
export const isMeant = (patterns: readonly string[], tool: string): boolean =>
  patterns.some((pattern) => matchesWildcard(tool, pattern));
