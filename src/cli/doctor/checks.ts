// The doctor's checks of record files, the listening address, the sandbox, and remote services: models,
// Telegram, Lark and mailboxes.

import { constants, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { checkMailLogins, proveLark, proveTelegram } from '../../channels/channel-setup.ts';
import { type EmailConfig, mailboxesOf } from '../../channels/email/settings.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import type { OpenedState } from '../../kernel/home-state.ts';
import { accountName } from '../../kernel/message/account.ts';
import { ChannelError, NanobotError } from '../../kernel/message/errors.ts';
import { channelName } from '../../kernel/message/ids.ts';
import { verifyAudit } from '../../kernel/observe/audit.ts';
import { AUDIT_SCOPE } from '../../kernel/observe/build-telemetry.ts';
import { findRunningGateway } from '../../kernel/running-gateway.ts';
import { isPermitted } from '../../lib/files/files.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import { proveConfigured, resolveConfigured } from '../../providers/model-setup.ts';
import { DEMO_MODEL } from '../../providers/rules/model-names.ts';
import { findSandbox, thisSystem } from '../../tools/exec/find-sandbox.ts';
import type { Terminal } from '../terminal.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

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
  const verdict = await verifyAudit(home.audit, store.scope(AUDIT_SCOPE));
  if (verdict.kind === 'intact') return ok('audit', `${verdict.entries} entries, none changed`);
  const { file, line, problem } = verdict;
  const remedy = 'Find out who can write there; keep a copy, then move audit*.jsonl away.';
  return fail('audit', `${file}, line ${line}: ${problem}`, remedy);
}

/** What is not there yet is made when it is needed. */
async function checkWritable(check: string, path: string): Promise<readonly Finding[]> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return [];
  if (found.isFile() && (await isPermitted(path, constants.W_OK))) return [];
  const remedy = `Move ${path} away, or make it a file of the user who runs the gateway.`;
  return [fail(check, `${path} cannot be written`, remedy)];
}

// Whether the gateway can listen where it is told to, and who can reach it there.

const ADDRESS_CHECK = 'address';

/** Problems of an open address are found at load; what is left is to know that it is open. */
export async function checkAddress({ home }: Terminal, { gateway }: Config): Promise<Finding> {
  const { port } = gateway;
  const running = await findRunningGateway(home);
  const host = running?.host ?? gateway.host;
  const taken = running === undefined ? await problemOf(host, port) : '';
  if (taken === 'EADDRINUSE') {
    const remedy = 'End that program, or: nanobot config set gateway.port <another port>';
    return fail(ADDRESS_CHECK, `${host}:${port} is taken by another program`, remedy);
  }
  if (taken !== '') {
    const remedy = 'Set gateway.host to 127.0.0.1, and gateway.port to one above 1023.';
    return fail(ADDRESS_CHECK, `${host}:${port} cannot be listened on (${taken})`, remedy);
  }
  if (isLoopbackHost(host)) return ok(ADDRESS_CHECK, `${host}: reachable from this machine only`);
  const remedy = 'Put a TLS proxy in front, or set gateway.host to 127.0.0.1.';
  return warn(ADDRESS_CHECK, `${host}: other machines can reach it, by token`, remedy);
}

/** The system's code for why nobody can listen there; empty where one can. Listens for a moment. */
function problemOf(host: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve('code' in error ? String(error.code) : error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve('')));
  });
}

// Whether programs that the agent runs are confined, and by what.

const PROGRAMS_CHECK = 'programs';

export async function checkExec({ env }: Terminal, { tools }: Config): Promise<Finding> {
  const { exec } = tools;
  if (!exec.enabled) return ok(PROGRAMS_CHECK, 'the agent runs none');
  const used = await findSandbox(thisSystem(env), { ...exec, owner: 'doctor' });
  if (used.kind === 'missing') {
    return warn(PROGRAMS_CHECK, `the agent runs none: ${used.reason}`, used.remedy);
  }
  if (used.sandbox.kind === 'off') {
    return warn(
      PROGRAMS_CHECK,
      'they run without a sandbox and see all that nanobot sees, its keys included',
      'Install bubblewrap and set tools.exec.sandbox to "auto".',
    );
  }
  const net = exec.network === 'on' ? 'with the network' : 'without network';
  const because = used.passedOver.length === 0 ? '' : ` (${used.passedOver.join('; ')})`;
  const counted =
    used.sandbox.kind === 'bubblewrap' && isAdministrator()
      ? '; as administrator, their number is watched only'
      : '';
  return ok(PROGRAMS_CHECK, `confined by ${used.sandbox.about}, ${net}${because}${counted}`);
}

/** Whom the Linux kernel exempts from limits of processes. */
const isAdministrator = () => process.platform === 'linux' && process.getuid?.() === 0;

// What the doctor asks of the world: the model, Telegram, Lark, each mailbox.

const MODEL_TIMEOUT_MS = 60_000;
const CHANNEL_TIMEOUT_MS = 30_000;
const SET_UP = 'Connect one: nanobot onboard';
const MODEL_REMEDIES: Readonly<Record<string, string>> = {
  provider_network:
    'Check the network of this machine, and providers.<vendor>.apiBase if it is set.',
  provider_unknown_model: SET_UP,
};

export async function checkModel(
  { env, clock, home }: Terminal,
  config: Config,
  isLive: boolean,
): Promise<Finding> {
  try {
    const name = await resolveConfigured(config, env, clock, home);
    if (name === DEMO_MODEL) return warn('model', 'none: a demo answers', SET_UP);
    if (!isLive) return ok('model', `${name} (not asked; --live asks it)`);
    const signal = AbortSignal.timeout(MODEL_TIMEOUT_MS);
    const proof = await proveConfigured(config, env, clock, signal, home);
    if (!proof.ok) return fail('model', `${proof.model} answered nothing`, SET_UP);
    return ok('model', `${proof.model} answered in ${proof.latencyMs} ms`);
  } catch (error) {
    if (!(error instanceof NanobotError)) throw error;
    return fail('model', error.message, modelRemedy(error));
  }
}

/** What the person in a chat would read, and what only whoever sits at the machine can do. */
function modelRemedy({ code, userText = SET_UP }: NanobotError): string {
  const more = MODEL_REMEDIES[code];
  return more === undefined ? userText : `${userText} ${more}`;
}

export function checkTelegram({ channels: { telegram } }: Config): Promise<readonly Finding[]> {
  return checkBot('telegram', telegram.enabled, 'A new token', async (signal) => {
    const bot = await proveTelegram(telegram.token, telegram.apiRoot, signal);
    return `the token is @${bot.username}'s`;
  });
}

export function checkLark({ channels: { lark } }: Config): Promise<readonly Finding[]> {
  return checkBot('lark', lark.enabled, 'Id and secret', async (signal) => {
    return `the app's bot is ${(await proveLark(lark, signal)).name}`;
  });
}

/** `what`: asked of the person where the platform refuses it. */
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
    // A platform that does not answer says nothing about what it would be told.
    const isAway = error instanceof ChannelError && error.remedy.kind === 'backoff';
    const remedy = isAway
      ? 'Check the network of this machine; the gateway tries again by itself.'
      : `${what}: nanobot channels login ${channel}`;
    return [fail(channel, error.message, remedy)];
  }
}

export async function checkMailboxes({ channels }: Config): Promise<readonly Finding[]> {
  const mailboxes = [...mailboxesOf(channels.email)].filter(([, { enabled }]) => enabled);
  const findings = mailboxes.map(([account, mailbox]) =>
    checkMailbox(accountName({ channel: channelName('email'), account }), mailbox),
  );
  return Promise.all(findings);
}

async function checkMailbox(name: string, email: EmailConfig): Promise<Finding> {
  const proof = await checkMailLogins(email, AbortSignal.timeout(CHANNEL_TIMEOUT_MS));
  if (proof.kind === 'proven')
    return ok(name, `${email.imapHost} and ${email.smtpHost} take the log-in`);
  return fail(name, `${proof.step}: ${proof.problem}`, proof.remedy);
}
