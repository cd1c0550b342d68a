// How the help of the command line reads: commands under headings, examples, and after a slip the help
// that fits.

import { Command } from 'commander';
import type { Typed } from '../kernel/typed-command.ts';

const GROUPS: readonly (readonly [heading: string, commands: string])[] = [
  ['Set up', 'onboard import channels config'],
  ['Run and talk', 'gateway agent link telegram email whatsapp lark'],
  ['See how it fares', 'status doctor selftest usage'],
  ['People', 'pair people approvals'],
  ['What it knows and does', 'memory skills sessions cron agents workflows specialists mcp'],
  ['What happened', 'trace dead audit replay'],
  ['Models', 'tune eval cluster'],
];

/** For the program with all commands it has; those in no group stand at the end. */
export function dressHelp(program: Command, typedAs: Typed): void {
  for (const [heading, names] of GROUPS) {
    const words = names.split(' ');
    const commands = program.commands.filter((command) => words.includes(command.name()));
    for (const command of commands) command.helpGroup(`${heading}:`);
  }
  const help = new Command('help').argument('[command]').description('the help of one command');
  program.addHelpCommand(help.helpGroup('Help:'));
  addHelp(program, program.name(), typedAs);
}

/** Into a file, npm's own words must not come first. */
function lineOf(line: string, typedAs: Typed): string {
  const typed = typedAs(line).trimEnd();
  return line.includes(' > ') ? typed.replace('npm run ', 'npm run -s ') : typed;
}

function addHelp(command: Command, typed: string, typedAs: Typed): void {
  const topic = command.parent === null ? 'lists the commands' : 'says more';
  command.showHelpAfterError(typedAs(`(${typed} --help ${topic})`));
  const examples = EXAMPLES[typed] ?? [];
  if (examples.length > 0) {
    const lines = examples.map((example) => `  ${lineOf(`${typed} ${example}`, typedAs)}`);
    command.addHelpText('after', `\nExamples:\n${lines.join('\n')}`);
  }
  for (const child of command.commands) addHelp(child, `${typed} ${child.name()}`, typedAs);
}

// What people type most, below the help of a command. A test parses every line.

/** Behind the command, as it is typed. */
export const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  'nanobot onboard': [
    '',
    '--model anthropic/claude-sonnet-5-5 --api-key sk-ant-...',
    '--yes --model local/qwen3 --api-base http://192.168.1.5:8000/v1',
    '--yes --telegram 123456:ABC-DEF --pair-wait 120',
  ],
  'nanobot import': ['~/.openclaw --dry-run', '~/.nanobot-python'],
  'nanobot gateway': ['', '--port 8080'],
  'nanobot agent': ['', '-m "What is on my list today?"', '-m - -s work < question.txt'],
  'nanobot doctor': ['', '--live', '--fix'],
  'nanobot usage': ['--days 7'],
  'nanobot channels login': ['telegram', 'whatsapp'],
  'nanobot pair approve': ['telegram 123456789'],
  'nanobot people set': ['ann --language de --timezone Europe/Berlin', 'ann --messages-per-day 50'],
  'nanobot cron add': [
    '"Tell me the weather" --cron "0 7 * * 1-5"',
    '"Call the dentist" --at "in 20m" --say',
  ],
  'nanobot sessions': [
    'list',
    'search invoice march',
    'export telegram:42 --format jsonl > chat.jsonl',
  ],
  'nanobot sessions purge': ['--older-than 90d'],
  'nanobot skills add': ['./my-skill', 'https://example.org/skill.zip'],
  'nanobot trace': ['last'],
  'nanobot replay': ['telegram:42 --turn last --model openai/gpt-6-sol'],
  'nanobot tune': ['', '--apply'],
  'nanobot eval': ['haystack --model ollama/qwen3:8b', 'report --html report.html'],
  'nanobot config': [
    'set agents.defaults.model openai/gpt-6-sol',
    'set providers.openai.apiKey \'{"env": "OPENAI_API_KEY"}\'',
    'validate',
  ],
};
