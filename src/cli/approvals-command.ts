// `nanobot approvals`: calls that wait for an owner's yes, and the yeses that hold for longer than once,
// which can be taken back here. A yes itself is given in a chat.

import { Command } from 'commander';
import type { Approval } from '../gateway/approval-book.ts';
import type { ShownYes } from '../gateway/standing-list.ts';
import { CommandFailure, EXIT } from './exit-codes.ts';
import { momentText } from './moment.ts';
import type { Terminal } from './terminal.ts';
import { printable } from './text-table.ts';
import { withState } from './with-state.ts';

const SHOWN_ID_CHARS = 8;

type Json = { readonly json?: boolean };

export function approvalsCommand(terminal: Terminal): Command {
  const command = new Command('approvals').description('calls that wait for an owner’s yes');
  command
    .command('list', { isDefault: true })
    .description('what waits, and what is always allowed')
    .option('--json', 'as JSON')
    .action(({ json }: Json) => listApprovals(terminal, json === true));
  command
    .command('revoke')
    .description('take back what is always allowed')
    .argument('<id>', 'its id or the beginning of it; all: each of them')
    .action((id: string) => revoke(terminal, id));
  return command;
}

async function listApprovals(terminal: Terminal, json: boolean) {
  const [{ APPROVALS_SCOPE, ApprovalBook }, { StandingBook }, { shownYeses }, { loadConfig }] =
    await Promise.all([
      import('../gateway/approval-book.ts'),
      import('../gateway/standing-book.ts'),
      import('../gateway/standing-list.ts'),
      import('../app/config.ts'),
    ]);
  const { config } = await loadConfig(terminal.home, terminal.env);
  const { alwaysDays } = config.tools.approvals;
  const { open, always } = await withState(terminal, async ({ store }) => {
    const state = store.scope(APPROVALS_SCOPE);
    return {
      open: await new ApprovalBook(state).open(),
      always: await shownYeses(new StandingBook(state), alwaysDays, terminal.clock.now()),
    };
  });
  if (json) return terminal.printJson([...open.map(waitingJson), ...always.map(alwaysJson)]);
  if (open.length === 0) terminal.note('Nothing waits for a yes.');
  for (const { tool, arguments: call, session, asker, at } of open) {
    terminal.print(`${momentText(at)}  ${tool}  in ${session}, asked by ${asker}`);
    terminal.print(`  ${printable(call)}`);
  }
  if (always.length > 0) terminal.note('Always allowed; "nanobot approvals revoke <id>" ends it:');
  for (const { yes, until, used } of always) {
    const { id, tool, session, asker, about, evenTainted } = yes;
    const when = evenTainted ? ', also after words of others' : '';
    const times = used === undefined ? 'not used yet' : `used ${used.uses} times`;
    terminal.print(
      `${id.slice(0, SHOWN_ID_CHARS)}  ${tool}  in ${session}, asked by ${asker}${when}; until ${momentText(until)}, ${times}`,
    );
    terminal.print(`  ${printable(about)}`);
  }
}

const waitingJson = ({ id, tool, arguments: call, session, asker, at }: Approval) => {
  return { state: 'waiting', id, tool, arguments: call, session, asker, at };
};

const alwaysJson = ({ yes, until, used }: ShownYes) => {
  const { id, tool, about, session, asker, evenTainted, by, givenAt: at } = yes;
  const shown = { state: 'always', id, tool, about, session, asker, evenTainted, by: by.id };
  return { ...shown, at, until, uses: used?.uses ?? 0 };
};

async function revoke(terminal: Terminal, id: string) {
  const [{ APPROVALS_SCOPE }, { StandingBook }, { takeBack }] = await Promise.all([
    import('../gateway/approval-book.ts'),
    import('../gateway/standing-book.ts'),
    import('../gateway/standing-list.ts'),
  ]);
  const taken = await withState(terminal, ({ store }) =>
    takeBack(new StandingBook(store.scope(APPROVALS_SCOPE)), id),
  );
  if (taken === 'several') {
    throw new CommandFailure(EXIT.usage, `several begin with ${id}; say more of it`);
  }
  if (taken === 0) throw new CommandFailure(EXIT.notFound, `nothing is always allowed as ${id}`);
  terminal.note(taken === 1 ? 'Taken back: an owner is asked again.' : `${taken} taken back.`);
}
