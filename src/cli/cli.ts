// The command line: the table of commands and what happens when one fails. Each command is one
// file; what it needs it imports when it runs, so that `--help` and the gateway start at once.

import { Command, CommanderError } from 'commander';
import { programVersion } from '../app/package-files.ts';
import { agentCommand } from './agent-command.ts';
import { agentsCommand } from './agents-command.ts';
import { approvalsCommand } from './approvals-command.ts';
import { auditCommand } from './audit-command.ts';
import { channelsCommand } from './channels-command.ts';
import { clusterCommand } from './cluster-command.ts';
import { configCommand } from './config-command.ts';
import { cronCommand } from './cron-command.ts';
import { deadCommand } from './dead-command.ts';
import { doctorCommand } from './doctor-command.ts';
import { evalCommand } from './eval-command.ts';
import { EXIT, EXIT_MEANINGS, exitCodeOf } from './exit-codes.ts';
import { explainError } from './explain-error.ts';
import { gatewayCommand } from './gateway-command.ts';
import { importCommand } from './import-command.ts';
import { linkCommand } from './link-command.ts';
import { mcpCommand } from './mcp-command.ts';
import { memoryCommand } from './memory-command.ts';
import { onboardCommand } from './onboard-command.ts';
import {
  emailCommand,
  larkCommand,
  telegramCommand,
  whatsAppCommand,
} from './one-channel-commands.ts';
import { pairCommand } from './pair-command.ts';
import { peopleCommand } from './people-command.ts';
import { replayCommand } from './replay-command.ts';
import { selfTestCommand } from './selftest-command.ts';
import { sessionsCommand } from './sessions-command.ts';
import { skillsCommand } from './skills-command.ts';
import { specialistsCommand } from './specialists-command.ts';
import { statusCommand } from './status-command.ts';
import type { Terminal } from './terminal.ts';
import { traceCommand } from './trace-command.ts';
import { tuneCommand } from './tune-command.ts';
import { asTyped } from './typed-command.ts';
import { usageCommand } from './usage-command.ts';
import { workflowsCommand } from './workflows-command.ts';

/** Builds one command; its action throws what goes wrong. */
export type CommandFactory = (terminal: Terminal) => Command;

const COMMANDS: readonly CommandFactory[] = [
  onboardCommand,
  importCommand,
  gatewayCommand,
  agentCommand,
  linkCommand,
  telegramCommand,
  emailCommand,
  whatsAppCommand,
  larkCommand,
  statusCommand,
  usageCommand,
  doctorCommand,
  selfTestCommand,
  channelsCommand,
  pairCommand,
  approvalsCommand,
  peopleCommand,
  cronCommand,
  memoryCommand,
  sessionsCommand,
  skillsCommand,
  agentsCommand,
  clusterCommand,
  workflowsCommand,
  specialistsCommand,
  traceCommand,
  deadCommand,
  auditCommand,
  evalCommand,
  replayCommand,
  tuneCommand,
  mcpCommand,
  configCommand,
];

/** Runs one command line. Resolves with the exit code once everything is said. */
export async function runCli(argv: readonly string[], terminal: Terminal): Promise<number> {
  const program = createProgram(terminal);
  try {
    await program.parseAsync(argv, { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    for (const line of explainError(error, terminal.env, terminal.home)) terminal.note(line);
    return exitCodeOf(error);
  }
}

function createProgram(terminal: Terminal): Command {
  const program = new Command('nanobot')
    .description(
      'One AI agent you reach by Telegram, WhatsApp, Lark, email, a web page and the terminal.',
    )
    .version(programVersion(), '-V, --version')
    .showHelpAfterError(asTyped('(nanobot --help lists the commands)', terminal.env))
    .addHelpText('after', `\nExit codes:\n${exitCodeLines().join('\n')}`);
  for (const command of COMMANDS) program.addCommand(command(terminal));
  settle(program);
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
