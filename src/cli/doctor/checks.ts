// The list of the doctor's checks; those of record files, the listening address and the sandbox.

import { constants, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { configuredAccounts } from '../../channels/index.ts';
import type { Config } from '../../kernel/config/config.ts';
import { configInForce, type LoadedConfig } from '../../kernel/config/files/config-file.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import {
  findRunningGateway,
  hasState,
  type OpenedState,
  withOpenState,
} from '../../kernel/home-state.ts';
import { accountOf } from '../../kernel/message/ids.ts';
import { verifyChains } from '../../kernel/observe/build-telemetry.ts';
import { isPermitted } from '../../lib/files/files.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import { t } from '../../lib/texts.ts';
import { findSandbox, thisSystem } from '../../tools/exec/find-sandbox.ts';
import { explainError } from '../explain-error.ts';
import { type Finding, fail, type Machine, ok, warn } from './machine-checks.ts';

// All checks, in the order in which they are shown. Needs no terminal.

const NOT_CHECKED = t`Not checked. Fix this first, then run "nanobot doctor" again.`;

/** @param isLive also sends a test request to the model and to the voice servers */
export async function examine(machine: Machine, isLive: boolean): Promise<readonly Finding[]> {
  await using stack = new AsyncDisposableStack();
  return await look(machine, isLive, stack);
}

/** The configuration, the store and the gateway first: without a valid configuration nothing else. */
async function look(
  machine: Machine,
  isLive: boolean,
  stack: AsyncDisposableStack,
): Promise<readonly Finding[]> {
  const local = await import('./machine-checks.ts');
  const gateway = await import('./gateway-checks.ts');
  const service = await import('../service/service.ts');
  const { home } = machine;
  const failed = (check: string) => (error: unknown) => [notChecked(machine, check, error)];
  const { findings, loaded } = await gateway.checkConfigFile(machine);
  // Before the store is opened, which migrates it.
  const files = await local.checkFiles(machine).catch(failed('files'));
  const isOlder = files.some(({ check }) => check === 'schema');
  const store = isOlder
    ? { findings: [], state: undefined }
    : await gateway
        .checkState(machine, stack)
        .catch((error: unknown) => ({ findings: failed('store')(error), state: undefined }));
  // A gateway that runs goes on with the last valid configuration.
  const inForce = loaded ?? (await configInForce(home, machine.env, true).catch(() => undefined));
  const token = inForce?.config.gateway.token ?? '';
  const base = [
    local.checkNode(process.versions.node),
    ...(await local.checkPermissions(machine)),
    ...(await local.checkHome(home)),
    await local.checkDisk(home),
    ...findings,
    ...files,
    ...store.findings,
    ...(await gateway.checkGateway(machine, token).catch(failed('gateway'))),
    ...(await service.checkService(machine).catch(failed('service'))),
  ];
  if (loaded === undefined) return base;
  const found = await Promise.all(
    (await loadedChecks(machine, loaded, store.state, isLive)).map(async ([name, check]) => {
      try {
        return await check();
      } catch (error) {
        return failed(name)(error);
      }
    }),
  );
  return [...base, ...found.flat()];
}

function notChecked({ env, home }: Machine, check: string, error: unknown): Finding {
  const [text = ''] = explainError(error, env, home);
  return fail(check, text.replace(/^nanobot: /, ''), NOT_CHECKED);
}

type Check = () => Finding | readonly Finding[] | Promise<Finding | readonly Finding[]>;

async function loadedChecks(
  machine: Machine,
  loaded: LoadedConfig,
  state: OpenedState | undefined,
  isLive: boolean,
): Promise<readonly (readonly [name: string, check: Check])[]> {
  const local = await import('./machine-checks.ts');
  const gateway = await import('./gateway-checks.ts');
  const remote = await import('./remote-checks.ts');
  const prices = await import('../../features/spending/doctor.ts');
  const voice = await import('../../features/voice/doctor.ts');
  const tools = await import('../../features/mcp/doctor.ts');
  const skills = await import('../../features/skills/doctor.ts');
  const memory = await import('../../features/memory/doctor.ts');
  const updates = await import('../../features/update/index.ts');
  const meaning = await import('../../features/semantic-search/embeddings.ts');
  const whatsapp = await import('../../channels/whatsapp/doctor.ts');
  const { config } = loaded;
  const { workspace } = config.agents.defaults;
  const { home, env, clock } = machine;
  // Whom the owner let in is in it.
  const isUnread = state === undefined && (await hasState(home));
  return [
    ['time-zone', () => local.checkTimeZone(machine, config.sessions.timeZone)],
    ['folders', () => local.checkFolders(machine, workspace)],
    ['address', () => checkAddress(machine, config)],
    ['secrets', () => gateway.checkSecrets(loaded)],
    ['web', () => gateway.checkWeb(config)],
    ['accounts', () => checkAccounts(home, config, state)],
    ['access', () => (isUnread ? [] : gateway.checkAccess(config, state))],
    ['approvals', async () => [await gateway.checkApprovals(config, state)]],
    ['drafts', () => checkDrafts(machine, config, state)],
    ['whatsapp', () => whatsapp.checkWhatsAppLink(config, state, clock.now())],
    ['proxy', () => remote.checkProxies(config, env)],
    ['model', () => remote.checkModel(machine, config, isLive)],
    ['model', () => remote.checkOtherModels(machine, config)],
    ['prices', () => prices.checkPrices(machine, config)],
    ['telegram', () => remote.checkTelegram(config)],
    ['lark', () => remote.checkLark(config)],
    ['email', () => remote.checkMailboxes(config, state)],
    ['voice', () => voice.checkVoice(machine, config, isLive)],
    ['search', () => meaning.checkEmbeddings(machine, config, isLive)],
    ['update', () => updates.checkUpdate(home, config)],
    ['programs', () => checkExec(machine, config)],
    ['backup', () => gateway.checkBackups(machine, config)],
    ['media', () => gateway.checkMedia(env, config)],
    ['tools', () => tools.checkTools(machine, config.gateway.token)],
    ['skills', () => skills.checkSkills(machine)],
    ['memory', () => memory.checkMemories(workspace)],
  ];
}

/**
 * Live previews of accounts that are switched off or gone: nothing removes or completes them. Those
 * of the others are removed by the gateway.
 */
async function checkDrafts(
  { home, clock }: Machine,
  { channels }: Config,
  state: OpenedState | undefined,
): Promise<readonly Finding[]> {
  const accounts = configuredAccounts(channels);
  const live = accounts.filter(({ isEnabled }) => isEnabled).map(({ name }): string => name);
  const platforms = accounts.map(({ channel }): string => channel);
  const kept = (account: string) =>
    live.includes(account) || !platforms.includes(accountOf(account).channel);
  const orphans = (await state?.store.draftsBut(kept)) ?? [];
  if (orphans.length === 0) return [];
  const { length } = orphans;
  const remedy = t`Run: nanobot doctor --fix. The unfinished texts stay in their chats.`;
  return [
    warn('drafts', t`${length} unfinished live previews of channels that are off`, remedy, {
      text: t`forget ${length} live previews`,
      run: () =>
        withOpenState(home, clock, async ({ store }) => {
          for (const turn of orphans) await store.forgetDraft(turn);
        }),
    }),
  ];
}

export async function checkAccounts(
  home: Home,
  { telemetry }: Config,
  state: OpenedState | undefined,
): Promise<readonly Finding[]> {
  const written = [
    ...(telemetry.metricsFile ? await checkWritable('metrics', home.metrics) : []),
    ...(telemetry.audit ? await checkWritable('audit', home.audit) : []),
  ];
  if (state === undefined || written.some(({ check }) => check === 'audit')) return written;
  return [...written, await checkAudit(home, state)];
}

async function checkAudit(home: Home, { store }: OpenedState): Promise<Finding> {
  const verdict = await verifyChains(home, store);
  if (verdict.kind === 'intact') return ok('audit', t`${verdict.entries} entries, all unchanged`);
  const { file, line, problem } = verdict;
  const remedy = t`Find out who can write to this file, keep a copy, then move audit*.jsonl away.`;
  return fail('audit', t`${file}, line ${line}: ${problem}`, remedy);
}

/** A missing file is created when it is needed. */
async function checkWritable(check: string, path: string): Promise<readonly Finding[]> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return [];
  if (found.isFile() && (await isPermitted(path, constants.W_OK))) return [];
  const remedy = t`Move ${path} away, or give it to the user who runs the gateway (chown).`;
  return [fail(check, t`cannot write ${path}`, remedy)];
}

// Checks whether the gateway can listen at its configured address, and who can reach it there.

const ADDRESS_CHECK = 'address';

/**
 * An address that others can reach is validated when the configuration is loaded; here it is only
 * reported.
 */
export async function checkAddress({ home }: Machine, { gateway }: Config): Promise<Finding> {
  const { port } = gateway;
  const running = await findRunningGateway(home);
  const host = running?.host ?? gateway.host;
  const taken = running === undefined ? await problemOf(host, port) : '';
  if (taken === 'EADDRINUSE') {
    const remedy = t`Stop that program, or use another port: nanobot config set gateway.port <port>`;
    return fail(ADDRESS_CHECK, t`another program uses ${host}:${port}`, remedy);
  }
  if (taken !== '') {
    const remedy = t`Set gateway.host to 127.0.0.1, and gateway.port to one above 1023.`;
    return fail(ADDRESS_CHECK, t`cannot listen on ${host}:${port} (${taken})`, remedy);
  }
  if (isLoopbackHost(host)) return ok(ADDRESS_CHECK, t`${host}: reachable from this machine only`);
  const remedy = t`Put a TLS proxy in front, or set gateway.host to 127.0.0.1.`;
  return warn(ADDRESS_CHECK, t`${host}: reachable from other machines with the token`, remedy);
}

/**
 * The system's error code where nothing can listen there; empty where it can. Listens for a moment.
 */
function problemOf(host: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve('code' in error ? String(error.code) : error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve('')));
  });
}

// Checks whether a sandbox isolates programs that the agent runs, and which one.

const PROGRAMS_CHECK = 'programs';

async function checkExec({ env }: Machine, { tools }: Config): Promise<Finding> {
  const { exec } = tools;
  if (!exec.enabled) return ok(PROGRAMS_CHECK, t`off: the agent runs no programs`);
  const used = await findSandbox(thisSystem(env), { ...exec, owner: 'doctor' });
  if (used.kind === 'missing') {
    return warn(PROGRAMS_CHECK, t`the agent cannot run programs: ${used.reason}`, used.remedy);
  }
  if (used.sandbox.kind === 'off') {
    return warn(
      PROGRAMS_CHECK,
      t`they run without a sandbox and can read everything nanobot can, including its keys`,
      t`Install bubblewrap and set tools.exec.sandbox to "auto".`,
    );
  }
  const net = exec.network === 'on' ? t`with network access` : t`without network access`;
  const because = used.passedOver.length === 0 ? '' : ` (${used.passedOver.join('; ')})`;
  const counted =
    used.sandbox.kind === 'bubblewrap' && isAdministrator()
      ? t`; running as root, so the limit on processes is only monitored`
      : '';
  return ok(PROGRAMS_CHECK, t`sandboxed with ${used.sandbox.about}, ${net}${because}${counted}`);
}

/** The Linux kernel exempts this user from process limits. */
const isAdministrator = () => process.platform === 'linux' && process.getuid?.() === 0;
