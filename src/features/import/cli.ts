// The command `nanobot import`: shows and then imports the settings and files of another program's
// home.

import { resolve } from 'node:path';
import { Command } from 'commander';
import type { Terminal } from '../../cli/terminal.ts';
import { t } from '../../lib/texts.ts';
import type { FilePlan, ForeignHome } from './import-home.ts';
import type { ImportedSettings } from './rules/import-settings.ts';

const WITH_LOGIN = /:\/\/[^/"]*@/;

type ImportFlags = { readonly yes?: boolean; readonly dryRun?: boolean };

type Plan = {
  readonly settings: ImportedSettings;
  readonly files: FilePlan;
  readonly left: readonly string[];
};

export function importCommand(terminal: Terminal): Command {
  return new Command('import')
    .description(t`import settings, memory and more from OpenClaw or nanobot for Python`)
    .argument('<folder>', t`home of the other program, e.g. ~/.openclaw; it is not changed`)
    .option('-n, --dry-run', t`show what would be imported, without changing anything`)
    .option('-y, --yes', t`do not ask for confirmation`)
    .action((folder: string, flags: ImportFlags) => takeOver(terminal, folder, flags));
}

async function takeOver(terminal: Terminal, folder: string, { yes, dryRun }: ImportFlags) {
  const { carryOut, readForeignHome } = await import('./import-home.ts');
  const { confirmOrStop } = await import('../../cli/terminal.ts');
  const { currentConfig, save } = await import('../setup/asker.ts');
  const { openHome } = await import('../../kernel/config/files/first-run.ts');
  const root = resolve(folder);
  await refuseOwnHome(terminal, root);
  const foreign = await readForeignHome(root);
  if (dryRun !== true) await openHome(terminal.home, terminal.env);
  const { workspace } = (await currentConfig(terminal)).agents.defaults;
  const plan = await planOf(terminal, foreign, workspace);
  describe(terminal, foreign, plan);
  if (dryRun === true) return;
  if (Object.keys(plan.settings).length + plan.files.steps.length === 0) {
    return terminal.tell(t`There is nothing to import.`);
  }
  await confirmOrStop(terminal, t`Import this into ${terminal.home.root}?`, yes === true);
  await carryOut(workspace, plan.files.steps);
  await save(terminal, plan.settings);
  terminal.tell(t`Imported. Stop the other program, then start this one: nanobot gateway`);
  terminal.tell(
    t`Check it: nanobot doctor --live. Become the owner: nanobot channels login telegram`,
  );
}

/** The Python program uses the same home folder by default, so the home may be our own. */
async function refuseOwnHome({ home }: Terminal, root: string) {
  const { CommandFailure, EXIT } = await import('../../cli/terminal.ts');
  if (root !== home.root) return;
  throw new CommandFailure(
    EXIT.usage,
    t`${root} is the home of this nanobot. Move the other program's folder first: mv ${root} ${root}-old`,
  );
}

/** Existing settings are kept; settings that would be invalid are not imported. */
async function planOf(terminal: Terminal, foreign: ForeignHome, workspace: string): Promise<Plan> {
  const { readRawConfig } = await import('../../kernel/config/files/config-file.ts');
  const { planFiles } = await import('./import-home.ts');
  const { valueAt } = await import('../../kernel/config/json-paths.ts');
  const raw = await readRawConfig(terminal.home);
  const entries = Object.entries(foreign.settings);
  const isSame = ([path, value]: (typeof entries)[number]) =>
    JSON.stringify(valueAt(raw, path)) === JSON.stringify(value);
  const isFree = ([path]: (typeof entries)[number]) => valueAt(raw, path) === undefined;
  const taken = entries.filter((entry) => !isFree(entry) && !isSame(entry));
  const usable = await usableOf(terminal, Object.fromEntries(entries.filter(isFree)));
  const files = await planFiles(foreign.workspace, workspace, foreign.program);
  return {
    settings: usable.settings,
    files,
    left: [
      ...taken.map(([path]) => t`${path}: already set here; not changed.`),
      ...usable.left,
      ...foreign.left,
      ...files.left,
    ],
  };
}

async function usableOf(terminal: Terminal, settings: ImportedSettings) {
  const { tryOut } = await import('../setup/asker.ts');
  const { ConfigError } = await import('../../kernel/message/errors.ts');
  const left: string[] = [];
  for (let rest = settings; ; ) {
    try {
      await tryOut(terminal, rest);
      return { settings: rest, left };
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      const bad = Object.keys(rest).filter((path) =>
        error.problems.some((one) => one.path === path || one.path.startsWith(`${path}.`)),
      );
      if (bad.length === 0) throw error;
      for (const { path, problem } of error.problems) left.push(`${path}: ${problem}.`);
      rest = Object.fromEntries(Object.entries(rest).filter(([path]) => !bad.includes(path)));
    }
  }
}

function describe(terminal: Terminal, foreign: ForeignHome, { settings, files, left }: Plan) {
  terminal.tell(terminal.style('bold', t`From ${foreign.program}:`));
  for (const [path, value] of Object.entries(settings)) {
    terminal.tell(`  ${path}${shown(path, value)}`);
  }
  for (const { path, how } of files.steps) terminal.tell(`  workspace/${path}  (${how})`);
  if (left.length === 0) return;
  terminal.tell(terminal.style('bold', t`Not imported, or to be done by you:`));
  for (const line of left) terminal.tell(`  - ${line}`);
}

/** Hides keys, tokens, passwords, environments and addresses that contain a login. */
function shown(path: string, value: unknown): string {
  if (/(?:apiKey|token|password|appSecret|braveApiKey)$/i.test(path)) return '  (a secret)';
  if (path.startsWith('mcpServers.')) return t`  (switched off)`;
  return WITH_LOGIN.test(JSON.stringify(value))
    ? t`  (an address with a password)`
    : ` = ${JSON.stringify(value)}`;
}
