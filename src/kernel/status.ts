// The status of the gateway: features contribute sources, and /status, `nanobot status`,
// /api/status and the page show their lines.

import { basename } from 'node:path';
import { inTime } from '../lib/async.ts';
import { t } from '../lib/texts.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { MessageBus } from './bus/bus.ts';
import type { NodeReport } from './bus/store/shared.ts';
import type { EmbeddedStore } from './bus/store/store.ts';
import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from './commands/command-access.ts';
import { type Home, programVersion } from './config/files/home.ts';
import type { LiveConfig } from './config/files/live-config.ts';
import { problemLines } from './config/issues.ts';
import { verbatim } from './message/untrusted.ts';
import type { SessionSettingsStore } from './turns/origins.ts';

const MAX_SOURCE_MS = 2000;

export interface StatusSource {
  /**
   * Each as `Label: text`.
   *
   * @param origin who asks in which conversation; undefined: the machine's owner, about the gateway
   * as a whole
   */
  lines?(origin: CommandOrigin | undefined): readonly string[] | Promise<readonly string[]>;
  /** The fields of /api/status beside the lines. */
  fields?(): object;
}

/** The body of /api/status. */
export async function statusReport(
  sources: readonly StatusSource[],
  clock: Clock,
): Promise<object> {
  const fields = sources.map((source) => source.fields?.());
  return Object.assign({}, ...fields, { lines: await linesOf(sources, undefined, clock) });
}

/**
 * Late answers, e.g. because the disk delays the store, are left out: the others must be visible
 * then.
 */
async function linesOf(
  sources: readonly StatusSource[],
  origin: CommandOrigin | undefined,
  clock: Clock,
) {
  const lines = sources.map(async (source) => {
    const said = Promise.resolve(source.lines?.(origin) ?? []);
    const inTimeSaid = await inTime(clock, MAX_SOURCE_MS, said);
    return inTimeSaid === 'late' ? [] : inTimeSaid;
  });
  return (await Promise.all(lines)).flat();
}

export const STATUS_COMMANDS = {
  status: {
    summary: t`show the status`,
    access: { direct: 'trusted', group: 'trusted' },
    timing: 'immediate',
  },
} satisfies CommandTable;

export function statusCommands(
  sources: () => readonly StatusSource[],
  clock: Clock,
): readonly Command[] {
  return commandsOf(STATUS_COMMANDS, {
    status: async (origin) =>
      (await linesOf(sources(), origin, clock)).map((line) => `- ${line}`).join('\n'),
  });
}

// The kernel's own status.

type KernelStatusDeps = {
  readonly home: Home;
  readonly live: LiveConfig;
  readonly bus: Pick<MessageBus, 'stats'>;
  readonly store: Pick<EmbeddedStore, 'waitMs' | 'nodes'>;
  readonly settings: SessionSettingsStore;
};

export function kernelStatus({ home, live, bus, store, settings }: KernelStatusDeps): StatusSource {
  const version = programVersion();
  return {
    async lines(origin) {
      const conversation = origin === undefined ? [] : [t`Conversation: ${origin.session}`];
      const { queueMode = live.config.queue.mode } =
        origin === undefined ? {} : await settings.get(origin.session);
      return [
        ...conversation,
        t`Messages: ${countsText(await bus.stats())}`,
        t`Messages during an answer: ${queueMode}`,
        ...nodeLines((await store.nodes?.()) ?? []),
        ...configurationLines(live),
        ...(await recoveryLines(home)),
      ];
    },
    /** How long the disk has been delaying a write of the store. */
    fields: () => ({ version, storeWaitMs: Math.round(store.waitMs()) }),
  };
}

/** A process is silent for a second between two signs of life. */
const SILENT_MS = 2500;

/** One line for each process: what it does, and what it leads. */
export function nodeLines(nodes: readonly NodeReport[]): readonly string[] {
  const configs = new Set(nodes.map(({ config }) => config));
  const differ = configs.size < 2 ? [] : [t`Processes: their configurations differ`];
  return [...nodes.map((node) => `${t`Process`} ${node.name}: ${nodeText(node)}`), ...differ];
}

export function nodeText(node: NodeReport): string {
  const { role, turns, isDraining, silentMs, leads } = node;
  const accounts = leads.filter((resource) => !resource.includes(' '));
  return [
    role,
    t`${turns} turns`,
    ...(isDraining ? [t`ending`] : []),
    ...(silentMs > SILENT_MS ? [t`silent for ${Math.round(silentMs / 1000)} s`] : []),
    ...(accounts.length === 0 ? [] : [t`leads ${accounts.join(', ')}`]),
  ].join(', ');
}

/** Until the owner has read the report and moved it away; names alone, for chats. */
async function recoveryLines({ state }: Home): Promise<readonly string[]> {
  const { recoveryReports } = await import('./recovery.ts');
  return (await recoveryReports(state)).map(
    (report) => t`Recovery: state.db was damaged and has been rebuilt: ${basename(report)}`,
  );
}

/** While the configuration file is invalid. */
function configurationLines(live: LiveConfig): readonly string[] {
  const { problems } = live;
  if (problems.length === 0) return [];
  const words = problemLines(problems).map((line) => verbatim(live.redact(line)));
  const what = t`config.json is not valid; the previous configuration stays in use`;
  return [t`Configuration: ${what}: ${words.join(', ')}`];
}

type Counts = Pick<
  Awaited<ReturnType<MessageBus['stats']>>,
  'pending' | 'running' | 'outboundQueued' | 'dead' | 'unknown'
>;

export function countsText({ pending, running, outboundQueued, dead, unknown }: Counts): string {
  const aside = dead + unknown;
  const more = aside === 0 ? '' : t`, ${aside} set aside (nanobot dead list)`;
  return t`${pending} waiting, ${running} being answered, ${outboundQueued} to send${more}`;
}
