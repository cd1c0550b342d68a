// What the doctor asks of the configuration: that it loads, who can reach the gateway, who may talk.

import { existsSync } from 'node:fs';
import type { OpenedState } from '../../app/state.ts';
import { type ConfiguredAccount, configuredAccounts } from '../../channels/accounts.ts';
import { howToLogIn } from '../../channels/channel-reports.ts';
import { EVERYBODY } from '../../kernel/access/admission.ts';
import type { Config } from '../../kernel/config/config.ts';
import { type LoadedConfig, loadConfig } from '../../kernel/config/files/config-file.ts';
import { isPythonConfig } from '../../kernel/config/foreign-config.ts';
import { literalSecrets } from '../../kernel/config/secrets.ts';
import { accountPath } from '../../kernel/message/account.ts';
import { ConfigError } from '../../kernel/message/errors.ts';
import { explainSystemError, otherProgram, problemLine } from '../explain-error.ts';
import type { Terminal } from '../terminal.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

export type CheckedFile = {
  readonly findings: readonly Finding[];
  /** Undefined where it does not load. */
  readonly loaded: LoadedConfig | undefined;
};

export async function checkConfigFile({ home, env }: Terminal): Promise<CheckedFile> {
  try {
    const loaded = await loadConfig(home, env);
    const text = existsSync(home.config) ? `${home.config} loads` : 'none yet: the defaults count';
    return { findings: [ok('config', text)], loaded };
  } catch (error) {
    const refused = explainSystemError(error, home);
    if (refused !== undefined) {
      return { findings: [fail('config', refused, 'Then look again.')], loaded: undefined };
    }
    if (!(error instanceof ConfigError)) throw error;
    const remedy = existsSync(home.lastGoodConfig)
      ? `The last one that loaded is ${home.lastGoodConfig}.`
      : 'Correct it; "nanobot config validate" checks again.';
    if (isPythonConfig(error.problems.map(({ path }) => path))) {
      const text = `${home.config} is that of another program`;
      return { findings: [fail('config', text, otherProgram(home))], loaded: undefined };
    }
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
      ({ channel: door, role }) => door === account.channel && role !== 'blocked',
    ).length;
    return strangers === 'open'
      ? openFinding(account)
      : accessFinding(account, [...allowFrom, ...owners], paired);
  });
}

function openFinding(account: ConfiguredAccount): Finding {
  const remedy = `Set ${accountPath(account)}.strangers to "silent": you are asked about each of them.`;
  return warn(
    `${account.name} access`,
    'strangers may talk to the agent and spend its money',
    remedy,
  );
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
