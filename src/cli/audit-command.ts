// `nanobot audit`: what was done with effects, and whether the account of it was touched. Runs beside
// the gateway.

import { Command } from 'commander';
import { CommandFailure, EXIT } from './exit-codes.ts';
import { parseCount } from './flag-values.ts';
import { momentText } from './moment.ts';
import type { Terminal } from './terminal.ts';
import { printable } from './text-table.ts';
import { withState } from './with-state.ts';

const DEFAULT_SHOWN = 50;

export function auditCommand(terminal: Terminal): Command {
  const command = new Command('audit').description('what was done with effects');
  command
    .command('verify')
    .description('check that no entry was changed, taken out or put in')
    .action(() => verify(terminal));
  command
    .command('show')
    .description('the newest entries')
    .option('--limit <count>', 'at most so many', parseCount, DEFAULT_SHOWN)
    .option('--json', 'as JSON, one a line')
    .action((flags: { readonly limit: number; readonly json?: boolean }) => show(terminal, flags));
  return command;
}

async function verify(terminal: Terminal) {
  const { AUDIT_SCOPE } = await import('../app/build-telemetry.ts');
  const { verifyAudit } = await import('../telemetry/audit-file.ts');
  const verdict = await withState(terminal, ({ store }) =>
    verifyAudit(terminal.home.audit, store.scope(AUDIT_SCOPE)),
  );
  if (verdict.kind === 'intact') {
    terminal.tell(`${verdict.entries} entries, all as they were written.`);
    return;
  }
  const { file, line, problem } = verdict;
  throw new CommandFailure(EXIT.failure, `${file}, line ${line}: ${problem}`);
}

async function show(
  terminal: Terminal,
  { limit, json }: { readonly limit: number; readonly json?: boolean },
) {
  const { auditLines } = await import('../telemetry/audit-file.ts');
  const { readLine } = await import('../telemetry/audit-chain.ts');
  const newest: string[] = [];
  for await (const { text } of auditLines(terminal.home.audit)) {
    newest.push(text);
    if (newest.length > limit) newest.shift();
  }
  for (const text of newest) {
    const entry = json === true ? undefined : readLine(text);
    if (entry === undefined) terminal.print(printable(text));
    else {
      const fields = Object.entries(entry.fields).map(([name, value]) => `${name}=${value}`);
      const at = momentText(Date.parse(entry.at));
      terminal.print(printable(`${at}  ${entry.kind}  ${fields.join(' ')}`));
    }
  }
  if (newest.length === 0) terminal.note('Nothing was done with effects yet.');
}
