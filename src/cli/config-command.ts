// The command `nanobot config`: shows the configuration, changes one key, checks the file. Masks
// secrets.

import { stat } from 'node:fs/promises';
import { Command } from 'commander';
import { problemLine } from '../kernel/config/issues.ts';
import { ConfigError } from '../kernel/message/errors.ts';
import { t } from '../lib/texts.ts';
import { CommandFailure, EXIT, type Terminal } from './terminal.ts';

export function configCommand(terminal: Terminal): Command {
  const command = new Command('config').description(t`show, change and check the configuration`);
  command
    .command('show')
    .description(t`show the configuration file, secrets masked`)
    .option('--all', t`include all default values`)
    .action(({ all }: { readonly all?: boolean }) => showConfig(terminal, all === true));
  command
    .command('get')
    .description(t`show the current value of one key`)
    .argument('<key>', t`dotted, e.g. agents.defaults.model`)
    .action((key: string) => getKey(terminal, key));
  command
    .command('set')
    .description(t`change one key; a running gateway applies it at once`)
    .argument('<key>', t`dotted, e.g. channels.telegram.allowFrom`)
    .argument('<value>', t`text, number, true or false; a list as JSON or separated by commas`)
    .action((key: string, value: string) => setKey(terminal, key, value));
  command
    .command('unset')
    .description(t`remove one key, so that its default applies`)
    .argument('<key>', 'dotted')
    .action((key: string) => unsetKey(terminal, key));
  command
    .command('schema')
    .description(t`print the JSON Schema of the configuration`)
    .action(() => showSchema(terminal));
  command
    .command('validate')
    .description(t`check a configuration file and list every problem`)
    .argument('[file]', t`default: config.json in the home`)
    .option('--json', t`print the problems as JSON`)
    .action((file: string | undefined, { json }: { readonly json?: boolean }) =>
      validate(terminal, file, json === true),
    );
  return command;
}

async function showConfig(terminal: Terminal, all: boolean) {
  const { loadConfig } = await import('../kernel/config/files/config-file.ts');
  const { maskSecrets } = await import('../kernel/config/secrets.ts');
  const { raw, config } = await loadConfig(terminal.home, terminal.env);
  terminal.printJson(maskSecrets(all ? JSON.parse(JSON.stringify(config)) : raw));
}

async function getKey(terminal: Terminal, key: string) {
  const { loadConfig } = await import('../kernel/config/files/config-file.ts');
  const { maskSecrets } = await import('../kernel/config/secrets.ts');
  const { valueAt } = await import('../kernel/config/json-paths.ts');
  const { path } = await knownKey(key);
  const { config } = await loadConfig(terminal.home, terminal.env);
  const value = valueAt(maskSecrets(JSON.parse(JSON.stringify(config))), path);
  if (typeof value === 'string') terminal.print(value);
  else terminal.printJson(value);
}

async function setKey(terminal: Terminal, key: string, text: string) {
  const { readRawConfig, saveConfig } = await import('../kernel/config/files/config-file.ts');
  const { parseValue } = await import('../kernel/config/value.ts');
  const { withValue } = await import('../kernel/config/json-paths.ts');
  const known = await knownKey(key);
  if (known.type === 'section') {
    throw new CommandFailure(EXIT.usage, t`${key} is a section; name one of its keys`);
  }
  const raw = await readRawConfig(terminal.home);
  const changed = withValue(raw, known.path, parseValue(known, text));
  await saveConfig(terminal.home, changed, terminal.env).catch(nothingChanged);
  terminal.note(t`${known.path} is set.`);
  await noteVariable(terminal, known.path);
}

async function noteVariable(terminal: Terminal, path: string) {
  const { variableOf } = await import('../kernel/config/environment.ts');
  const variable = variableOf(path, terminal.env);
  if (variable !== undefined) {
    terminal.note(t`It has no effect yet: the environment variable ${variable} takes precedence.`);
  }
}

/** The file stays as it was; only the requested change is invalid. */
function nothingChanged(error: unknown): never {
  if (!(error instanceof ConfigError)) throw error;
  const problems = error.problems.map((problem) => `  ${problemLine(problem)}`);
  throw new CommandFailure(EXIT.configInvalid, [t`Nothing changed:`, ...problems].join('\n'));
}

/** Also a key that is unknown, which is what its mistake asks for. */
async function unsetKey(terminal: Terminal, path: string) {
  const { readRawConfig, saveConfig } = await import('../kernel/config/files/config-file.ts');
  const { valueAt, withoutValue } = await import('../kernel/config/json-paths.ts');
  const raw = await readRawConfig(terminal.home);
  if (valueAt(raw, path) === undefined) {
    await knownKey(path);
    throw new CommandFailure(EXIT.notFound, t`${path} is not set in config.json`);
  }
  await saveConfig(terminal.home, withoutValue(raw, path), terminal.env);
  terminal.note(t`${path} removed; its default applies.`);
  await noteVariable(terminal, path);
}

async function showSchema(terminal: Terminal) {
  const { configJsonSchema } = await import('../kernel/config/files/config-schema.ts');
  terminal.printJson(configJsonSchema());
}

async function validate(terminal: Terminal, file: string | undefined, json: boolean) {
  const { validateConfigFile } = await import('../kernel/config/files/config-file.ts');
  const path = file ?? terminal.home.config;
  if ((await stat(path).catch(() => undefined)) === undefined) {
    const remedy = file === undefined ? t`; create it: nanobot onboard` : '';
    throw new CommandFailure(EXIT.notFound, t`there is no file ${path}${remedy}`);
  }
  const found: ConfigError | undefined = await validateConfigFile(
    path,
    terminal.env,
    terminal.home,
  );
  if (json)
    terminal.printJson({ path, valid: found === undefined, problems: found?.problems ?? [] });
  else if (found === undefined) terminal.print(t`${path} is valid.`);
  else throw found;
  if (found !== undefined) throw new CommandFailure(EXIT.configInvalid);
}

async function knownKey(path: string) {
  const { findKey } = await import('../kernel/config/value.ts');
  const found = findKey(path);
  if (found.kind === 'found') return found.key;
  const hint = found.nearest === undefined ? '' : t` Did you mean ${found.nearest}?`;
  throw new CommandFailure(EXIT.notFound, t`unknown key ${path}.${hint}`);
}
