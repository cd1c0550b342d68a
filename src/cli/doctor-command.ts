// The command `nanobot doctor`: finds problems and says how to fix them. It fixes only local
// permissions, and only with `--fix`.

import { Command } from 'commander';
import type { LoadedConfig } from '../kernel/config/files/config-file.ts';
import type { OpenedState } from '../kernel/home-state.ts';
import { t } from '../lib/texts.ts';
import { type Finding, fail } from './doctor/machine-checks.ts';
import { explainError } from './explain-error.ts';
import { CommandFailure, EXIT, type Terminal } from './terminal.ts';

type DoctorFlags = { readonly live?: boolean; readonly fix?: boolean; readonly json?: boolean };

const SIGNS = { ok: '✓', warn: '!', fail: '✗' } as const;
const COLORS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;
const CHECK_COLUMNS = 16;
const NOT_CHECKED = t`Not checked. Fix this first, then run "nanobot doctor" again.`;

export function doctorCommand(terminal: Terminal): Command {
  return new Command('doctor')
    .description(t`find problems and say how to fix them`)
    .option('--live', t`also send a test request to the model and to the voice servers`)
    .option('--fix', t`make files private that other users can read`)
    .option('--json', t`print as JSON`)
    .action((flags: DoctorFlags) => examine(terminal, flags));
}

async function examine(terminal: Terminal, { live, fix, json }: DoctorFlags) {
  const found = await allFindings(terminal, live === true);
  const findings = fix === true ? await Promise.all(found.map(repair)) : found;
  if (json === true) terminal.printJson(findings.map(({ fix: _fix, ...finding }) => finding));
  else for (const finding of findings) printFinding(terminal, finding);
  const levels = findings.map((finding) => finding.level);
  if (levels.includes('fail')) throw new CommandFailure(EXIT.failure);
  if (levels.includes('warn')) throw new CommandFailure(EXIT.warnings);
}

async function allFindings(terminal: Terminal, isLive: boolean): Promise<readonly Finding[]> {
  const stack = new AsyncDisposableStack();
  try {
    return await look(terminal, isLive, stack);
  } finally {
    await stack.disposeAsync();
  }
}

/**
 * Configuration, store and gateway first: without a valid configuration nothing else is checked.
 */
async function look(
  terminal: Terminal,
  isLive: boolean,
  stack: AsyncDisposableStack,
): Promise<readonly Finding[]> {
  const machine = await import('./doctor/machine-checks.ts');
  const gateway = await import('./doctor/gateway-checks.ts');
  const { home, env } = terminal;
  const failed = (check: string) => (error: unknown) => {
    const [text = ''] = explainError(error, env, home);
    return [fail(check, text.replace(/^nanobot: /, ''), NOT_CHECKED)];
  };
  const { findings, loaded } = await gateway.checkConfigFile(terminal);
  const store = await gateway
    .checkState(terminal, stack)
    .catch((error: unknown) => ({ findings: failed('store')(error), state: undefined }));
  const token = loaded?.config.gateway.token ?? '';
  const base = [
    machine.checkNode(process.versions.node),
    ...(await machine.checkPermissions(terminal)),
    ...(await machine.checkHome(home)),
    await machine.checkDisk(home),
    ...findings,
    ...store.findings,
    ...(await gateway.checkGateway(terminal, token).catch(failed('gateway'))),
  ];
  if (loaded === undefined) return base;
  const checks = await loadedChecks(terminal, loaded, store.state, isLive);
  const found = await Promise.all(
    checks.map(async ([name, check]) => {
      try {
        return await check();
      } catch (error) {
        return failed(name)(error);
      }
    }),
  );
  return [...base, ...found.flat()];
}

type Check = () => Finding | readonly Finding[] | Promise<Finding | readonly Finding[]>;

/** The checks by name, in the order in which they are shown. */
async function loadedChecks(
  terminal: Terminal,
  loaded: LoadedConfig,
  state: OpenedState | undefined,
  isLive: boolean,
): Promise<readonly (readonly [name: string, check: Check])[]> {
  const machine = await import('./doctor/machine-checks.ts');
  const gateway = await import('./doctor/gateway-checks.ts');
  const checks = await import('./doctor/checks.ts');
  const prices = await import('../features/spending/doctor.ts');
  const voice = await import('../features/voice/doctor.ts');
  const tools = await import('../features/mcp/doctor.ts');
  const skills = await import('../features/skills/doctor.ts');
  const memory = await import('../features/memory/doctor.ts');
  const whatsapp = await import('../channels/whatsapp/doctor.ts');
  const { config } = loaded;
  const now = terminal.clock.now();
  return [
    [t`time zone`, () => machine.checkTimeZone(terminal, config.sessions.timeZone)],
    ['address', () => checks.checkAddress(terminal, config)],
    ['secrets', () => gateway.checkSecrets(loaded)],
    ['web', () => gateway.checkWeb(config)],
    ['accounts', () => checks.checkAccounts(terminal.home, config, state)],
    ['access', () => gateway.checkAccess(config, state)],
    ['approvals', async () => [await gateway.checkApprovals(config, state)]],
    ['whatsapp', () => whatsapp.checkWhatsAppLink(config, state, now)],
    ['proxy', () => checks.checkProxies(config, terminal.env)],
    ['model', () => checks.checkModel(terminal, config, isLive)],
    ['prices', () => prices.checkPrices(terminal, config)],
    ['telegram', () => checks.checkTelegram(config)],
    ['lark', () => checks.checkLark(config)],
    ['email', () => checks.checkMailboxes(config, state)],
    ['voice', () => voice.checkVoice(terminal, config, isLive)],
    ['exec', () => checks.checkExec(terminal, config)],
    ['tools', () => tools.checkTools(terminal, config.gateway.token)],
    ['skills', () => skills.checkSkills(terminal)],
    ['memory', () => memory.checkMemories(config.agents.defaults.workspace)],
  ];
}

async function repair(finding: Finding): Promise<Finding> {
  if (finding.fix === undefined) return finding;
  await finding.fix();
  return { check: finding.check, level: 'ok', text: t`${finding.text}; fixed` };
}

function printFinding(terminal: Terminal, { check, level, text, remedy }: Finding) {
  const sign = terminal.style(COLORS[level], SIGNS[level]);
  terminal.tell(`${sign} ${check.padEnd(CHECK_COLUMNS)} ${text}`);
  if (remedy !== undefined) terminal.tell(`${' '.repeat(CHECK_COLUMNS + 3)}${remedy}`);
}
