// The command `nanobot specialists`: the declared specialists of the supervisor, shipped and from
// the home, and whether they can be used. Works with and without a running gateway.

import { Command } from 'commander';
import { CommandFailure, EXIT, printable, type Terminal } from '../../cli/terminal.ts';
import { t } from '../../lib/texts.ts';

export function specialistsCommand(terminal: Terminal): Command {
  const command = new Command('specialists').description(t`specialists of the mode "supervisor"`);
  command
    .command('list')
    .description(t`list all specialists with their models and tools`)
    .option('--json', t`print as JSON`)
    .action(({ json }: { readonly json?: boolean }) => list(terminal, json === true));
  command
    .command('validate')
    .description(t`check the files in config/agents and list every problem`)
    .action(() => validate(terminal));
  return command;
}

async function rosterOf({ home }: Terminal) {
  const { openAgentFiles } = await import('../modes/agent-files.ts');
  return openAgentFiles(home).roster();
}

async function list(terminal: Terminal, json: boolean): Promise<void> {
  const { agents, problems } = await rosterOf(terminal);
  if (json) return terminal.printJson({ agents, problems });
  for (const each of agents) {
    if (each.kind === 'broken') {
      terminal.print(printable(t`${each.name} cannot be used: ${each.problem}`));
      continue;
    }
    const { name, description, model, output, tools } = each.value;
    const means = tools.length === 0 ? t`no tools` : tools.join(', ');
    terminal.print(printable(`${name} (${model}, ${output}; ${means}): ${description}`));
  }
  for (const problem of problems) terminal.note(printable(problem));
}

/** @throws CommandFailure where a file cannot be used. */
async function validate(terminal: Terminal): Promise<void> {
  const { agents, problems } = await rosterOf(terminal);
  const broken = agents.flatMap((each) =>
    each.kind === 'broken' ? [each.problem, ...(each.more ?? [])] : [],
  );
  const all = [...broken, ...problems];
  if (all.length > 0) throw new CommandFailure(EXIT.usage, all.map(printable).join('\n'));
  terminal.note(t`All valid: ${agents.length} specialists.`);
}
