// The doctor's checks of the configuration (it loads, who can reach the gateway, who may talk), the
// running gateway and its store.

import { existsSync } from 'node:fs';
import { howToLogIn } from '../../channels/configured-channels.ts';
import { type ConfiguredAccount, configuredAccounts } from '../../channels/index.ts';
import { EVERYBODY } from '../../kernel/access/admission.ts';
import { findHomeHolder } from '../../kernel/bus/store/home-lock.ts';
import { isPythonConfig } from '../../kernel/config/check.ts';
import type { Config } from '../../kernel/config/config.ts';
import { type LoadedConfig, loadConfig } from '../../kernel/config/files/config-file.ts';
import { literalSecrets } from '../../kernel/config/secrets.ts';
import { hasState, type OpenedState, openState } from '../../kernel/home-state.ts';
import { accountPath } from '../../kernel/message/account.ts';
import { ConfigError, NanobotError } from '../../kernel/message/errors.ts';
import { askGateway, findRunningGateway } from '../../kernel/running-gateway.ts';
import { readinessSchema, statusLine } from '../channel-lines.ts';
import { explainSystemError, holderText, otherProgram, problemLine } from '../explain-error.ts';
import { spanText } from '../flag-values.ts';
import type { Terminal } from '../terminal.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

type CheckedFile = {
  readonly findings: readonly Finding[];
  /** Undefined where it does not load. */
  readonly loaded: LoadedConfig | undefined;
};

export async function checkConfigFile({ home, env }: Terminal): Promise<CheckedFile> {
  const failing = (text: string, remedy: string): CheckedFile => ({
    findings: [fail('config', text, remedy)],
    loaded: undefined,
  });
  try {
    const loaded = await loadConfig(home, env);
    const text = existsSync(home.config) ? `${home.config} loads` : 'none yet: the defaults count';
    return { findings: [ok('config', text)], loaded };
  } catch (error) {
    const refused = explainSystemError(error, home);
    if (refused !== undefined) return failing(refused, 'Then look again.');
    if (!(error instanceof ConfigError)) throw error;
    if (isPythonConfig(error.problems.map(({ path }) => path))) {
      return failing(`${home.config} is that of another program`, otherProgram(home));
    }
    const remedy = existsSync(home.lastGoodConfig)
      ? `The last one that loaded is ${home.lastGoodConfig}.`
      : 'Correct it; "nanobot config validate" checks again.';
    const findings = error.problems.map((one) => fail('config', problemLine(one).trim(), remedy));
    return { findings, loaded: undefined };
  }
}

/** config.json is private, which `permissions` checks; arguments of a process are not. */
export function checkSecrets({ raw }: LoadedConfig): Finding {
  const literal = literalSecrets(raw);
  const shown = literal.filter((path) => /^mcpServers\..*\.(?:args|url)$/.test(path));
  if (shown.length > 0) {
    const remedy = 'Put each into the environment and write $' + '{NAME} in its place.';
    return warn('secrets', `written out where programs show them: ${shown.join(', ')}`, remedy);
  }
  if (literal.length === 0) return ok('secrets', 'No secrets in config.json');
  return ok('secrets', `In config.json, which only this user can read: ${literal.join(', ')}`);
}

/** Hosts inside that the agent may be made to read. */
export function checkWeb({ tools: { web } }: Config): readonly Finding[] {
  if (!web.enabled || web.allowPrivateHosts.length === 0) return [];
  const remedy = 'Take out of tools.web.allowPrivateHosts what the agent need not read.';
  const hosts = web.allowPrivateHosts.join(', ');
  return [warn('web', `a page or message can make the agent read ${hosts}`, remedy)];
}

export async function checkAccess(
  config: Config,
  state: OpenedState | undefined,
): Promise<readonly Finding[]> {
  const people = (await state?.pairing.list())?.approved ?? [];
  const accounts = configuredAccounts(config.channels).filter(({ isEnabled }) => isEnabled);
  return accounts.map((account) => {
    const { allowFrom, owners, strangers } = account.definition.policy(account.config);
    const paired = people.filter(
      ({ channel, role }) => channel === account.channel && role !== 'blocked',
    ).length;
    if (strangers !== 'open') return accessFinding(account, [...allowFrom, ...owners], paired);
    const remedy = `Set ${accountPath(account)}.strangers to "silent": you are asked about each of them.`;
    const text = 'strangers may talk to the agent and spend its money';
    return warn(`${account.name} access`, text, remedy);
  });
}

function accessFinding(
  account: ConfiguredAccount,
  allowFrom: readonly string[],
  paired: number,
): Finding {
  const check = `${account.name} access`;
  const setting = `${accountPath(account)}.allowFrom`;
  if (allowFrom.includes(EVERYBODY)) {
    const remedy = `Name the people in ${setting} instead of "*".`;
    return warn(check, 'everybody may talk to the agent and spend its money', remedy);
  }
  if (allowFrom.length + paired > 0) {
    return ok(check, `${allowFrom.length} listed, ${paired} paired`);
  }
  const remedy = `${howToLogIn(account)}, or fill ${setting}.`;
  return warn(check, 'nobody may talk to the agent', remedy);
}

// What the doctor asks of the running gateway and of the store: alive, channels moving, nothing set
// aside.

/** A channel that completed nothing for so long has stalled. */
const STALE_MS = 10 * 60_000;
const OLD_PENDING_MS = 15 * 60_000;

export async function checkGateway(
  { home, clock }: Terminal,
  token: string,
): Promise<readonly Finding[]> {
  const running = await findRunningGateway(home);
  const heldBy = running === undefined ? await findHomeHolder(home.lock) : undefined;
  if (heldBy !== undefined) {
    const text = `cannot be seen from here: the home is held by ${holderText(heldBy)}`;
    return [warn('gateway', text, 'Look again in its own container, e.g. docker compose exec.')];
  }
  if (running === undefined) {
    return [warn('gateway', 'no gateway runs in this home', 'Start it: nanobot gateway')];
  }
  const since = spanText(clock.now() - running.startedAt);
  const alive = ok('gateway', `runs as process ${running.pid} since ${since}`);
  if (running.address === undefined) return [alive];
  const readiness = readinessSchema.safeParse(await askGateway(running, '/readyz', token));
  if (!readiness.success) {
    const remedy = `Read ${home.logs}, the newest file; if it hangs, stop it and start it again.`;
    return [alive, fail('gateway', `${running.address} does not answer`, remedy)];
  }
  const channels = readiness.data.channels.filter(({ status }) => status.kind !== 'off');
  return [
    alive,
    ...channels.map(({ name, status }) => {
      const { remedy, ...facts } = status;
      const text = statusLine(facts, clock.now());
      const silentMs = status.activeAt === undefined ? 0 : clock.now() - status.activeAt;
      if (status.kind === 'running' && silentMs < STALE_MS) return ok(name, text);
      if (status.kind === 'starting') return ok(name, text);
      return fail(
        name,
        text,
        remedy ?? `It is tried again. ${home.logs} has the details, newest file.`,
      );
    }),
  ];
}

export async function checkState(
  { home, clock }: Terminal,
  stack: AsyncDisposableStack,
): Promise<{ readonly findings: readonly Finding[]; readonly state: OpenedState | undefined }> {
  if (!hasState(home)) return { findings: [ok('store', 'none yet')], state: undefined };
  try {
    const state = stack.use(
      await openState(home, clock, { checkUpToBytes: Number.POSITIVE_INFINITY }),
    );
    return { findings: await storeFindings(state, clock.now()), state };
  } catch (error) {
    if (!(error instanceof NanobotError)) throw error;
    const findings = [fail('store', error.message, storeRemedy(error.code))];
    return { findings, state: undefined };
  }
}

/** Moving a file away that is whole would lose the messages that wait in it. */
function storeRemedy(code: string): string {
  if (code === 'store_damaged') {
    return 'Stop the gateway, move state.db away and keep it; a new one is made.';
  }
  return 'Nothing in it is lost: leave the file where it is.';
}

async function storeFindings({ store }: OpenedState, now: number): Promise<readonly Finding[]> {
  const stats = await store.stats();
  const findings = [
    ok('store', `opens and is whole; ${stats.pending} waiting, ${stats.outboundQueued} to send`),
  ];
  const aside = stats.dead + stats.unknown;
  if (aside > 0) {
    const remedy = 'See "nanobot dead list", then retry or drop them.';
    findings.push(warn('messages', `${stats.dead} set aside, ${stats.unknown} in doubt`, remedy));
  }
  const waitedMs = now - (stats.oldestPendingAt ?? now);
  if (waitedMs > OLD_PENDING_MS) {
    const text = `a message has been waiting for ${spanText(waitedMs)}`;
    findings.push(
      warn('messages', text, 'Is the gateway running? "nanobot trace last" says more.'),
    );
  }
  return findings;
}
