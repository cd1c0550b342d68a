// The command line: the table of commands, each loaded when it is needed, their help with examples,
// and how a failed command ends.

import { Command, CommanderError } from 'commander';
import { programVersion } from '../kernel/config/files/home.ts';
import type { Typed } from '../kernel/typed-command.ts';
import { t } from '../lib/texts.ts';
import { explainError } from './explain-error.ts';
import { EXIT, EXIT_MEANINGS, exitCodeOf, type Terminal } from './terminal.ts';

const GROUPS: readonly (readonly [heading: string, commands: readonly string[]])[] = [
  [t`Set up`, ['onboard', 'import', 'channels', 'config']],
  [
    t`Run and talk`,
    ['gateway', 'service', 'agent', 'link', 'telegram', 'email', 'whatsapp', 'lark'],
  ],
  [
    t`Status and problems`,
    ['status', 'nodes', 'doctor', 'update', 'support-bundle', 'selftest', 'usage'],
  ],
  [t`People`, ['pair', 'people', 'approvals']],
  [
    t`What the agent knows and does`,
    ['memory', 'skills', 'sessions', 'cron', 'agents', 'workflows', 'specialists', 'mcp'],
  ],
  [t`What happened`, ['trace', 'dead', 'audit', 'replay']],
  [t`Models`, ['tune', 'eval', 'cluster']],
  [t`Back-ups`, ['backup', 'move', 'store']],
];

const DESCRIPTION = t`One AI agent you reach by Telegram, WhatsApp, Lark, email, a web page and the terminal.`;

/** The commands that most people need; `nanobot help all` lists all. */
const FIRST_STEPS: readonly (readonly [command: string, summary: string])[] = [
  ['onboard', t`set up a model and the channels`],
  ['gateway', t`run all channels and the web page until you stop it`],
  ['agent', t`talk to the agent in this terminal`],
  ['status', t`show what is set up and what is running`],
  ['service', t`run the gateway as a service that survives logout and reboot`],
  ['backup', t`back up the home, verify and restore back-ups`],
  ['doctor', t`find problems and say how to fix them`],
  ['channels', t`connect Telegram, WhatsApp, Lark or a mailbox`],
  ['help all', t`list all commands`],
  ['help <command>', t`show the options of one command, with examples`],
];

/** The help of the program where not all commands are asked for. */
function firstHelp(typedAs: Typed): string {
  const typed = FIRST_STEPS.map(([command]) => `  ${typedAs(`nanobot ${command}`)}  `);
  const width = Math.max(...typed.map(({ length }) => length));
  const lines = FIRST_STEPS.map(([, summary], index) => typed[index]?.padEnd(width) + summary);
  return [DESCRIPTION, '', ...lines, ''].join('\n');
}

/** Groups the commands in the help; commands of no group come last. */
function dressHelp(program: Command, typedAs: Typed): void {
  for (const [heading, names] of GROUPS) {
    const commands = program.commands.filter((command) => names.includes(command.name()));
    for (const command of commands) command.helpGroup(`${heading}:`);
  }
  const help = new Command('help')
    .argument('[command]')
    .description(t`show the options of one command`);
  program.addHelpCommand(help.helpGroup('Help:'));
  addHelp(program, program.name(), typedAs);
}

/** Output into a file must not begin with npm's own lines. */
function lineOf(line: string, typedAs: Typed): string {
  const typed = typedAs(line).trimEnd();
  return line.includes(' > ') ? typed.replace('npm run ', 'npm run -s ') : typed;
}

function addHelp(command: Command, typed: string, typedAs: Typed): void {
  const more =
    command.parent === null ? t`help all lists all commands` : t`--help shows the options`;
  command.showHelpAfterError(typedAs(`(${typed} ${more})`));
  const examples = EXAMPLES[typed] ?? [];
  if (examples.length > 0) {
    const lines = examples.map((example) => `  ${lineOf(`${typed} ${example}`, typedAs)}`);
    command.addHelpText('after', `\nExamples:\n${lines.join('\n')}`);
  }
  for (const child of command.commands) addHelp(child, `${typed} ${child.name()}`, typedAs);
}

// Common calls, shown below the help of a command. A test parses every line.

/** What follows the command, as typed. */
export const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  'nanobot onboard': [
    '',
    t`--model anthropic/claude-sonnet-5-5 --api-key sk-ant-...`,
    t`--yes --model local/qwen3 --api-base http://192.168.1.5:8000/v1`,
    '--yes --telegram 123456:ABC-DEF --pair-wait 120',
  ],
  'nanobot import': ['~/.openclaw --dry-run', '~/.nanobot-python'],
  'nanobot gateway': ['', '--port 8080'],
  'nanobot service': ['install', 'install --system', 'logs --follow'],
  'nanobot agent': ['', t`-m "What is on my list today?"`, '-m - -s work < question.txt'],
  'nanobot doctor': ['', '--live', '--fix'],
  'nanobot support-bundle': ['', t`--to bundle.tar.gz`],
  'nanobot update': ['', '--check', '--to 1.4.0'],
  'nanobot backup create': [
    t`--to /media/disk/nanobot --every day --keep 7d4w6m`,
    '--to - > home.tar',
  ],
  'nanobot backup restore': ['--from /media/disk/nanobot', 'home.tar --into /srv/nanobot'],
  'nanobot move': [t`--to ann@server.example`, t`--to home.tar`],
  'nanobot store migrate': [t`--to postgres --url DATABASE_URL`, t`--to sqlite`],
  'nanobot usage': ['--days 7'],
  'nanobot channels login': ['telegram', 'whatsapp'],
  'nanobot pair approve': ['telegram 123456789'],
  'nanobot people set': [
    t`ann --language de --timezone Europe/Berlin`,
    'ann --messages-per-day 50',
  ],
  'nanobot cron add': [
    t`"Tell me the weather" --cron "0 7 * * 1-5"`,
    t`"Call the dentist" --at "in 20m" --say`,
  ],
  'nanobot sessions': [
    'list',
    t`search invoice march`,
    t`export telegram:42 --format jsonl > chat.jsonl`,
  ],
  'nanobot sessions purge': ['--older-than 90d'],
  'nanobot skills add': ['./my-skill', 'https://example.org/skill.zip'],
  'nanobot trace': ['last'],
  'nanobot replay': [t`telegram:42 --turn last --model openai/gpt-6-sol`],
  'nanobot mcp add': [
    '',
    t`memory -- npx -y @modelcontextprotocol/server-memory`,
    t`wiki --url https://wiki.example.org/mcp --key ...`,
  ],
  'nanobot tune': ['', '--apply'],
  'nanobot eval': [t`haystack --model ollama/qwen3:8b`, t`report --html report.html`],
  'nanobot config': [
    t`set agents.defaults.model openai/gpt-6-sol`,
    t`set providers.openai.apiKey '{"env": "OPENAI_API_KEY"}'`,
    'validate',
  ],
};

/** Builds one command; its action throws what goes wrong. */
type CommandFactory = (terminal: Terminal) => Command;

/** Each is loaded when it is called: a gateway does not need the others. */
const COMMANDS: Readonly<Record<string, () => Promise<CommandFactory>>> = {
  onboard: async () => (await import('./onboard-command.ts')).onboardCommand,
  import: async () => (await import('../features/import/cli.ts')).importCommand,
  gateway: async () => (await import('./gateway-command.ts')).gatewayCommand,
  service: async () => (await import('./service/service.ts')).serviceCommand,
  agent: async () => (await import('./agent-command.ts')).agentCommand,
  link: async () => (await import('./link-command.ts')).linkCommand,
  telegram: async () => (await import('./gateway-command.ts')).telegramCommand,
  email: async () => (await import('./gateway-command.ts')).emailCommand,
  whatsapp: async () => (await import('./gateway-command.ts')).whatsAppCommand,
  lark: async () => (await import('./gateway-command.ts')).larkCommand,
  status: async () => (await import('./status-command.ts')).statusCommand,
  nodes: async () => (await import('./nodes-command.ts')).nodesCommand,
  usage: async () => (await import('../features/spending/cli.ts')).usageCommand,
  update: async () => (await import('../features/update/cli.ts')).updateCommand,
  doctor: async () => (await import('./doctor-command.ts')).doctorCommand,
  'support-bundle': async () => (await import('./support-bundle.ts')).supportBundleCommand,
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
  trace: async () => (await import('./audit-command.ts')).traceCommand,
  dead: async () => (await import('./dead-command.ts')).deadCommand,
  audit: async () => (await import('./audit-command.ts')).auditCommand,
  eval: async () => (await import('../labs/eval/cli.ts')).evalCommand,
  replay: async () => (await import('../labs/replay/cli.ts')).replayCommand,
  tune: async () => (await import('../labs/tune/cli.ts')).tuneCommand,
  backup: async () => (await import('../features/backup/cli.ts')).backupCommand,
  move: async () => (await import('../features/backup/move.ts')).moveCommand,
  store: async () => (await import('../features/backup/store-cli.ts')).storeCommand,
  mcp: async () => (await import('../features/mcp/cli.ts')).mcpCommand,
  config: async () => (await import('./config-command.ts')).configCommand,
};

/** Runs one command line. Resolves with the exit code once all output is written. */
export async function runCli(typed: readonly string[], terminal: Terminal): Promise<number> {
  const wantsAll = typed[0] === 'help' && typed[1] === 'all';
  const argv = wantsAll ? typed : helpAsked(typed);
  const program = createProgram(await commandsFor(argv), terminal);
  if (wantsAll) program.addHelpText('after', t`\nExit codes:\n${exitCodeLines().join('\n')}`);
  else program.configureHelp({ formatHelp: () => firstHelp(terminal.typed) });
  try {
    await program.parseAsync(wantsAll ? ['--help'] : argv, { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    for (const line of explainError(error, terminal.env, terminal.home)) terminal.note(line);
    return exitCodeOf(error);
  }
}

/** `help cron add` as `cron add --help`, and `help xyz` as `xyz`, which is refused. */
function helpAsked(typed: readonly string[]): readonly string[] {
  const [first, ...named] = typed;
  if (first !== 'help' || named[0] === undefined) return typed;
  return Object.hasOwn(COMMANDS, named[0]) ? [...named, '--help'] : named.slice(0, 1);
}

/**
 * All commands where none is named exactly: for the list of commands, and for suggestions after a
 * typing error.
 */
async function commandsFor([name = '']: readonly string[]): Promise<readonly CommandFactory[]> {
  const asked = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  const loaders = asked === undefined ? Object.values(COMMANDS) : [asked];
  return Promise.all(loaders.map((load) => load()));
}

function createProgram(commands: readonly CommandFactory[], terminal: Terminal): Command {
  const program = new Command('nanobot')
    .description(DESCRIPTION)
    .version(programVersion(), '-V, --version');
  for (const command of commands) program.addCommand(command(terminal));
  settle(program);
  dressHelp(program, terminal.typed);
  return program;
}

/** Errors are thrown instead of ending the process. */
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
