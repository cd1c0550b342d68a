// The command `nanobot agents`: profiles and subagents, with or without a running gateway.

import { Command } from 'commander';
import { chatNames, chatText } from '../../cli/chat-names.ts';
import { printable, type Terminal, withState } from '../../cli/terminal.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { OpenRows } from '../../kernel/rows.ts';
import { t } from '../../lib/texts.ts';
import type { SubagentRun } from './rules/subagent.ts';

export function agentsCommand(terminal: Terminal): Command {
  const command = new Command('agents').description(t`subagents and their profiles`);
  command
    .command('list')
    .description(t`list all profiles and recent subagents`)
    .option('--json', t`print as JSON`)
    .action(({ json }: { readonly json?: boolean }) => list(terminal, json === true));
  return command;
}

async function list(terminal: Terminal, json: boolean): Promise<void> {
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { config } = await loadConfig(terminal.home, terminal.env);
  const { profiles, runs, figures } = await withState(terminal, ({ rows }) =>
    stored(rows, terminal, config),
  );
  if (json) {
    const read = profiles.map((each) =>
      each.kind === 'valid' ? { kind: each.kind, profile: each.value } : each,
    );
    return terminal.printJson({ profiles: read, runs: runs.map(runJson), figures });
  }
  for (const profile of profiles) {
    const { name, description } =
      profile.kind === 'valid'
        ? profile.value
        : { name: profile.name, description: t`cannot be used: ${profile.problem}` };
    terminal.print(t`profile ${printable(name)}: ${printable(description)}`);
  }
  if (profiles.length === 0) terminal.note(t`No profiles in the workspace.`);
  const { subagentLine } = await import('./rules/subagent.ts');
  const names = await chatNames(
    terminal,
    runs.map(({ parent }) => parent.session),
  );
  for (const run of runs) {
    const line = subagentLine(run, terminal.clock.now());
    terminal.print(`${printable(line)} [${chatText(names, run.parent.session)}]`);
  }
  if (runs.length === 0) terminal.note('No subagents.');
  for (const line of figures) terminal.print(printable(line));
}

/** The profiles, the runs outside of series, and the figures of votes and earlier runs. */
async function stored(rows: OpenRows, { home }: Terminal, config: Config) {
  const { createGuardedFiles } = await import('../../lib/files/guarded-files.ts');
  const { Calibrator, Votes } = await import('./learnt.ts');
  const { openSubagents } = await import('./personal-data.ts');
  const { createProfileFiles } = await import('./terms.ts');
  const files = createGuardedFiles({ forbidden: [home.root] });
  const calibrator = new Calibrator(rows, () => config);
  const all = await openSubagents(rows).runs.list();
  return {
    profiles: await createProfileFiles(files, () => config.agents.defaults.workspace).list(),
    runs: all.filter(({ series }) => series === undefined),
    figures: [...(await new Votes(rows).lines()), ...(await calibrator.lines())],
  };
}

function runJson({ id, label, plan, parent, state, startedAt, endedAt, result }: SubagentRun) {
  const shown = { id, label, kind: plan.kind, session: parent.session, state, startedAt };
  return { ...shown, endedAt, result };
}
