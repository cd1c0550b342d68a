// The command `nanobot nodes`: the processes of the gateway that share one database, with what each
// does and leads. (`nanobot cluster` is about machines that run models.)

import { Command } from 'commander';
import { t } from '../lib/texts.ts';
import { spanText } from './flag-values.ts';
import { CommandFailure, EXIT, type Terminal, textTable, withState } from './terminal.ts';

export const nodesCommand = (terminal: Terminal) =>
  new Command('nodes')
    .description(t`show the processes that share one PostgreSQL`)
    .option('--json', t`print as JSON`)
    .action(({ json }: { readonly json?: boolean }) => show(terminal, json === true));

async function show(terminal: Terminal, json: boolean): Promise<void> {
  const { nodeText } = await import('../kernel/status.ts');
  const nodes = await withState(terminal, async ({ store }) => store.nodes?.());
  if (nodes === undefined) {
    throw new CommandFailure(
      EXIT.failure,
      t`this gateway is one process. For several: store.engine postgres and storage.path`,
    );
  }
  if (json) return terminal.printJson(nodes);
  if (nodes.length === 0) return terminal.note(t`No process runs.`);
  const now = terminal.clock.now();
  const rows = nodes.map((node) => [
    node.name,
    t`version ${node.version}, up ${spanText(now - node.startedAt)}`,
    t`configuration ${node.config}`,
    nodeText(node),
  ]);
  for (const line of textTable(rows)) terminal.print(line);
  const tasks = nodes.flatMap(({ name, leads }) =>
    leads.filter((each) => each.includes(' ')).map((each) => [each, name]),
  );
  if (tasks.length === 0) return;
  terminal.print('');
  for (const line of textTable(tasks)) terminal.print(line);
}
