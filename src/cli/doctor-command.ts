// `nanobot doctor`: looks for what is wrong and says what to do about it. Mends only local
// permissions, and only when asked to.

import { Command } from 'commander';
import { type Finding, fail } from './doctor/finding.ts';
import { explainError } from './explain-error.ts';
import { CommandFailure, EXIT, type Terminal } from './terminal.ts';

type DoctorFlags = { readonly live?: boolean; readonly fix?: boolean; readonly json?: boolean };

const SIGNS = { ok: '✓', warn: '!', fail: '✗' } as const;
const COLORS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;
const CHECK_COLUMNS = 16;
const NOT_CHECKED = 'Correct that first; this could not be checked.';

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
  const { home } = terminal;
  const file = await gateway.checkConfigFile(terminal);
  const failed = (check: string, error: unknown): readonly Finding[] => {
    const [text = ''] = explainError(error, terminal.env, home);
    return [fail(check, text.replace(/^nanobot: /, ''), NOT_CHECKED)];
  };
  const found = (check: string, work: Promise<readonly Finding[]>) =>
    work.catch((error: unknown) => failed(check, error));
  const one = (check: string, work: Promise<Finding>) =>
    found(
      check,
      work.then((finding) => [finding]),
    );
  const store = await gateway
    .checkState(terminal, stack)
    .catch((error: unknown) => ({ findings: failed('store', error), state: undefined }));
  const base = [
    machine.checkNode(process.versions.node),
    ...(await machine.checkPermissions(terminal)),
    ...(await machine.checkHome(home)),
    await machine.checkDisk(home),
    ...file.findings,
    ...store.findings,
    ...(await found(
      'gateway',
      gateway.checkGateway(terminal, file.loaded?.config.gateway.token ?? ''),
    )),
  ];
  if (file.loaded === undefined) return base;
  const checks = await import('./doctor/checks.ts');
  const prices = await import('../features/spending/doctor.ts');
  const voice = await import('../features/voice/doctor.ts');
  const tools = await import('../features/mcp/doctor.ts');
  const skills = await import('../features/skills/doctor.ts');
  const memory = await import('../features/memory/doctor.ts');
  const whatsapp = await import('../channels/whatsapp/doctor.ts');
  const loaded = file.loaded.config;
  const asked = await Promise.all([
    one('model', checks.checkModel(terminal, loaded, isLive)),
    one('prices', prices.checkPrices(terminal, loaded)),
    found('telegram', checks.checkTelegram(loaded)),
    found('lark', checks.checkLark(loaded)),
    found('email', checks.checkMailboxes(loaded)),
    found('voice', voice.checkVoice(terminal, loaded, isLive)),
    one('exec', checks.checkExec(terminal, loaded)),
    found('tools', tools.checkTools(terminal, loaded.gateway.token)),
    found('skills', skills.checkSkills(terminal)),
    found('memory', memory.checkMemories(loaded.agents.defaults.workspace)),
  ]);
  return [
    ...base,
    ...machine.checkTimeZone(terminal, loaded.sessions.timeZone),
    ...(await one('address', checks.checkAddress(terminal, loaded))),
    gateway.checkSecrets(file.loaded),
    ...gateway.checkWeb(loaded),
    ...(await found('accounts', checks.checkAccounts(home, loaded, store.state))),
    ...(await found('access', gateway.checkAccess(loaded, store.state))),
    ...(await found(
      'whatsapp',
      whatsapp.checkWhatsAppLink(loaded, store.state, terminal.clock.now()),
    )),
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
