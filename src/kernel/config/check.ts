// From the text of a configuration file to a configuration in force, or to every problem in it at
// once: read, migrate, fill in the environment, validate, look for conflicts.

import { ConfigError, type ConfigProblem } from '../message/errors.ts';
import { type Config, configSchema } from './config.ts';
import { conflicts, maskedSecrets } from './conflicts.ts';
import { type Environment, expandEnvironment, variableOf, withVariables } from './environment.ts';
import { shapeProblems } from './issues.ts';
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type LocatedJson,
  readJson,
} from './json.ts';
import { pathsIn, valueAt, withValue } from './json-paths.ts';
import { configKeys } from './keys.ts';
import { migrateConfig } from './migration.ts';
import type { Problems } from './problems.ts';
import { type FoundSecrets, missingSecrets, NO_SECRETS, withSecrets } from './secrets.ts';

export type CheckedConfig = {
  readonly config: Config;
  /** As written, after migration: references to the environment stay references. */
  readonly raw: JsonObject;
  /** The version the file had where it was not the current one. */
  readonly migratedFrom: number | undefined;
  /** What migration changed, one sentence each. */
  readonly notes: readonly string[];
};

/** Settings that count over what is written, e.g. from the command line; by dotted path. */
export type ConfigOverrides = Readonly<Record<string, JsonValue>>;

/** @throws ConfigError with all problems found. */
export function checkConfig(
  text: string,
  env: Environment,
  overrides: ConfigOverrides = {},
  secrets: FoundSecrets = NO_SECRETS,
): CheckedConfig {
  const located = readJson(text);
  const { raw, from, notes } = migrateConfig(located.value);
  const { config, problems: found } = examine(raw, env, overrides, secrets);
  const problems = [...located.problems, ...found.map((one) => withVariable(one, env))];
  if (config === undefined || problems.length > 0) {
    throw configError(problems.map((one) => placed(one, located)));
  }
  return { config, raw, migratedFrom: from, notes };
}

/** All problems of a configuration that is already JSON of the current version. */
export const contentProblems = (
  raw: JsonObject,
  env: Environment,
  secrets: FoundSecrets,
): Problems => examine(raw, env, {}, secrets).problems;

/** Undefined where it is misshapen. */
function examine(
  raw: JsonObject,
  env: Environment,
  overrides: ConfigOverrides,
  secrets: FoundSecrets,
): { readonly config?: Config; readonly problems: Problems } {
  const unset = expandEnvironment(raw, env).missing.map(({ path, name }) => ({
    path,
    problem: `the environment variable ${name} is not set`,
    remedy: `Set ${name}, or write $\${${name}} where the text itself is meant.`,
  }));
  const missing = [...unset, ...missingSecrets(withVariables(raw, env), secrets)];
  const value = effective(raw, env, overrides, secrets);
  const unfilled = new Set(missing.map((problem) => problem.path));
  const misshapen = shapeProblems(value).filter((problem) => !unfilled.has(problem.path));
  const shape = [...missing, ...maskedSecrets(raw), ...misshapen];
  if (shape.length > 0) return { problems: shape };
  const config = configSchema.parse(value);
  return { config, problems: conflicts(config) };
}

export function configError(problems: Problems): ConfigError {
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  return new ConfigError(`the configuration has ${count}`, problems);
}

/** The environment and the secrets that stand elsewhere filled in; a number or switch that came from it as text becomes one. */
function effective(
  raw: JsonObject,
  env: Environment,
  overrides: ConfigOverrides,
  secrets: FoundSecrets,
): JsonValue {
  const expanded = expandEnvironment(raw, env).value;
  if (!isJsonObject(expanded)) return expanded;
  const value = withVariables(expanded, env);
  let result = withSecrets(value, secrets);
  const literals = configKeys().filter(({ type }) => type === 'number' || type === 'switch');
  for (const path of literals.flatMap((key) => pathsIn(value, key.path))) {
    const written = valueAt(raw, path);
    const filled = valueAt(value, path);
    if (typeof filled !== 'string' || written === filled) continue;
    result = withValue(result, path, literal(filled));
  }
  return Object.entries(overrides).reduce(
    (overridden, [path, override]) => withValue(overridden, path, override),
    result,
  );
}

function literal(text: string): JsonValue {
  if (text === 'true' || text === 'false') return text === 'true';
  return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
}

/** What a variable sets stands in no line of the file. */
function withVariable(problem: ConfigProblem, env: Environment): ConfigProblem {
  const name = problem.path === '' ? undefined : variableOf(problem.path, env);
  if (name === undefined) return problem;
  return { ...problem, remedy: `${problem.remedy} It is set by the environment variable ${name}.` };
}

/** Adds where the problem stands: its own line, else that of the nearest section that is written. */
function placed(problem: ConfigProblem, located: LocatedJson): ConfigProblem {
  if (problem.line !== undefined) return problem;
  for (let path = problem.path; path !== ''; path = parentOf(path)) {
    const place = located.places.get(path);
    if (place !== undefined) return { ...problem, ...place };
  }
  return problem;
}

const parentOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf('.')));

// Knows the configuration of another program by its keys, so that its owner is met with a way on.

/** Keys that only that program has; two of them are no slip of the pen. */
const MARKS = [
  'agents.defaults.provider',
  'agents.defaults.memoryWindow',
  'agents.defaults.contextWindowTokens',
  'providers.custom',
  'channels.sendProgress',
  'channels.discord',
  'channels.whatsapp.bridgeToken',
  'gateway.heartbeat',
  'tools.restrictToWorkspace',
  'tools.mcpServers',
];

/** Whether keys that are not ours are those of the Python program, whose home has the same name. */
export function isPythonConfig(unknownKeys: readonly string[]): boolean {
  return MARKS.filter((mark) => unknownKeys.includes(mark)).length > 1;
}
