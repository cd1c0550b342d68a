// The command `nanobot status`: the report of the running gateway. Without one: the configuration
// and the counts of the store, without a request to other machines.

import { existsSync } from 'node:fs';
import { Command } from 'commander';
import { z } from 'zod';
import { channelLine } from '../channels/channel-lines.ts';
import { budgetCap, budgetLine, TOTAL } from '../features/spending/rules/budget-limits.ts';
import type { StoredLedger } from '../features/spending/spending-day.ts';
import type { HomeHolder } from '../kernel/bus/store/home-lock.ts';
import { StoreError } from '../kernel/bus/store/store.ts';
import type { Config } from '../kernel/config/config.ts';
import type { Home } from '../kernel/config/files/home.ts';
import type { RunningGateway } from '../kernel/home-state.ts';
import { countsText } from '../kernel/status.ts';
import { silentLogger } from '../lib/logger.ts';
import { t } from '../lib/texts.ts';
import { createDayText } from '../lib/time/zone-time.ts';
import { holderText } from './explain-error.ts';
import { spanText } from './flag-values.ts';
import { type Terminal, textTable } from './terminal.ts';

/** The part of the response of `GET /api/status` that is used. */
const statusSchema = z.object({ model: z.string(), lines: z.array(z.string()) });

type Report = Awaited<ReturnType<typeof makeReport>>;

export function statusCommand(terminal: Terminal): Command {
  return new Command('status')
    .description(t`show what is set up and what is running`)
    .option('--json', t`print as JSON`)
    .action(async ({ json }: { readonly json?: boolean }) => {
      const report = await makeReport(terminal);
      if (json === true) return terminal.printJson({ ...report, lines: undefined });
      for (const line of textTable(reportRows(report, terminal.clock.now()))) terminal.tell(line);
    });
}

/** Unknown values are undefined and left out of the JSON. */
async function makeReport(terminal: Terminal) {
  const { configInForce } = await import('../kernel/config/files/config-file.ts');
  const { problemLines } = await import('../kernel/config/issues.ts');
  const { askGateway, findRunningGateway } = await import('../kernel/home-state.ts');
  const { findHomeHolder } = await import('../kernel/bus/store/home-lock.ts');
  const { findDefaultModel } = await import('../providers/credentials.ts');
  const { channelsSchema, reportChannels } = await import('../channels/channel-lines.ts');
  const { toolingIn } = await import('../features/mcp/tooling.ts');
  const { home, env } = terminal;
  const running = await findRunningGateway(home);
  const heldBy = running === undefined ? await findHomeHolder(home.lock) : undefined;
  const { config, problems } = await configInForce(home, env, running !== undefined);
  const said = running && (await askGateway(running, '/api/status', config.gateway.token));
  // The gateway's environment may hold other keys than this one.
  const status = statusSchema.safeParse(said).data;
  return {
    home: home.root,
    /** The problems of its file. */
    configuration: problems.length === 0 ? undefined : problemLines(problems),
    gateway: running !== undefined && gatewayOf(running),
    /** Why none starts here. */
    unusable: running === undefined ? await unusableText(home) : undefined,
    /** The process that holds the home where no gateway is found. */
    heldBy,
    model: status?.model ?? (await findDefaultModel(config, env)),
    workspace: config.agents.defaults.workspace,
    // Readiness is known without the store.
    channels:
      channelsSchema.safeParse(said).data?.channels ?? (await reportChannels(config, running)),
    tooling: toolingIn(said),
    ...(await storedCounts(terminal, config)),
    /** As the gateway says it; undefined where none answers. */
    lines: status?.lines,
  };
}

async function unusableText(home: Home): Promise<string | undefined> {
  if (!existsSync(home.instance) && !existsSync(home.restoring)) return undefined;
  const { findUnusable } = await import('../kernel/instance.ts');
  const found = await findUnusable(home);
  return found && `${found.text}. ${found.remedy}`;
}

const gatewayOf = ({ pid, address, startedAt }: RunningGateway) => ({ pid, address, startedAt });

const NOTHING_COUNTED = { messages: undefined, spentToday: undefined, database: undefined };

/** What the store counts: messages by their state, and what was spent today. */
async function storedCounts({ home, clock }: Terminal, config: Config) {
  const { hasState, openStore } = await import('../kernel/home-state.ts');
  if (!(await hasState(home))) return NOTHING_COUNTED;
  const { SPENDING_SCOPE, storedDays } = await import('../features/spending/spending-day.ts');
  const today = createDayText()(clock.now(), config.sessions.timeZone);
  const store = await openStore(home, {
    ...{ clock, log: silentLogger, setting: config.store },
  }).catch((error: unknown) => {
    if (error instanceof StoreError && error.code === 'store_unreachable') return error.message;
    throw error;
  });
  if (typeof store === 'string') return { ...NOTHING_COUNTED, database: store };
  await using _opened = store;
  const { pending, running, outboundQueued, dead, unknown } = await store.stats();
  const [stored] = await storedDays(store.scope(SPENDING_SCOPE), today);
  const total = stored?.rows.find(({ key }) => key === TOTAL);
  return {
    /** Why it is not reachable. */
    database: undefined,
    messages: { pending, running, outboundQueued, dead, unknown },
    spentToday: total === undefined ? t`nothing spent` : spentText(total, config),
  };
}

const spentText = (total: StoredLedger, { limits }: Config) =>
  budgetLine({ ...total, cap: budgetCap(total.names, limits) }, limits.budget.currency);

function reportRows(report: Report, now: number): readonly (readonly string[])[] {
  const lines = report.lines ?? linesWithoutGateway(report, now);
  return [
    [t`Home`, report.home],
    [t`Gateway`, gatewayText(report, now)],
    [t`Workspace`, report.workspace],
    ...(report.database === undefined ? [] : [[t`Database`, report.database]]),
    ...lines.map(rowOf),
  ];
}

/** `Label: text` in two columns. */
function rowOf(line: string): readonly string[] {
  const at = line.indexOf(': ');
  return at === -1 ? ['', line] : [line.slice(0, at), line.slice(at + 2)];
}

/** The configuration, and what the store counts. */
function linesWithoutGateway(report: Report, now: number): readonly string[] {
  const { model, channels, messages, spentToday } = report;
  return [
    ...(messages === undefined ? [] : [t`Messages: ${countsText(messages)}`]),
    t`Model: ${model}`,
    ...(spentToday === undefined ? [] : [t`Today: ${spentToday}`]),
    ...channels.map((channel) => `${channel.name}: ${channelLine(channel, now)}`),
  ];
}

function gatewayText({ gateway, heldBy, unusable }: Report, now: number): string {
  if (gateway === false) {
    if (unusable !== undefined) return t`does not start: ${unusable}`;
    return heldBy === undefined ? t`not running. Start it: nanobot gateway` : heldText(heldBy);
  }
  const where = gateway.address === undefined ? '' : t` at ${gateway.address}`;
  return t`process ${gateway.pid}${where}, up ${spanText(now - gateway.startedAt)}`;
}

function heldText(holder: HomeHolder): string {
  return t`cannot reach it from here: ${holderText(holder)} uses this home. It may be starting, or run in another container or on another machine.`;
}
