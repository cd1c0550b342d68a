// `nanobot agents`: the profiles of helpers and the helpers there are, with the gateway running or not.

import { Command } from 'commander';
import { chatNames, chatText } from '../../cli/chat-names.ts';
import { printable, type Terminal, withState } from '../../cli/terminal.ts';

export function agentsCommand(terminal: Terminal): Command {
  const command = new Command('agents').description('helpers of the agent, and their profiles');
  command
    .command('list')
    .description('all profiles, and the helpers of the last days')
    .option('--json', 'as JSON')
    .action(({ json }: { readonly json?: boolean }) => list(terminal, json === true));
  return command;
}

async function list(terminal: Terminal, json: boolean): Promise<void> {
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { openHelpers } = await import('./open-helpers.ts');
  const { config } = await loadConfig(terminal.home, terminal.env);
  const { profiles, runs, lines, figures } = await withState(terminal, (state) =>
    openHelpers(state, terminal, config),
  );
  if (json) return terminal.printJson({ profiles, runs, figures });
  for (const profile of profiles) {
    const { name, description } =
      profile.kind === 'valid'
        ? profile.profile
        : { name: profile.name, description: `cannot be used: ${profile.problem}` };
    terminal.print(`profile ${printable(name)}: ${printable(description)}`);
  }
  if (profiles.length === 0) terminal.note('There are no profiles in the workspace.');
  const names = await chatNames(
    terminal,
    lines.map(({ session }) => session),
  );
  for (const { text, session } of lines) {
    terminal.print(`${printable(text)} [${chatText(names, session)}]`);
  }
  if (lines.length === 0) terminal.note('There are no helpers.');
  for (const line of figures) terminal.print(printable(line));
}
