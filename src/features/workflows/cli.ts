// The command `nanobot workflows`: lists and validates workflows and capabilities, and shows runs,
// with or without a running gateway.

import { Command } from 'commander';
import { chatNames, chatText } from '../../cli/chat-names.ts';
import { CommandFailure, EXIT, printable, type Terminal, withState } from '../../cli/terminal.ts';
import { t } from '../../lib/texts.ts';

export function workflowsCommand(terminal: Terminal): Command {
  const command = new Command('workflows').description(
    t`workflows of the workspace and their runs`,
  );
  command
    .command('list')
    .description(t`list all workflows and capabilities`)
    .option('--json', t`print as JSON`)
    .action(({ json }: { readonly json?: boolean }) => list(terminal, json === true));
  command
    .command('validate')
    .description(t`check the files and list every problem`)
    .action(() => validate(terminal));
  command
    .command('runs')
    .description(t`list recent runs`)
    .option('--json', t`print as JSON`)
    .action(({ json }: { readonly json?: boolean }) => runs(terminal, json === true));
  command
    .command('show')
    .description(t`print a run with its state as JSON`)
    .argument('<run>', t`id from "workflows runs"`)
    .action((id: string) => show(terminal, id));
  return command;
}

async function filesOf(terminal: Terminal) {
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { openWorkflowFiles } = await import('./open-workflows.ts');
  const { config } = await loadConfig(terminal.home, terminal.env);
  return openWorkflowFiles(terminal.home, config.agents.defaults.workspace);
}

async function list(terminal: Terminal, json: boolean): Promise<void> {
  const { workflows, capabilities, lines } = await filesOf(terminal);
  if (json) return terminal.printJson({ workflows, capabilities });
  for (const line of lines) terminal.print(printable(line));
  if (lines.length === 0) terminal.note(t`No workflows in the workspace.`);
}

/** @throws CommandFailure where a file cannot be used. */
async function validate(terminal: Terminal): Promise<void> {
  const { workflows, capabilities } = await filesOf(terminal);
  const all = [...workflows, ...capabilities];
  const problems = new Set(
    all.flatMap((each) => (each.kind === 'broken' ? [each.problem, ...(each.more ?? [])] : [])),
  );
  if (problems.size > 0) {
    throw new CommandFailure(EXIT.usage, [...problems].map(printable).join('\n'));
  }
  terminal.note(t`All valid: ${workflows.length} workflows, ${capabilities.length} capabilities.`);
}

async function runs(terminal: Terminal, json: boolean): Promise<void> {
  const { inspected, workflowLine } = await import('./rules/workflow.ts');
  const found = await runsOf(terminal);
  if (json) return terminal.printJson(found.map(inspected));
  const homes = found.map(({ starter }) => starter.home);
  const sessions = homes.flatMap((home) => (home.kind === 'chat' ? [home.session] : []));
  const names = await chatNames(terminal, sessions);
  for (const run of found) {
    const { home } = run.starter;
    const place = home.kind === 'chat' ? chatText(names, home.session) : t`job ${home.job}`;
    terminal.print(`${printable(workflowLine(run, terminal.clock.now()))} [${place}]`);
  }
  if (found.length === 0) terminal.note('No runs.');
}

/** Stored runs contain no secrets. */
const runsOf = (terminal: Terminal) =>
  withState(terminal, async ({ rows }) => {
    const { openWorkflowRows } = await import('./workflow-rows.ts');
    return openWorkflowRows(rows, (text) => text).runs.list();
  });

/** @throws CommandFailure where there is no such run. */
async function show(terminal: Terminal, id: string): Promise<void> {
  const { inspected } = await import('./rules/workflow.ts');
  const run = (await runsOf(terminal)).find((each) => each.id === id);
  if (run === undefined)
    throw new CommandFailure(EXIT.notFound, t`there is no run "${printable(id)}"`);
  terminal.printJson(inspected(run));
}
