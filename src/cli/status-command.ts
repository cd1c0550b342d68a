// `nanobot status`: what is there and what runs, at a glance, asking nobody outside this machine.

import { Command } from 'commander';
import { z } from 'zod';
import { type ReportedTooling, toolServerLine } from '../features/mcp/tooling.ts';
import { budgetCap, TOTAL } from '../features/spending/rules/budget-limits.ts';
import { budgetLine } from '../features/spending/rules/budget-words.ts';
import type { StoredLedger } from '../features/spending/spending-day.ts';
import type { HomeHolder } from '../kernel/bus/store/home-lock.ts';
import type { Config } from '../kernel/config/config.ts';
import type { RunningGateway } from '../kernel/running-gateway.ts';
import { silentLogger } from '../lib/logger.ts';
import { createDayText } from '../lib/time/zone-time.ts';
import { channelLine } from './channel-lines.ts';
import { holderText } from './explain-error.ts';
import { spanText } from './flag-values.ts';
import { type Terminal, textTable } from './terminal.ts';

/** What is read of `/api/status`. */
const statusSchema = z.object({ model: z.string() });

type Report = Awaited<ReturnType<typeof makeReport>>;

export function statusCommand(terminal: Terminal): Command {
  return new Command('status')
    .description('what is set up and what runs')
    .option('--json', 'as JSON')
    .action(async ({ json }: { readonly json?: boolean }) => {
      const report = await makeReport(terminal);
      if (json === true) return terminal.printJson(report);
      for (const line of textTable(reportRows(report, terminal.clock.now()))) terminal.tell(line);
    });
}

/** What is not known is undefined, and left out of its JSON. */
async function makeReport(terminal: Terminal) {
  const { configInForce } = await import('../kernel/config/files/config-file.ts');
  const { problemLines } = await import('../kernel/config/issues.ts');
  const { findRunningGateway } = await import('../kernel/running-gateway.ts');
  const { reportChannels } = await import('./channel-lines.ts');
  const { reportTooling } = await import('../features/mcp/tooling.ts');
  const { home, env } = terminal;
  const running = await findRunningGateway(home);
  const { findHomeHolder } = await import('../kernel/bus/store/home-lock.ts');
  const heldBy = running === undefined ? await findHomeHolder(home.lock) : undefined;
  const { config, problems } = await configInForce(home, env, running !== undefined);
  return {
    home: home.root,
    /** What is wrong with its file. */
    configuration: problems.length === 0 ? undefined : problemLines(problems),
    gateway: running !== undefined && gatewayOf(running),
    /** Who holds the home where no gateway is seen. */
    heldBy,
    model: await modelInForce(terminal, config, running),
    workspace: config.agents.defaults.workspace,
    channels: await reportChannels(config, running),
    tooling: await reportTooling(running, config.gateway.token),
    ...(await storedCounts(terminal, config)),
  };
}

const gatewayOf = ({ pid, address, startedAt }: RunningGateway) => ({ pid, address, startedAt });

/** The running gateway's own word counts: its environment may hold other keys than this one. */
async function modelInForce(
  { env }: Terminal,
  config: Config,
  running: RunningGateway | undefined,
): Promise<string> {
  const { askGateway } = await import('../kernel/running-gateway.ts');
  const { findDefaultModel } = await import('../providers/credentials.ts');
  if (running !== undefined) {
    const said = statusSchema.safeParse(
      await askGateway(running, '/api/status', config.gateway.token),
    );
    if (said.success) return said.data.model;
  }
  return findDefaultModel(config, env);
}

/** What the store counts: messages by their state, and what was spent today. */
async function storedCounts({ home, clock }: Terminal, config: Config) {
  const { hasState, openStore } = await import('../kernel/home-state.ts');
  if (!hasState(home)) return { messages: undefined, spentToday: undefined };
  const { SPENDING_SCOPE, storedDays } = await import('../features/spending/spending-day.ts');
  const today = createDayText()(clock.now(), config.sessions.timeZone);
  const store = await openStore(home, { clock, log: silentLogger });
  try {
    const { pending, running, outboundQueued, dead, unknown } = await store.stats();
    const [stored] = await storedDays(store.scope(SPENDING_SCOPE), today);
    const total = stored?.rows.find(({ key }) => key === TOTAL);
    return {
      messages: { pending, running, outboundQueued, dead, unknown },
      spentToday: total === undefined ? 'nothing spent on models' : spentText(total, config),
    };
  } finally {
    await store[Symbol.asyncDispose]();
  }
}

const spentText = (total: StoredLedger, { limits }: Config) =>
  budgetLine({ ...total, cap: budgetCap(total.names, limits) }, limits.budget.currency);

function reportRows(report: Report, now: number): readonly (readonly string[])[] {
  const { messages } = report;
  return [
    ['home', report.home],
    ...configurationRows(report),
    ['gateway', gatewayText(report, now)],
    ['model', report.model],
    ['workspace', report.workspace],
    ...report.channels.map((channel) => [channel.name, channelLine(channel, now)]),
    ...toolRows(report.tooling, now),
    ...(messages === undefined ? [] : [['messages', countsText(messages)]]),
    ...(report.spentToday === undefined ? [] : [['today', report.spentToday]]),
  ];
}

function configurationRows({ configuration = [] }: Report) {
  if (configuration.length === 0) return [];
  const what = 'config.json cannot be used; the gateway keeps the configuration before it:';
  return [['configuration', what], ...configuration.map((line) => ['', line])];
}

function toolRows(tooling: ReportedTooling | undefined, now: number) {
  if (tooling === undefined) return [];
  const { servers, missing } = tooling;
  return [
    ...servers.map((server) => [`mcp ${server.name}`, toolServerLine(server, now)]),
    ...missing.map(({ name, reason }) => [name, `left out: ${reason}`]),
  ];
}

function gatewayText({ gateway, heldBy }: Report, now: number): string {
  if (gateway === false) {
    return heldBy === undefined ? 'does not run; start it with: nanobot gateway' : heldText(heldBy);
  }
  const where = gateway.address === undefined ? '' : ` at ${gateway.address}`;
  return `process ${gateway.pid}${where}, up ${spanText(now - gateway.startedAt)}`;
}

function heldText(holder: HomeHolder): string {
  return `cannot be seen from here: the home is held by ${holderText(holder)}, in another container or on another machine, or still starting`;
}

function countsText(counts: NonNullable<Report['messages']>): string {
  const aside = counts.dead + counts.unknown;
  const more = aside === 0 ? '' : `, ${aside} set aside (nanobot dead list)`;
  return `${counts.pending} waiting, ${counts.running} being answered, ${counts.outboundQueued} to send${more}`;
}
