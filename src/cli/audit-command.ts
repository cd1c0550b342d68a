// `nanobot audit`: what was done with effects, and whether the account of it was touched. Runs beside
// the gateway.

import { Command } from 'commander';
import type { AuditLine } from '../kernel/observe/audit-chain.ts';
import { chatNames, chatText } from './chat-names.ts';
import { CommandFailure, EXIT } from './exit-codes.ts';
import { momentText, parseLimit } from './flag-values.ts';
import type { Terminal } from './terminal.ts';
import { printable } from './terminal.ts';
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
    .option('--limit <count>', 'at most so many', parseLimit, DEFAULT_SHOWN)
    .option('--json', 'as JSON, one a line')
    .action((flags: { readonly limit: number; readonly json?: boolean }) => show(terminal, flags));
  return command;
}

async function verify(terminal: Terminal) {
  const { AUDIT_SCOPE } = await import('../kernel/observe/build-telemetry.ts');
  const { verifyAudit } = await import('../kernel/observe/audit-verify.ts');
  const verdict = await withState(terminal, ({ store }) =>
    verifyAudit(terminal.home.audit, store.scope(AUDIT_SCOPE)),
  );
  if (verdict.kind === 'intact') {
    terminal.tell(`${verdict.entries} entries, all as they were written.`);
    tellUnfinished(terminal, verdict.unfinished);
    return;
  }
  const { file, line, problem } = verdict;
  throw new CommandFailure(EXIT.failure, `${file}, line ${line}: ${problem}`);
}

/** What a killed process had begun, and what is under way. */
function tellUnfinished(terminal: Terminal, unfinished: readonly AuditLine[]): void {
  if (unfinished.length === 0) return;
  const count = unfinished.length === 1 ? '1 call was' : `${unfinished.length} calls were`;
  terminal.tell(`${count} begun without a word of the outcome: under way, or cut off by a kill.`);
  for (const line of unfinished.slice(-DEFAULT_SHOWN)) terminal.print(entryText(line));
}

const sessionOf = (line: AuditLine | undefined): readonly string[] => {
  const session = line?.fields['session'];
  return typeof session === 'string' ? [session] : [];
};

const entryText = (line: AuditLine, names: ReadonlyMap<string, string> = new Map()) => {
  const { at, kind, fields } = line;
  const [session] = sessionOf(line);
  const shown = session === undefined ? fields : { ...fields, session: chatText(names, session) };
  const told = Object.entries(shown).map(([name, value]) => `${name}=${value}`);
  return printable(`${momentText(Date.parse(at))}  ${kind}  ${told.join(' ')}`);
};

async function show(
  terminal: Terminal,
  { limit, json }: { readonly limit: number; readonly json?: boolean },
) {
  const { auditLines } = await import('../kernel/observe/audit-verify.ts');
  const { readLine } = await import('../kernel/observe/audit-chain.ts');
  const newest: string[] = [];
  for await (const { text } of auditLines(terminal.home.audit)) {
    if (text === '') continue;
    newest.push(text);
    if (newest.length > limit) newest.shift();
  }
  const entries = newest.map((text) => (json === true ? undefined : readLine(text)));
  const names = await chatNames(terminal, entries.flatMap(sessionOf));
  for (const [at, entry] of entries.entries()) {
    terminal.print(entry === undefined ? printable(newest[at] ?? '') : entryText(entry, names));
  }
  if (newest.length === 0) terminal.note('Nothing was done with effects yet.');
}
