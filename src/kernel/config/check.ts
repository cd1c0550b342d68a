// Turns the text of a configuration file into a configuration, or reports every problem in it at
// once: parse, migrate, insert the environment, validate, check conflicts.

import { emailConflicts } from '../../channels/email/settings.ts';
import { larkConflicts } from '../../channels/lark/settings.ts';
import { telegramConflicts } from '../../channels/telegram/settings.ts';
import { isAllowEntry, normaliseAllowed } from '../../channels/whatsapp/rules/jid.ts';
import { whatsappConflicts } from '../../channels/whatsapp/settings.ts';
import { FEATURE_CONFLICTS } from '../../features.ts';
import {
  GENERAL_PROXY,
  isLoopbackHost,
  NO_PROXY_AT_ALL,
  readProxy,
} from '../../lib/net/address-rules.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import { isTimeZone } from '../../lib/time/zone-time.ts';
import type { ToolPolicyEntry } from '../access/rights.ts';
import { ConfigError, type ConfigProblem } from '../message/errors.ts';
import type { Config } from './config.ts';
import {
  type Environment,
  expandEnvironment,
  tokenProblem,
  variableOf,
  withVariables,
} from './environment.ts';
import { configKeys, configOf } from './issues.ts';
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type LocatedJson,
  readJson,
} from './json.ts';
import { member, pathsIn, valueAt, withValue } from './json-paths.ts';
import { migrateConfig, withoutRetired } from './migration.ts';
import {
  type FoundSecrets,
  leftMasks,
  looksLikeMask,
  missingSecrets,
  NO_SECRETS,
  secretPaths,
  withSecrets,
} from './secrets.ts';
import {
  bucketProblems,
  databaseProblems,
  type Problems,
  storageProblems,
  unless,
  unlessWebAddress,
} from './settings-fields.ts';

export type CheckedConfig = {
  readonly config: Config;
  /** As written, after migration: references to the environment stay references. */
  readonly raw: JsonObject;
  /** The version of the file if it was not the current one. */
  readonly migratedFrom: number | undefined;
  /** What migration changed, one sentence each. */
  readonly notes: readonly string[];
};

/** Settings that override the file, e.g. from the command line; by dotted path. */
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
  return { config: withProxies(config, env), raw, migratedFrom: from, notes };
}

/** All problems of a configuration that is already JSON of the current version. */
export const contentProblems = (
  raw: JsonObject,
  env: Environment,
  secrets: FoundSecrets,
): Problems => examine(raw, env, {}, secrets).problems;

/** Undefined if it does not match the schema. */
function examine(
  raw: JsonObject,
  env: Environment,
  overrides: ConfigOverrides,
  secrets: FoundSecrets,
): { readonly config?: Config; readonly problems: Problems } {
  const unset = expandEnvironment(raw, env).missing.map(({ path, name }) => ({
    path,
    problem: t`the environment variable ${name} is not set`,
    remedy: t`Set ${name}, or write $\${${name}} for the literal text.`,
  }));
  const missing = [...unset, ...missingSecrets(withVariables(raw, env), secrets)];
  const value = effective(raw, env, overrides, secrets);
  const unfilled = new Set(missing.map((problem) => problem.path));
  const { config, misshapen } = configOf(value);
  const explained = misshapen.filter((problem) => !unfilled.has(problem.path));
  const shape = [...missing, ...maskedSecrets(raw), ...explained];
  if (config === undefined || shape.length > 0) return { problems: shape };
  return { config, problems: conflicts(config) };
}

export function configError(problems: Problems): ConfigError {
  const { length } = problems;
  const text = ngettext(
    msgid`the configuration has ${length} problem`,
    `the configuration has ${length} problems`,
    length,
  );
  return new ConfigError(text, problems);
}

/**
 * Inserts the environment and secrets stored elsewhere; a number or switch that came as text is
 * converted.
 */
function effective(
  raw: JsonObject,
  env: Environment,
  overrides: ConfigOverrides,
  secrets: FoundSecrets,
): JsonValue {
  const expanded = expandEnvironment(raw, env).value;
  if (!isJsonObject(expanded)) return expanded;
  const value = withVariables(expanded, env);
  let result = withoutRetired(withSecrets(value, secrets));
  const literals = configKeys().filter(({ type }) => /^(?:number|switch|mixed)$/.test(type));
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

/** A value set by a variable has no line in the file. */
function withVariable(problem: ConfigProblem, env: Environment): ConfigProblem {
  const name = problem.path === '' ? undefined : variableOf(problem.path, env);
  if (name === undefined) return problem;
  return {
    ...problem,
    remedy: t`${problem.remedy} The environment variable ${name} sets this value.`,
  };
}

/** Adds the position of the problem: its own line, else that of the nearest written section. */
function placed(problem: ConfigProblem, located: LocatedJson): ConfigProblem {
  if (problem.line !== undefined) return problem;
  for (let path = problem.path; path !== ''; path = parentOf(path)) {
    const place = located.places.get(path);
    if (place !== undefined) return { ...problem, ...place };
  }
  return problem;
}

const parentOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf('.')));

// Recognises the configuration of another program by its keys, so that its owner gets a remedy.

/** Keys that only that program has; two of them are no typing error. */
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

/** Whether unknown keys are those of the Python program, whose home has the same name. */
export function isPythonConfig(unknownKeys: readonly string[]): boolean {
  return MARKS.filter((mark) => unknownKeys.includes(mark)).length > 1;
}

// Settings that conflict with each other, or are valid for the schema but not in reality. Found
// when the configuration loads, so that nothing fails an hour later. Each channel's own checks are
// in a file of its own.

const CHECKS: readonly ((config: Config) => Problems)[] = [
  gatewayExposure,
  ({ channels: { telegram } }) => telegramConflicts(telegram),
  ({ channels: { email } }) => emailConflicts(email),
  ({ channels: { whatsapp } }) => whatsappConflicts(whatsapp),
  ({ channels: { lark } }) => larkConflicts(lark),
  publicUrlConflicts,
  limitConflicts,
  compactionConflicts,
  toolConflicts,
  modelChoices,
  waits,
  urls,
  proxies,
  timeZone,
  ({ store }) => databaseProblems(store),
  ({ store, storage }) => storageProblems(storage.path, store.engine),
  ({ storage }) => bucketProblems(storage.media),
  ...FEATURE_CONFLICTS,
];

export const conflicts = (config: Config): Problems => CHECKS.flatMap((check) => check(config));

/** Placeholders that a program shows instead of the real secrets. */
function maskedSecrets(value: JsonValue): Problems {
  const remedy = t`Enter the real value, or a reference to an environment variable.`;
  const whole = [...secretPaths(value)].filter((path) => {
    const secret = valueAt(value, path);
    return typeof secret === 'string' && looksLikeMask(secret);
  });
  const paths = new Set([...whole, ...leftMasks(value)]);
  return [...paths].map((path) => ({
    path,
    problem: t`this is a placeholder, not the secret`,
    remedy,
  }));
}

function gatewayExposure({ gateway }: Config): Problems {
  const found = tokenProblem(gateway.host, gateway.token);
  return found === undefined ? [] : [{ path: 'gateway.token', ...found }];
}

function publicUrlConflicts({ gateway: { publicUrl } }: Config): Problems {
  if (publicUrl === '') return [];
  const url = URL.parse(publicUrl);
  const isSafe = url?.protocol === 'https:' || isLoopbackHost(url?.hostname ?? '');
  const problem = t`"${publicUrl}" is no https address without a path`;
  const remedy = t`Set it to the address of your TLS proxy, e.g. https://nanobot.example.org.`;
  const isBare = url !== null && `${url.origin}/` === url.href;
  return unless(isBare && isSafe, 'gateway.publicUrl', problem, remedy);
}

function modelChoices({ agents: { defaults } }: Config): Problems {
  const { maxTokens, maxContextTokens, model, fallbackModels } = defaults;
  return [
    ...unless(
      maxTokens < maxContextTokens,
      'agents.defaults.maxTokens',
      t`an answer of ${maxTokens} tokens does not fit into a context of ${maxContextTokens}`,
      t`Make it smaller than agents.defaults.maxContextTokens.`,
    ),
    ...unless(
      model === '' || !fallbackModels.includes(model),
      'agents.defaults.fallbackModels',
      t`"${model}" is also the main model`,
      t`Remove it from the list.`,
    ),
  ];
}

function waits({ retry, coalesce }: Config): Problems {
  const { providerMinSecs, providerMaxSecs } = retry;
  const pairs = [
    ['retry.providerMinSecs', providerMinSecs, 'retry.providerMaxSecs', providerMaxSecs],
    ['coalesce.quietMs', coalesce.quietMs, 'coalesce.maxWaitMs', coalesce.maxWaitMs],
  ] as const;
  return pairs.flatMap(([low, least, high, most]) =>
    unless(
      least <= most,
      low,
      t`${least} is greater than ${high} (${most})`,
      t`Use ${most} or less.`,
    ),
  );
}

function urls({ providers, channels, cluster }: Config): Problems {
  const basesOf = (section: string, entries: Readonly<Record<string, { apiBase: string }>>) =>
    Object.entries(entries).map(
      ([name, { apiBase }]) => [`${section}.${name}.apiBase`, apiBase] as const,
    );
  const bases = [...basesOf('providers', providers), ...basesOf('cluster.peers', cluster.peers)];
  const written = [...bases, ['channels.telegram.apiRoot', channels.telegram.apiRoot] as const];
  const seen = t`the address contains a user name or password, which would be visible`;
  return [
    ...written.flatMap(([path, url]) =>
      unless(!hasLogin(url), path, seen, t`Remove it; put a key into apiKey.`),
    ),
    ...written.flatMap(([path, url]) =>
      hasLogin(url) ? [] : unlessWebAddress(path, url, 'https://api.example.org/v1'),
    ),
  ];
}

/** The paths of the settings that name a proxy. */
const proxyPaths = (config: unknown) =>
  configKeys()
    .filter(({ path }) => path.endsWith('.proxy'))
    .flatMap(({ path }) => pathsIn(config, path));

const textAt = (config: Config, path: string) =>
  String(path.split('.').reduce<unknown>(member, config) ?? '');

function proxies(config: Config): Problems {
  const remedy =
    t`Use an address with host and port such as "socks5h://proxy.example:1080" (http, https, socks5 or socks5h), ` +
    t`with a login as "http://name:password@host:port"; or "${NO_PROXY_AT_ALL}" for none.`;
  return proxyPaths(config).flatMap((path) => {
    const text = textAt(config, path);
    const isNone = text === '' || text === NO_PROXY_AT_ALL;
    const isFine = isNone || (!/\s/.test(text) && readProxy(text) !== undefined);
    return unless(isFine, path, t`this is not the address of a proxy`, remedy);
  });
}

/**
 * Completes each proxy by its setting and the hosts that are reached without it; a channel without
 * a proxy of its own gets the general one, so that it restarts when that changes.
 */
function withProxies(config: Config, env: Environment): Config {
  const listed = `${env['NO_PROXY'] ?? env['no_proxy'] ?? ''}`.split(/[\s,]+/);
  const except = [...config.network.noProxy, ...listed].filter((entry) => entry !== '');
  const complete = (text: string, setting: string) =>
    readProxy(text) === undefined ? text : `${text} ${setting} ${except.join(',')}`;
  const general = complete(config.network.proxy, GENERAL_PROXY);
  return proxyPaths(config).reduce<JsonObject>(
    (filled, path) => {
      const text = textAt(config, path);
      const isInherited = text === '' && /^channels\.[^.]+\.proxy$/.test(path);
      if (text === '' && !isInherited) return filled;
      return withValue(filled, path, isInherited ? general : complete(text, path));
    },
    config as unknown as JsonObject,
  ) as unknown as Config;
}

function hasLogin(url: string): boolean {
  const parsed = URL.parse(url);
  return parsed !== null && parsed.username + parsed.password !== '';
}

function timeZone({ sessions }: Config): Problems {
  const problem = t`"${sessions.timeZone}" is not a time zone`;
  const remedy = t`Use an IANA name, e.g. Europe/Berlin.`;
  return unless(isTimeZone(sessions.timeZone), 'sessions.timeZone', problem, remedy);
}

/** Local channels, which need no section. */
const OWN_CHANNELS = ['web', 'terminal'];

/** An exception that applies to nobody. */
function limitConflicts({ limits, channels }: Config): Problems {
  const known = [...Object.keys(channels), ...OWN_CHANNELS];
  return limits.exceptions.flatMap(({ who }, index) => {
    const [channel = '', ...id] = who.split(':');
    const isNamed = known.includes(channel) && (id.length === 0 || id.join(':') !== '');
    const problem = t`"${who}" is neither a channel nor an id on a channel`;
    const remedy = t`Use one of ${known.join(', ')}, or an id such as telegram:123456789.`;
    return unless(isNamed, `limits.exceptions.${index}.who`, problem, remedy);
  });
}

function compactionConflicts({ agents }: Config): Problems {
  const { softPercent, hardPercent } = agents.defaults.compaction.lossless;
  return unless(
    softPercent < hardPercent,
    'agents.defaults.compaction.lossless.softPercent',
    t`it must be lower than hardPercent, or every call would wait for its summary`,
    t`Use less than ${hardPercent}.`,
  );
}

// Checks of the entries that allow or forbid tools: an entry with an impossible id, or in another
// spelling than the channel's, would seem to protect and protect nothing.

type IdRule = {
  readonly example: string;
  /** The canonical spelling; undefined for an impossible id. */
  spell(id: string): string | undefined;
};

const matching = (pattern: RegExp) => (id: string) => (pattern.test(id) ? id : undefined);
const PEOPLE: Readonly<Record<string, IdRule>> = {
  telegram: { example: 'telegram:123456789', spell: matching(/^\d{1,19}$/) },
  whatsapp: {
    example: 'whatsapp:+491511234567',
    spell: (id) => (isAllowEntry(id) && id !== '*' ? normaliseAllowed(id) : undefined),
  },
  email: {
    example: 'email:ann@example.org',
    spell: (id) => (/^[^\s@]+@[^\s@]+$/.test(id) ? id.toLowerCase() : undefined),
  },
  web: { example: 'web:owner', spell: matching(/^owner$/) },
  terminal: { example: 'terminal:owner', spell: matching(/^owner$/) },
};
const GROUPS: Readonly<Record<string, IdRule>> = {
  telegram: { example: 'telegram:-1001234567890', spell: matching(/^-\d{1,19}$/) },
  whatsapp: { example: 'whatsapp:120363012345678901@g.us', spell: matching(/^[\d-]+@g\.us$/) },
  email: { example: 'telegram:-1001234567890', spell: () => undefined },
};

function toolConflicts({ tools, channels }: Config): Problems {
  const known = Object.keys(channels);
  return [
    ...strangeEntries('people', tools.people, PEOPLE, known),
    ...strangeEntries('groups', tools.groups, GROUPS, known),
  ];
}

/** A channel without a rule here accepts any id: only it knows their form. */
function strangeEntries(
  list: 'people' | 'groups',
  entries: readonly ToolPolicyEntry[],
  rules: Readonly<Record<string, IdRule>>,
  known: readonly string[],
): Problems {
  return entries.flatMap(({ who }, index): Problems => {
    const colon = who.indexOf(':');
    const [channel, id] = [who.slice(0, Math.max(0, colon)), who.slice(colon + 1)];
    const rule = Object.hasOwn(rules, channel) ? rules[channel] : undefined;
    const path = `tools.${list}.${index}.who`;
    const example = rule?.example ?? Object.values(rules)[0]?.example ?? '';
    const spelled = rule === undefined && known.includes(channel) ? id : rule?.spell(id);
    if (spelled === undefined || id === '') {
      const problem = t`"${who}" is not a stable id; names can change owners`;
      return [{ path, problem, remedy: t`Write the channel and the stable id, e.g. ${example}.` }];
    }
    const right = `"${channel}:${spelled}"`;
    const problem = t`"${who}" must be written ${right} on this channel`;
    return unless(spelled === id, path, problem, t`Write ${right}.`);
  });
}
