// `nanobot doctor`: looks for what is wrong and says what to do about it. Mends only local
// permissions, and only when asked to.

import { Command } from 'commander';
import type { Finding } from './doctor/finding.ts';
import { CommandFailure, EXIT } from './exit-codes.ts';
import type { Terminal } from './terminal.ts';

type DoctorFlags = { readonly live?: boolean; readonly fix?: boolean; readonly json?: boolean };

const SIGNS = { ok: '✓', warn: '!', fail: '✗' } as const;
const COLORS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;
const CHECK_COLUMNS = 16;

export function doctorCommand(terminal: Terminal): Command {
  return new Command('doctor')
    .description('look for what is wrong and say what to do')
    .option('--live', 'also ask the model for one word, and the voice servers')
    .option('--fix', 'make private what other users can reach')
    .option('--json', 'as JSON')
    .action((flags: DoctorFlags) => examine(terminal, flags));
}

async function examine(terminal: Terminal, { live, fix, json }: DoctorFlags) {
  const found = await allFindings(terminal, live === true);
  const findings = fix === true ? await Promise.all(found.map(mend)) : found;
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

async function look(
  terminal: Terminal,
  isLive: boolean,
  stack: AsyncDisposableStack,
): Promise<readonly Finding[]> {
  const machine = await import('./doctor/machine-checks.ts');
  const gateway = await import('./doctor/gateway-checks.ts');
  const config = await import('./doctor/config-checks.ts');
  const { home } = terminal;
  const file = await config.checkConfigFile(terminal);
  const store = await gateway.checkState(terminal, stack);
  const base = [
    machine.checkNode(process.versions.node),
    ...(await machine.checkPermissions(home)),
    ...(await machine.checkHome(home)),
    await machine.checkDisk(home),
    ...file.findings,
    ...store.findings,
    ...(await gateway.checkGateway(terminal, file.loaded?.config.gateway.token ?? '')),
  ];
  if (file.loaded === undefined) return base;
  const address = await import('./doctor/address-check.ts');
  const outside = await import('./doctor/outside-checks.ts');
  const prices = await import('./doctor/price-check.ts');
  const voice = await import('./doctor/voice-check.ts');
  const exec = await import('./doctor/exec-check.ts');
  const tools = await import('./doctor/tool-check.ts');
  const skills = await import('./doctor/skill-check.ts');
  const memory = await import('./doctor/memory-check.ts');
  const accounts = await import('./doctor/account-check.ts');
  const whatsapp = await import('./doctor/whatsapp-check.ts');
  const loaded = file.loaded.config;
  const asked = await Promise.all([
    outside.checkModel(terminal, loaded, isLive).then((finding) => [finding]),
    prices.checkPrices(terminal, loaded).then((finding) => [finding]),
    outside.checkTelegram(loaded),
    outside.checkLark(loaded),
    outside.checkMailboxes(loaded),
    voice.checkVoice(terminal, loaded, isLive),
    exec.checkExec(terminal, loaded).then((finding) => [finding]),
    tools.checkTools(terminal, loaded.gateway.token),
    skills.checkSkills(terminal),
    memory.checkMemories(loaded.agents.defaults.workspace),
  ]);
  return [
    ...base,
    await address.checkAddress(terminal, loaded),
    config.checkSecrets(file.loaded),
    ...config.checkWeb(loaded),
    ...(await accounts.checkAccounts(home, loaded, store.state)),
    ...(await config.checkAccess(loaded, store.state)),
    ...(await whatsapp.checkWhatsAppLink(loaded, store.state, terminal.clock.now())),
    ...asked.flat(),
  ];
}

async function mend(finding: Finding): Promise<Finding> {
  if (finding.fix === undefined) return finding;
  await finding.fix();
  return { check: finding.check, level: 'ok', text: `${finding.text}; mended` };
}

function printFinding(terminal: Terminal, { check, level, text, remedy }: Finding) {
  const sign = terminal.style(COLORS[level], SIGNS[level]);
  terminal.tell(`${sign} ${check.padEnd(CHECK_COLUMNS)} ${text}`);
  if (remedy !== undefined) terminal.tell(`${' '.repeat(CHECK_COLUMNS + 3)}${remedy}`);
}
