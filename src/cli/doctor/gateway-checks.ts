// The doctor's checks of the configuration (it loads, who can reach the gateway, who may talk), the
// running gateway and its store.

import { existsSync } from 'node:fs';
import { channelsSchema, statusLine } from '../../channels/channel-lines.ts';
import { type ConfiguredAccount, configuredAccounts, howToLogIn } from '../../channels/index.ts';
import { EVERYBODY } from '../../kernel/access/admission.ts';
import { withChosen } from '../../kernel/access/rights.ts';
import { findHomeHolder } from '../../kernel/bus/store/home-lock.ts';
import { StoreError } from '../../kernel/bus/store/store.ts';
import { isPythonConfig } from '../../kernel/config/check.ts';
import type { Config } from '../../kernel/config/config.ts';
import { type LoadedConfig, loadConfig } from '../../kernel/config/files/config-file.ts';
import { problemLine } from '../../kernel/config/issues.ts';
import { literalSecrets } from '../../kernel/config/secrets.ts';
import {
  askGateway,
  findRunningGateway,
  hasState,
  type OpenedState,
  openState,
  refuseOlder,
} from '../../kernel/home-state.ts';
import { findUnusable } from '../../kernel/instance.ts';
import { ConfigError, NanobotError } from '../../kernel/message/errors.ts';
import { accountPath } from '../../kernel/message/ids.ts';
import { chosenPolicies } from '../../kernel/people/people-rows.ts';
import { t } from '../../lib/texts.ts';
import { explainSystemError, holderText, otherProgram } from '../explain-error.ts';
import { spanText } from '../flag-values.ts';
import { type Finding, fail, type Machine, ok, rebuildFix, warn } from './machine-checks.ts';

type CheckedFile = {
  readonly findings: readonly Finding[];
  /** Undefined where it is invalid. */
  readonly loaded: LoadedConfig | undefined;
};

export async function checkConfigFile({ home, env }: Machine): Promise<CheckedFile> {
  const failing = (text: string, remedy: string): CheckedFile => ({
    findings: [fail('config', text, remedy)],
    loaded: undefined,
  });
  try {
    const loaded = await loadConfig(home, env);
    const text = existsSync(home.config)
      ? t`${home.config} is valid`
      : t`no config.json yet; defaults apply`;
    return { findings: [ok('config', text)], loaded };
  } catch (error) {
    const refused = explainSystemError(error, home);
    if (refused !== undefined) return failing(refused, t`Then run "nanobot doctor" again.`);
    if (!(error instanceof ConfigError)) throw error;
    if (isPythonConfig(error.problems.map(({ path }) => path))) {
      return failing(t`${home.config} belongs to another program`, otherProgram(home));
    }
    const remedy = existsSync(home.lastGoodConfig)
      ? t`The last valid configuration is ${home.lastGoodConfig}.`
      : t`Correct the file, then check it: nanobot config validate`;
    const findings = error.problems.map((one) => fail('config', problemLine(one), remedy));
    return { findings, loaded: undefined };
  }
}

/**
 * `permissions` checks that config.json is private; the arguments of a process are visible to all
 * users.
 */
export function checkSecrets({ raw }: LoadedConfig): Finding {
  const literal = literalSecrets(raw);
  const shown = literal.filter((path) => /^mcpServers\..*\.(?:args|url)$/.test(path));
  if (shown.length > 0) {
    const remedy = t`Move each into an environment variable and write \${NAME} instead.`;
    return warn(
      'secrets',
      t`other users of this machine can see them in the process list: ${shown.join(', ')}`,
      remedy,
    );
  }
  if (literal.length === 0) return ok('secrets', t`No secrets in config.json`);
  return ok('secrets', t`In config.json, which only this user can read: ${literal.join(', ')}`);
}

/** Hosts of the local network that the agent may read. */
export function checkWeb({ tools: { web } }: Config): readonly Finding[] {
  if (!web.enabled || web.allowPrivateHosts.length === 0) return [];
  const remedy = t`Remove hosts that the agent does not need from tools.web.allowPrivateHosts.`;
  const hosts = web.allowPrivateHosts.join(', ');
  return [warn('web', t`anyone who can make the agent open a page can reach ${hosts}`, remedy)];
}

/** The approval policy; people and groups with a policy of their own are counted. */
export async function checkApprovals(
  { tools }: Config,
  state: OpenedState | undefined,
): Promise<Finding> {
  const chosen = state === undefined ? new Map() : await chosenPolicies(state.people.peopleRows);
  const { approvals, people, groups } = withChosen(tools, chosen);
  const persons = (await state?.people.persons.list()) ?? [];
  const configured = [...people, ...groups].filter((entry) => entry.approvals !== undefined).length;
  const apart = persons.filter((person) => person.approvals !== undefined).length + configured;
  const others = apart === 0 ? '' : t`; set apart for ${apart} people or groups`;
  const text = t`owners: ${approvals.owner}, trusted people: ${approvals.trusted}${others}`;
  return ok('approvals', text);
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
    const remedy = t`Set ${accountPath(account)}.strangers to "silent": you decide about each new sender.`;
    const text = t`unknown senders may talk to the agent and spend your money`;
    return warn(`${account.name}-access`, text, remedy);
  });
}

function accessFinding(
  account: ConfiguredAccount,
  allowFrom: readonly string[],
  paired: number,
): Finding {
  const check = `${account.name}-access`;
  const setting = `${accountPath(account)}.allowFrom`;
  if (allowFrom.includes(EVERYBODY)) {
    const remedy = t`List the people in ${setting} instead of "*".`;
    return warn(check, t`anyone may talk to the agent and spend your money`, remedy);
  }
  if (allowFrom.length + paired > 0) {
    return ok(check, t`${allowFrom.length} on the allow list, ${paired} paired`);
  }
  const remedy = t`${howToLogIn(account)}, or add ids to ${setting}.`;
  return warn(check, t`nobody may talk to the agent`, remedy);
}

// Checks the running gateway and the store: it responds, channels are active, there are no dead
// letters.

/** A channel without completed requests for this long has stalled. */
const STALE_MS = 10 * 60_000;
const OLD_PENDING_MS = 15 * 60_000;

export async function checkGateway(
  { home, clock }: Machine,
  token: string,
): Promise<readonly Finding[]> {
  const running = await findRunningGateway(home);
  const heldBy = running === undefined ? await findHomeHolder(home.lock) : undefined;
  if (heldBy !== undefined) {
    const text = t`cannot reach it from here: ${holderText(heldBy)} uses this home`;
    return [
      warn(
        'gateway',
        text,
        t`Run this command in the same container, e.g. with docker compose exec.`,
      ),
    ];
  }
  const unusable = running === undefined ? await findUnusable(home) : undefined;
  if (unusable !== undefined) return [fail('gateway', unusable.text, unusable.remedy)];
  if (running === undefined) {
    return [warn('gateway', t`not running`, t`Start it: nanobot gateway`)];
  }
  const since = spanText(clock.now() - running.startedAt);
  const alive = ok('gateway', t`running for ${since}, process ${running.pid}`);
  if (running.address === undefined) return [alive];
  const readiness = channelsSchema.safeParse(await askGateway(running, '/readyz', token));
  if (!readiness.success) {
    const remedy = t`Read the newest file in ${home.logs}. If the gateway hangs, restart it.`;
    return [alive, fail('gateway', t`${running.address} does not answer`, remedy)];
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
        remedy ?? t`The gateway retries. Details are in the newest file in ${home.logs}.`,
      );
    }),
  ];
}

export async function checkState(
  machine: Machine,
  stack: AsyncDisposableStack,
): Promise<{ readonly findings: readonly Finding[]; readonly state: OpenedState | undefined }> {
  const { home, clock } = machine;
  try {
    if (!(await hasState(home))) {
      return { findings: [ok('store', t`none yet`)], state: undefined };
    }
    if ((await findRunningGateway(home)) === undefined) await refuseOlder(home);
    const state = stack.use(
      await openState(home, clock, { checkUpToBytes: Number.POSITIVE_INFINITY }),
    );
    return { findings: await storeFindings(state, clock.now()), state };
  } catch (error) {
    if (!(error instanceof NanobotError)) throw error;
    const isDamaged = error instanceof StoreError && error.code === 'store_damaged';
    const fix = isDamaged ? rebuildFix(machine, error.damage) : undefined;
    const findings = [fail('store', error.message, storeRemedy(error.code), fix)];
    return { findings, state: undefined };
  }
}

/** Moving an intact file away would lose the messages that wait in it. */
function storeRemedy(code: string): string {
  if (code === 'store_damaged') {
    return t`Stop the gateway, then rebuild it: nanobot doctor --fix. The damaged file is kept.`;
  }
  if (code === 'store_unreachable' || code === 'store_held') {
    return t`No data is lost: nothing is acknowledged that the database has not stored.`;
  }
  return t`No data is lost. Leave the file where it is.`;
}

async function storeFindings({ store }: OpenedState, now: number): Promise<readonly Finding[]> {
  const stats = await store.stats();
  const findings = [
    ...(store.server === undefined ? [] : [ok('database', store.server)]),
    ok('store', t`intact; ${stats.pending} messages waiting, ${stats.outboundQueued} to send`),
  ];
  const aside = stats.dead + stats.unknown;
  if (aside > 0) {
    const remedy = t`Look at them with "nanobot dead list", then retry or drop them.`;
    findings.push(
      warn('messages', t`${stats.dead} set aside, ${stats.unknown} maybe delivered`, remedy),
    );
  }
  const waitedMs = now - (stats.oldestPendingAt ?? now);
  if (waitedMs > OLD_PENDING_MS) {
    const text = t`the oldest message has been waiting for ${spanText(waitedMs)}`;
    findings.push(
      warn(
        'messages',
        text,
        t`Check that the gateway is running; "nanobot trace last" shows the newest message.`,
      ),
    );
  }
  return findings;
}

const LATE_FACTOR = 2;

/** The last back-up, if they are made as configured. */
export async function checkBackups(
  { home, clock }: Machine,
  { backup }: Config,
): Promise<readonly Finding[]> {
  const { everyMs, lastBackupText, readRecord } = await import('../../features/backup/index.ts');
  if (backup.to === '') {
    const remedy = t`Make them every day: nanobot backup create --to <folder> --every day`;
    return [{ check: 'backup', level: 'ok', text: t`no back-ups are configured. ${remedy}` }];
  }
  const now = clock.now();
  const { made, failing } = await readRecord(home);
  const text = await lastBackupText(home, now);
  const span = everyMs(backup.every);
  const isLate = span !== undefined && (made === undefined || now - made.at > LATE_FACTOR * span);
  if (failing === undefined && !isLate) return [ok('backup', text)];
  return [warn('backup', text, t`Make one and see what it says: nanobot backup create`)];
}

/** Whether the bucket of received and sent files can be used. */
export async function checkMedia(env: Machine['env'], config: Config): Promise<readonly Finding[]> {
  const { kind } = config.storage.media;
  if (kind === 'files') return [];
  const { proveMediaBucket } = await import('../../kernel/media/bucket.ts');
  const { name, problem } = await proveMediaBucket(config, env);
  if (problem === undefined) return [ok('media', t`files of messages can be kept in ${name}`)];
  const remedy =
    t`Check storage.media: endpoint, region, bucket and keys, and what the keys may do. Until then ` +
    t`messages with files wait.`;
  return [fail('media', t`${name} cannot be used. ${problem}`, remedy)];
}
