// The command line: the table of commands and what happens when one fails. Each command is one
// file; what it needs it imports when it runs, so that `--help` starts at once.

import { Command, CommanderError } from 'commander';
import { programVersion } from '../kernel/config/files/package-files.ts';
import { EXIT, EXIT_MEANINGS, exitCodeOf } from './exit-codes.ts';
import { explainError } from './explain-error.ts';
import { dressHelp } from './help-text.ts';
import type { Terminal } from './terminal.ts';

/** Builds one command; its action throws what goes wrong. */
export type CommandFactory = (terminal: Terminal) => Command;

/** Each is loaded when it is asked for: a gateway has no need of the others. */
const COMMANDS: Readonly<Record<string, () => Promise<CommandFactory>>> = {
  onboard: async () => (await import('./onboard-command.ts')).onboardCommand,
  import: async () => (await import('../features/import/cli.ts')).importCommand,
  gateway: async () => (await import('./gateway-command.ts')).gatewayCommand,
  agent: async () => (await import('./agent-command.ts')).agentCommand,
  link: async () => (await import('./link-command.ts')).linkCommand,
  telegram: async () => (await import('./one-channel-commands.ts')).telegramCommand,
  email: async () => (await import('./one-channel-commands.ts')).emailCommand,
  whatsapp: async () => (await import('./one-channel-commands.ts')).whatsAppCommand,
  lark: async () => (await import('./one-channel-commands.ts')).larkCommand,
  status: async () => (await import('./status-command.ts')).statusCommand,
  usage: async () => (await import('../features/spending/cli.ts')).usageCommand,
  doctor: async () => (await import('./doctor-command.ts')).doctorCommand,
  selftest: async () => (await import('../features/health/cli.ts')).selfTestCommand,
  channels: async () => (await import('./channels-command.ts')).channelsCommand,
  pair: async () => (await import('../features/people/pair-cli.ts')).pairCommand,
  approvals: async () => (await import('../features/approvals/cli.ts')).approvalsCommand,
  people: async () => (await import('../features/people/cli.ts')).peopleCommand,
  cron: async () => (await import('../features/schedule/cli.ts')).cronCommand,
  memory: async () => (await import('../features/memory/cli.ts')).memoryCommand,
  sessions: async () => (await import('./sessions-command.ts')).sessionsCommand,
  skills: async () => (await import('../features/skills/cli.ts')).skillsCommand,
  agents: async () => (await import('../features/subagents/cli.ts')).agentsCommand,
  cluster: async () => (await import('../features/cluster/cli.ts')).clusterCommand,
  workflows: async () => (await import('../features/workflows/cli.ts')).workflowsCommand,
  specialists: async () =>
    (await import('../features/subagents/specialists-cli.ts')).specialistsCommand,
  trace: async () => (await import('./trace-command.ts')).traceCommand,
  dead: async () => (await import('./dead-command.ts')).deadCommand,
  audit: async () => (await import('./audit-command.ts')).auditCommand,
  eval: async () => (await import('../labs/eval/cli.ts')).evalCommand,
  replay: async () => (await import('../labs/replay/cli.ts')).replayCommand,
  tune: async () => (await import('../labs/tune/cli.ts')).tuneCommand,
  mcp: async () => (await import('../features/mcp/cli.ts')).mcpCommand,
  config: async () => (await import('./config-command.ts')).configCommand,
};

/** Runs one command line. Resolves with the exit code once everything is said. */
export async function runCli(argv: readonly string[], terminal: Terminal): Promise<number> {
  const program = createProgram(await commandsFor(argv), terminal);
  try {
    await program.parseAsync(argv, { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    for (const line of explainError(error, terminal.env, terminal.home)) terminal.note(line);
    return exitCodeOf(error);
  }
}

/** All of them where the one meant is not named: help lists them, a slip of the pen is near one of them. */
async function commandsFor([name = '']: readonly string[]): Promise<readonly CommandFactory[]> {
  const asked = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  const loaders = asked === undefined ? Object.values(COMMANDS) : [asked];
  return Promise.all(loaders.map((load) => load()));
}

function createProgram(commands: readonly CommandFactory[], terminal: Terminal): Command {
  const program = new Command('nanobot')
    .description(
      'One AI agent you reach by Telegram, WhatsApp, Lark, email, a web page and the terminal.',
    )
    .version(programVersion(), '-V, --version')
    .addHelpText('after', `\nExit codes:\n${exitCodeLines().join('\n')}`);
  for (const command of commands) program.addCommand(command(terminal));
  settle(program);
  dressHelp(program, terminal.typed);
  return program;
}

/** Errors come back to us instead of ending the process. */
function settle(command: Command): void {
  command.exitOverride();
  for (const child of command.commands) {
    child.copyInheritedSettings(command);
    settle(child);
  }
}

function exitCodeLines(): readonly string[] {
  return EXIT_MEANINGS.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`);
}
