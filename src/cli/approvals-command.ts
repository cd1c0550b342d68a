// `nanobot approvals`: calls that wait for an owner's yes. The yes itself is given in a chat.

import { Command } from 'commander';
import { momentText } from './moment.ts';
import type { Terminal } from './terminal.ts';
import { printable } from './text-table.ts';
import { withState } from './with-state.ts';

export function approvalsCommand(terminal: Terminal): Command {
  return new Command('approvals')
    .description('calls that wait for an owner’s yes')
    .option('--json', 'as JSON')
    .action(({ json }: { readonly json?: boolean }) => listApprovals(terminal, json === true));
}

async function listApprovals(terminal: Terminal, json: boolean) {
  const { APPROVALS_SCOPE, ApprovalBook } = await import('../gateway/approval-book.ts');
  const open = await withState(terminal, ({ store }) =>
    new ApprovalBook(store.scope(APPROVALS_SCOPE)).open(),
  );
  if (json) {
    const shown = open.map(({ id, tool, arguments: call, session, asker, at }) => {
      return { id, tool, arguments: call, session, asker, at };
    });
    return terminal.printJson(shown);
  }
  if (open.length === 0) terminal.note('Nothing waits for a yes.');
  for (const { tool, arguments: call, session, asker, at } of open) {
    terminal.print(`${momentText(at)}  ${tool}  in ${session}, asked by ${asker}`);
    terminal.print(`  ${printable(call)}`);
  }
}
