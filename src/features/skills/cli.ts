// The command `nanobot skills`: lists and changes skills. Adding one shows its whole text first,
// runs nothing, and records its hashes.

import { hash } from 'node:crypto';
import { Command } from 'commander';
import {
  CommandFailure,
  confirmOrStop,
  EXIT,
  printable,
  type Terminal,
  textTable,
} from '../../cli/terminal.ts';
import { t } from '../../lib/texts.ts';
import type { FoundSkill } from './install-skill.ts';
import type { SkillReview } from './package.ts';
import type { SkillMaintenance } from './skill-maintenance.ts';
import type { Skill } from './skills.ts';

const SHOWN_LINES = 200;
const HASH_CHARS = 16;
const NAME = t`name from "skills list"`;
const WHERE = t`a folder, a .tar.gz file or its URL, or owner/repository/folder[#branch] on GitHub`;

type AddFlags = { readonly yes?: boolean; readonly replace?: boolean };

export function skillsCommand(terminal: Terminal): Command {
  const command = new Command('skills').description(t`skills: instructions for kinds of tasks`);
  command
    .command('list')
    .description(t`list all skills with their status`)
    .option('--json', t`print as JSON`)
    .action(({ json }: { readonly json?: boolean }) => list(terminal, json === true));
  command
    .command('show')
    .description(t`show the text of a skill`)
    .argument('<name>', NAME)
    .argument('[file]', t`another file of the skill`)
    .action((name: string, file?: string) => show(terminal, name, file));
  command
    .command('validate')
    .description(t`check all skills, or one before adding it`)
    .argument('[where]', WHERE)
    .action((where?: string) => validate(terminal, where));
  addChanging(command, terminal);
  return command;
}

function addChanging(command: Command, terminal: Terminal) {
  command
    .command('add')
    .description(t`show a skill and add it to the workspace`)
    .argument('<where>', WHERE)
    .option('--replace', t`replace a skill of the same name`)
    .option('--yes', t`do not ask for confirmation`)
    .action((where: string, flags: AddFlags) => add(terminal, where, flags));
  command
    .command('accept')
    .description(t`accept the current version of a changed skill`)
    .argument('<name>', NAME)
    .action((name: string) => accept(terminal, name));
  const choices = [
    ['enable', t`let the agent use a skill again`, { isOff: false }],
    ['disable', t`keep a skill without using it`, { isOff: true }],
    ['pin', t`put a skill in every prompt`, { isAlways: true }],
    ['unpin', t`let the agent read a skill only when needed`, { isAlways: false }],
  ] as const;
  for (const [name, description, change] of choices) {
    command
      .command(name)
      .description(description)
      .argument('<name>', NAME)
      .action(async (skill: string) => {
        await (await open(terminal)).choose(skill, change);
        terminal.print(t`Done. It counts from the next message on.`);
      });
  }
  command
    .command('remove')
    .description(t`delete a skill from the workspace`)
    .argument('<name>', NAME)
    .option('--yes', t`do not ask for confirmation`)
    .action((name: string, { yes }: AddFlags) => remove(terminal, name, yes === true));
}

async function open(terminal: Terminal): Promise<SkillMaintenance> {
  const { openSkillMaintenance } = await import('./skill-maintenance.ts');
  return openSkillMaintenance(terminal.home, terminal.env, terminal.clock);
}

async function list(terminal: Terminal, json: boolean) {
  const skills = await (await open(terminal)).skills.list();
  if (json) return terminal.printJson(skills);
  const rows = skills.map((skill) => [
    skill.name,
    skill.origin,
    stateText(skill),
    printable(skill.description),
  ]);
  for (const line of textTable(rows)) terminal.print(line);
}

function stateText({ state, isAlways }: Skill): string {
  switch (state.kind) {
    case 'ready':
      return isAlways ? t`always in use` : 'ready';
    case 'lacking':
      return t`missing: ${state.missing.join(', ')}`;
    case 'off':
      return t`switched off`;
    case 'changed':
      return t`changed since it was added`;
    case 'broken':
      return printable(state.problem);
  }
}

async function show(terminal: Terminal, name: string, file: string | undefined) {
  const { text, others } = await (await open(terminal)).skills.read(name, file);
  terminal.print(visible(text));
  if (file === undefined && others.length > 0) terminal.note(t`Other files: ${others.join(', ')}`);
}

async function validate(terminal: Terminal, where: string | undefined) {
  const care = await open(terminal);
  if (where !== undefined) {
    const { found, review } = await care.look(where, new AbortController().signal);
    describe(terminal, found, review);
    return;
  }
  const skills = await care.skills.list();
  const bad = skills.filter(({ state }) => state.kind === 'broken' || state.kind === 'changed');
  for (const skill of skills) {
    const mark = bad.includes(skill) ? 'error' : skill.state.kind === 'lacking' ? 'warning' : 'ok';
    terminal.print(`${mark.padEnd(8)}${skill.name}: ${stateText(skill)}`);
  }
  if (bad.length > 0) {
    throw new CommandFailure(EXIT.failure, t`${bad.length} of ${skills.length} cannot be used`);
  }
}

async function add(terminal: Terminal, where: string, { yes, replace }: AddFlags) {
  const care = await open(terminal);
  if (/^(?:https?:|[\w.-]+\/[\w.-]+)/i.test(where)) terminal.note(t`Loading ${where} ...`);
  const { found, review } = await care.look(where, new AbortController().signal);
  describe(terminal, found, review);
  await confirmOrStop(terminal, t`Add the skill ${found.name} to the workspace?`, yes === true);
  await care.add(found, { replace: replace === true });
  terminal.tell(t`Added ${found.name}. The agent can use it from the next message on.`);
}

function describe(terminal: Terminal, { name, source, files }: FoundSkill, review: SkillReview) {
  terminal.print(t`${terminal.style('bold', name)}  from ${printable(source)}`);
  terminal.print(printable(review.description));
  terminal.print('');
  const rows = files.map(({ path, bytes }) => [
    `  ${path}`,
    t`${bytes.length} bytes`,
    `sha256 ${hashOf(bytes)}`,
  ]);
  for (const line of textTable(rows)) terminal.print(line);
  terminal.print('');
  const lines = visible(review.text).split('\n');
  for (const line of lines.slice(0, SHOWN_LINES)) terminal.print(`  | ${line}`);
  if (lines.length > SHOWN_LINES) {
    terminal.print(t`  | [${lines.length - SHOWN_LINES} more lines in ${printable(source)}]`);
  }
  terminal.print('');
  for (const remark of review.remarks) terminal.print(`- ${printable(remark)}`);
  terminal.print(
    t`- The agent follows a skill like your own instructions. A skill gives the agent no additional rights.`,
  );
}

async function accept(terminal: Terminal, name: string) {
  const changed = await (await open(terminal)).accept(name);
  const what = changed.length === 0 ? t`nothing changed` : t`changed: ${changed.join(', ')}`;
  terminal.tell(t`Accepted ${name} (${printable(what)}).`);
}

async function remove(terminal: Terminal, name: string, yes: boolean) {
  await (await open(terminal)).known(name);
  await confirmOrStop(terminal, t`Delete the skill ${name} from the workspace?`, yes);
  await (await open(terminal)).remove(name);
  terminal.tell(t`Removed ${name}.`);
}

const hashOf = (bytes: Uint8Array) => hash('sha256', bytes).slice(0, HASH_CHARS);

/** Neutralises control characters and hidden characters. */
const visible = (text: string) => text.split('\n').map(printable).join('\n');
