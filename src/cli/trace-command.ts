// `nanobot trace`: the life of one message, with the gate that stopped it if one did.

import { Command } from 'commander';
import type { Trace } from '../bus/bus.ts';
import { messageId } from '../core/ids.ts';
import { CommandFailure, EXIT } from './exit-codes.ts';
import { momentText } from './moment.ts';
import type { Terminal } from './terminal.ts';
import { printable } from './text-table.ts';
import { withState } from './with-state.ts';

export function traceCommand(terminal: Terminal): Command {
  return new Command('trace')
    .description('the life of a message: what happened to it, and when')
    .argument('<message>', 'its id, that of its turn, or "last" for the newest one that came in')
    .option('--json', 'as JSON')
    .action((id: string, { json }: { readonly json?: boolean }) =>
      trace(terminal, id, json === true),
    );
}

async function trace(terminal: Terminal, id: string, json: boolean) {
  const wanted = id === 'last' ? id : messageId(id);
  const found = await withState(terminal, ({ store }) => store.trace(wanted));
  if (found === undefined) throw new CommandFailure(EXIT.notFound, `no message ${id} is known`);
  if (json) return terminal.printJson(found);
  for (const line of traceLines(found)) terminal.print(line);
}

function traceLines(trace: Trace): readonly string[] {
  const start = trace.steps.at(0)?.at ?? 0;
  return [
    `${trace.direction} ${trace.id}  ${trace.state}`,
    `  in ${trace.session}${trace.turnId === undefined ? '' : `, turn ${trace.turnId}`}`,
    ...trace.steps.map(({ at, what, detail }) => {
      const more = detail === undefined ? '' : `: ${printable(detail)}`;
      return `  ${momentText(at)}  +${at - start} ms  ${what}${more}`;
    }),
    ...trace.answers.flatMap(traceLines).map((line) => `  ${line}`),
  ];
}
