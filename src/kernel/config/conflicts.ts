// Settings that are each fine alone but not together, or fine for the schema but not for the world.
// Found at load, so that nothing fails an hour later. Each channel's own are in a file of its own.

import { emailConflicts } from '../../channels/email/settings.ts';
import { larkConflicts } from '../../channels/lark/settings.ts';
import { telegramConflicts } from '../../channels/telegram/settings.ts';
import { isAllowEntry, normaliseAllowed } from '../../channels/whatsapp/rules/jid.ts';
import { whatsappConflicts } from '../../channels/whatsapp/settings.ts';
import { toolServerConflicts } from '../../features/mcp/settings.ts';
import { modeConflicts } from '../../features/modes/rules/conflicts-modes.ts';
import { voiceConflicts } from '../../features/voice/rules/conflicts.ts';
import { isTimeZone } from '../../lib/time/zone-time.ts';
import type { ToolPolicyEntry } from '../access/rights.ts';
import type { ConfigProblem } from '../message/errors.ts';
import type { Config } from './config.ts';
import { tokenProblem } from './environment.ts';
import type { JsonValue } from './json.ts';
import { valueAt } from './json-paths.ts';
import { looksLikeMask, secretPaths } from './secrets.ts';

type Check = (config: Config) => readonly ConfigProblem[];

const CHECKS: readonly Check[] = [
  gatewayExposure,
  ({ channels: { telegram } }) => telegramConflicts(telegram),
  ({ channels: { email } }) => emailConflicts(email),
  ({ channels: { whatsapp } }) => whatsappConflicts(whatsapp),
  ({ channels: { lark } }) => larkConflicts(lark),
  limitConflicts,
  compactionConflicts,
  toolConflicts,
  toolServerConflicts,
  voiceConflicts,
  modelChoices,
  modeConflicts,
  retryWaits,
  urls,
  timeZone,
];

export function conflicts(config: Config): readonly ConfigProblem[] {
  return CHECKS.flatMap((check) => check(config));
}

/** Secrets that are the marks some program shows in place of the real ones. */
export function maskedSecrets(value: JsonValue): readonly ConfigProblem[] {
  const masked = [...secretPaths(value)].filter((path) => {
    const secret = valueAt(value, path);
    return typeof secret === 'string' && looksLikeMask(secret);
  });
  const remedy = 'Put the real value back, or the name of an environment variable.';
  return masked.map((path) => ({ path, problem: 'this is a mask, not the secret', remedy }));
}

function gatewayExposure({ gateway }: Config): readonly ConfigProblem[] {
  const found = tokenProblem(gateway.host, gateway.token);
  return found === undefined ? [] : [{ path: 'gateway.token', ...found }];
}

function modelChoices({ agents: { defaults } }: Config): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  if (defaults.maxTokens >= defaults.maxContextTokens) {
    problems.push({
      path: 'agents.defaults.maxTokens',
      problem: `an answer of ${defaults.maxTokens} tokens leaves no room in a context of ${defaults.maxContextTokens}`,
      remedy: 'Make it smaller than agents.defaults.maxContextTokens.',
    });
  }
  if (defaults.model !== '' && defaults.fallbackModels.includes(defaults.model)) {
    problems.push({
      path: 'agents.defaults.fallbackModels',
      problem: `"${defaults.model}" would fall back to itself`,
      remedy: 'Remove it from the list.',
    });
  }
  return problems;
}

function retryWaits({ retry, coalesce }: Config): readonly ConfigProblem[] {
  const pairs = [
    { low: 'retry.providerMinSecs', high: 'retry.providerMaxSecs', ...waits(retry) },
    {
      low: 'coalesce.quietMs',
      high: 'coalesce.maxWaitMs',
      least: coalesce.quietMs,
      most: coalesce.maxWaitMs,
    },
  ];
  return pairs
    .filter(({ least, most }) => least > most)
    .map(({ low, high, least, most }) => ({
      path: low,
      problem: `${least} is more than ${high}, which is ${most}`,
      remedy: `Make it at most ${most}.`,
    }));
}

const waits = (retry: Config['retry']) => ({
  least: retry.providerMinSecs,
  most: retry.providerMaxSecs,
});

function urls({ providers, channels, cluster }: Config): readonly ConfigProblem[] {
  const basesOf = (section: string, entries: Readonly<Record<string, { apiBase: string }>>) =>
    Object.entries(entries).map(
      ([name, { apiBase }]) => [`${section}.${name}.apiBase`, apiBase] as const,
    );
  const bases = [...basesOf('providers', providers), ...basesOf('cluster.peers', cluster.peers)];
  const written = [...bases, ['channels.telegram.apiRoot', channels.telegram.apiRoot] as const];
  const logins = written
    .filter(([, url]) => hasLogin(url))
    .map(([path]) => ({
      path,
      problem: 'a login stands in the address, where it would be seen',
      remedy: 'Take it out; a key belongs in apiKey.',
    }));
  const others = written
    .filter(([, url]) => url !== '' && !hasLogin(url) && !/^https?:$/.test(protocolOf(url)))
    .map(([path, url]) => ({
      path,
      problem: `"${url}" is no http or https address`,
      remedy: 'Write it like https://api.example.org/v1.',
    }));
  return [...logins, ...others];
}

function hasLogin(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { username, password } = new URL(url);
  return username !== '' || password !== '';
}

const protocolOf = (url: string) => (URL.canParse(url) ? new URL(url).protocol : '');

function timeZone({ sessions }: Config): readonly ConfigProblem[] {
  if (isTimeZone(sessions.timeZone)) return [];
  return [
    {
      path: 'sessions.timeZone',
      problem: `"${sessions.timeZone}" is no time zone`,
      remedy: 'Use an IANA name like Europe/Berlin.',
    },
  ];
}

// What may be wrong with limits: an exception for nobody, a call that waits before it has to.

/** Doors of our own, which need no section. */
const OWN_DOORS = ['web', 'terminal'];

export function limitConflicts({ limits, channels }: Config): readonly ConfigProblem[] {
  const known = [...Object.keys(channels), ...OWN_DOORS];
  return limits.exceptions.flatMap(({ who }, index): readonly ConfigProblem[] => {
    const [channel = '', ...id] = who.split(':');
    const names = id.length === 0 || id.join(':') !== '';
    if (known.includes(channel) && names) return [];
    const path = `limits.exceptions.${index}.who`;
    const remedy = `Write one of ${known.join(', ')}, or e.g. telegram:123456789.`;
    return [{ path, problem: `"${who}" names no channel and nobody on one`, remedy }];
  });
}

export function compactionConflicts({ agents }: Config): readonly ConfigProblem[] {
  const { softPercent, hardPercent } = agents.defaults.compaction.lossless;
  if (softPercent < hardPercent) return [];
  const problem = 'every call that may be summed up behind the answer would wait for it';
  const path = 'agents.defaults.compaction.lossless.softPercent';
  return [{ path, problem, remedy: `Make it less than hardPercent, ${hardPercent}.` }];
}

// What may be wrong with the entries that grant or take away tools: an entry for nobody, or under an id
// that its channel spells otherwise, would be believed to protect and protect nothing.

type IdRule = {
  readonly example: string;
  /** The one spelling; undefined where the id can be nobody's there. */
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

export function toolConflicts({ tools, channels }: Config): readonly ConfigProblem[] {
  const known = Object.keys(channels);
  return [
    ...strangeEntries('people', tools.people, PEOPLE, known),
    ...strangeEntries('groups', tools.groups, GROUPS, known),
  ];
}

/** A channel without a rule here takes any id: only it knows how its ids look. */
function strangeEntries(
  list: 'people' | 'groups',
  entries: readonly ToolPolicyEntry[],
  rules: Readonly<Record<string, IdRule>>,
  known: readonly string[],
): readonly ConfigProblem[] {
  return entries.flatMap(({ who }, index): readonly ConfigProblem[] => {
    const colon = who.indexOf(':');
    const [channel, id] = [who.slice(0, Math.max(0, colon)), who.slice(colon + 1)];
    const rule = Object.hasOwn(rules, channel) ? rules[channel] : undefined;
    const path = `tools.${list}.${index}.who`;
    const example = rule?.example ?? Object.values(rules)[0]?.example ?? '';
    const spelled = rule === undefined && known.includes(channel) ? id : rule?.spell(id);
    if (spelled === undefined || id === '') {
      const problem = `"${who}" is nobody’s id; names can change hands`;
      return [{ path, problem, remedy: `Write the channel and the stable id, like ${example}.` }];
    }
    if (spelled === id) return [];
    const problem = `"${who}" is spelled "${channel}:${spelled}" on this channel`;
    return [{ path, problem, remedy: `Write "${channel}:${spelled}".` }];
  });
}
