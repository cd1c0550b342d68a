// How the help of the command line reads: commands under headings, examples, and after a slip the help
// that fits.

import { Command } from 'commander';
import type { Typed } from '../core/typed-command.ts';
import { EXAMPLES } from './examples.ts';

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
