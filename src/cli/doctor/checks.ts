// The list of the doctor's checks; those of record files, the listening address, the sandbox, and
// remote services: models, Telegram, Lark and mailboxes.

import { constants, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import {
  checkMailLogins,
  proveLark,
  proveTelegram,
  webhookOf,
} from '../../channels/channel-setup.ts';
import type { GrantRows } from '../../channels/email/access-tokens.ts';
import { type EmailConfig, mailboxesOf, usesOAuth2 } from '../../channels/email/settings.ts';
import { configuredAccounts } from '../../channels/index.ts';
import { larkRoot } from '../../channels/lark/settings.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { LoadedConfig } from '../../kernel/config/files/config-file.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import {
  findRunningGateway,
  hasState,
  type OpenedState,
  withOpenState,
} from '../../kernel/home-state.ts';
import { ChannelError, NanobotError } from '../../kernel/message/errors.ts';
import { accountName, accountOf, channelName, channelScope } from '../../kernel/message/ids.ts';
import { verifyChains } from '../../kernel/observe/build-telemetry.ts';
import { isPermitted } from '../../lib/files/files.ts';
import {
  isDirect,
  isLoopbackHost,
  ProxyError,
  readProxy,
  shownProxy,
} from '../../lib/net/address-rules.ts';
import { proveProxy } from '../../lib/net/proxies.ts';
import { t } from '../../lib/texts.ts';
import { createCredentials } from '../../providers/credentials.ts';
import { proveConfigured, resolveConfigured } from '../../providers/model-setup.ts';
import { CLOUD_ORDER, DEMO_MODEL } from '../../providers/rules/model-names.ts';
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
  const token = loaded?.config.gateway.token ?? '';
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
    ['proxy', () => checkProxies(config, env)],
    ['model', () => checkModel(machine, config, isLive)],
    ['prices', () => prices.checkPrices(machine, config)],
    ['telegram', () => checkTelegram(config)],
    ['lark', () => checkLark(config)],
    ['email', () => checkMailboxes(config, state)],
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

// Checks of remote services: the model, Telegram, Lark, each mailbox.

const MODEL_TIMEOUT_MS = 60_000;
const CHANNEL_TIMEOUT_MS = 30_000;
const SET_UP = t`Connect a model: nanobot onboard`;
const MODEL_REMEDIES: Readonly<Record<string, string>> = {
  provider_network: t`Check the network connection, and providers.<vendor>.apiBase if it is set.`,
  provider_unknown_model: SET_UP,
};

export async function checkModel(
  { env, clock, home }: Machine,
  config: Config,
  isLive: boolean,
): Promise<Finding> {
  try {
    const name = await resolveConfigured(config, env, clock, home);
    if (name === DEMO_MODEL) return warn('model', t`none; the demo model answers`, SET_UP);
    if (!isLive) return ok('model', t`${name} (not tested; --live sends a test request)`);
    const signal = AbortSignal.timeout(MODEL_TIMEOUT_MS);
    const proof = await proveConfigured(config, env, clock, signal, home);
    if (!proof.ok) return fail('model', t`${proof.model} returned an empty answer`, SET_UP);
    return ok('model', t`${proof.model} answered in ${proof.latencyMs} ms`);
  } catch (error) {
    if (!(error instanceof NanobotError)) throw error;
    return fail('model', error.message, modelRemedy(error));
  }
}

/** The text for a person in a chat, and what only the operator of the machine can do. */
function modelRemedy({ code, userText = SET_UP }: NanobotError): string {
  const more = MODEL_REMEDIES[code];
  return more === undefined ? userText : `${userText} ${more}`;
}

/**
 * Each proxy by a connection to what it is for; the first server of each, because a proxy that
 * refuses one is reported where that is checked.
 */
async function checkProxies(config: Config, env: Machine['env']): Promise<readonly Finding[]> {
  const served = new Map<string, URL>();
  for (const [setting, address] of proxiedServers(config, env)) {
    const url = URL.parse(address);
    const proxy = readProxy(setting);
    const isFor = proxy && url && !isDirect(proxy, url.hostname, portOf(url));
    if (isFor && !served.has(setting)) served.set(setting, url);
  }
  return Promise.all([...served].map(([setting, url]) => checkProxy(setting, url)));
}

function* proxiedServers({ channels, network, ...config }: Config, env: Machine['env']) {
  const { telegram, lark, whatsapp, email } = channels;
  if (telegram.enabled) yield [telegram.proxy, telegram.apiRoot] as const;
  if (lark.enabled) yield [lark.proxy, larkRoot(lark.domain)] as const;
  if (whatsapp.enabled) yield [whatsapp.proxy, whatsapp.socketUrl] as const;
  for (const { enabled, proxy, imapHost, imapPort } of mailboxesOf(email).values()) {
    if (enabled) yield [proxy, `imap://${imapHost}:${imapPort}`] as const;
  }
  const credentials = createCredentials({ ...config, channels, network }, env, []);
  for (const vendor of CLOUD_ORDER) {
    const access = credentials.accessTo(vendor);
    if (access !== undefined) yield [access.proxy, access.apiBase] as const;
  }
  yield [network.proxy, telegram.apiRoot] as const;
}

const USUAL_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'ws:': 80 };
const portOf = ({ port, protocol }: URL) => Number(port) || (USUAL_PORTS[protocol] ?? 443);

async function checkProxy(setting: string, url: URL): Promise<Finding> {
  const [host, port] = [url.hostname, portOf(url)];
  try {
    await proveProxy(setting, host, port);
    const proxy = readProxy(setting);
    return ok(PROXY_CHECK, t`${proxy && shownProxy(proxy)} connects to ${host}:${port}`);
  } catch (error) {
    if (error instanceof ProxyError) return fail(PROXY_CHECK, error.problem, error.remedy);
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    const remedy = t`Use socks5h instead of socks5, so that the proxy looks the name up.`;
    return fail(PROXY_CHECK, t`this machine does not find ${host} (${code})`, remedy);
  }
}

const PROXY_CHECK = 'proxy';

export async function checkTelegram({
  channels: { telegram },
}: Config): Promise<readonly Finding[]> {
  let clock: readonly Finding[] = [];
  const found = await checkBot(
    'telegram',
    telegram.enabled,
    t`Enter a new token`,
    async (signal) => {
      const bot = await proveTelegram(telegram.token, telegram, signal);
      if (bot.aheadMs !== undefined) clock = [clockFinding(bot.aheadMs)];
      return t`token accepted, bot @${bot.username}`;
    },
  );
  const isProven = telegram.enabled && found.every(({ level }) => level === 'ok');
  return [...found, ...clock, ...(isProven ? await checkWebhook(telegram) : [])];
}

/** Servers of OAuth2 and signatures of mails allow a few minutes at most. */
const MAX_SKEW_MS = 60_000;

export function clockFinding(aheadMs: number): Finding {
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  if (Math.abs(aheadMs) <= MAX_SKEW_MS) return ok('clock', t`right, compared with Telegram`);
  const way = aheadMs > 0 ? t`slow` : t`fast`;
  const remedy = t`Set the clock: sudo timedatectl set-ntp true, or start chrony or ntpd.`;
  return warn('clock', t`${seconds} s ${way}, compared with Telegram`, remedy);
}

async function checkWebhook({
  token,
  ...line
}: Config['channels']['telegram']): Promise<readonly Finding[]> {
  const hook = await webhookOf(token, line, AbortSignal.timeout(CHANNEL_TIMEOUT_MS));
  if (hook === undefined) return [];
  const text = t`a webhook sends the bot's messages to ${hook.host}, so this program gets none`;
  const remedy = t`Run: nanobot doctor --fix. If another program uses the bot, give it a bot of its own.`;
  const fix = { text: t`remove the webhook; waiting messages stay`, run: () => hook.remove() };
  return [fail('telegram-webhook', text, remedy, fix)];
}

function checkLark({ channels: { lark } }: Config): Promise<readonly Finding[]> {
  return checkBot('lark', lark.enabled, t`Enter the app id and secret again`, async (signal) => {
    return t`app accepted, bot ${(await proveLark(lark, signal)).name}`;
  });
}

/** `what`: what to do where the platform rejects the credentials. */
async function checkBot(
  channel: string,
  isEnabled: boolean,
  what: string,
  prove: (signal: AbortSignal) => Promise<string>,
): Promise<readonly Finding[]> {
  if (!isEnabled) return [];
  try {
    return [ok(channel, await prove(AbortSignal.timeout(CHANNEL_TIMEOUT_MS)))];
  } catch (error) {
    if (!(error instanceof NanobotError)) throw error;
    // An unreachable platform says nothing about the credentials.
    const isAway = error instanceof ChannelError && error.remedy.kind === 'backoff';
    const remedy = isAway
      ? t`Check the network connection; the gateway retries automatically.`
      : t`${what}: nanobot channels login ${channel}`;
    return [fail(channel, error.message, remedy)];
  }
}

async function checkMailboxes(
  { channels }: Config,
  state: OpenedState | undefined,
): Promise<readonly Finding[]> {
  const mailboxes = [...mailboxesOf(channels.email)].filter(([, { enabled }]) => enabled);
  const findings = mailboxes.map(([account, mailbox]) => {
    const at = { channel: channelName('email'), account };
    return checkMailbox(accountName(at), mailbox, state?.store.scope(channelScope(at)));
  });
  return Promise.all(findings);
}

async function checkMailbox(
  name: string,
  email: EmailConfig,
  state: GrantRows | undefined,
): Promise<Finding> {
  if (state === undefined && usesOAuth2(email)) {
    // The provider may void a refresh token at its use, and nothing could keep the next one.
    return warn(name, t`OAuth2 is not tested before the first start`, t`Start it: nanobot gateway`);
  }
  const proof = await checkMailLogins(email, AbortSignal.timeout(CHANNEL_TIMEOUT_MS), state);
  if (proof.kind === 'proven')
    return ok(name, t`login accepted by ${email.imapHost} and ${email.smtpHost}`);
  return fail(name, `${proof.step}: ${proof.problem}`, proof.remedy);
}
