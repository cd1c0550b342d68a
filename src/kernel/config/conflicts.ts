// Settings that are each fine alone but not together, or fine for the schema but not for the world.
// Found at load, so that nothing fails an hour later. Each channel's own are in a file of its own.

import { emailConflicts } from '../../channels/email/settings.ts';
import { larkConflicts } from '../../channels/lark/settings.ts';
import { telegramConflicts } from '../../channels/telegram/settings.ts';
import { isAllowEntry, normaliseAllowed } from '../../channels/whatsapp/rules/jid.ts';
import { whatsappConflicts } from '../../channels/whatsapp/settings.ts';
import { toolServerConflicts } from '../../features/mcp/settings.ts';
import { modeConflicts } from '../../features/modes/settings.ts';
import { voiceConflicts } from '../../features/voice/settings.ts';
import { isTimeZone } from '../../lib/time/zone-time.ts';
import type { ToolPolicyEntry } from '../access/rights.ts';
import type { Config } from './config.ts';
import { tokenProblem } from './environment.ts';
import type { JsonValue } from './json.ts';
import { valueAt } from './json-paths.ts';
import { isWebAddress, type Problems, unless } from './problems.ts';
import { looksLikeMask, secretPaths } from './secrets.ts';

const CHECKS: readonly ((config: Config) => Problems)[] = [
  gatewayExposure,
  ({ channels: { telegram } }) => telegramConflicts(telegram),
  ({ channels: { email } }) => emailConflicts(email),
  ({ channels: { whatsapp } }) => whatsappConflicts(whatsapp),
  ({ channels: { lark } }) => larkConflicts(lark),
  limitConflicts,
  compactionConflicts,
  toolConflicts,
  toolServerConflicts,
  ({ voice }) => voiceConflicts(voice),
  modelChoices,
  modeConflicts,
  waits,
  urls,
  timeZone,
];

export const conflicts = (config: Config): Problems => CHECKS.flatMap((check) => check(config));

/** Secrets that are the marks some program shows in place of the real ones. */
export function maskedSecrets(value: JsonValue): Problems {
  const remedy = 'Put the real value back, or the name of an environment variable.';
  return [...secretPaths(value)].flatMap((path) => {
    const secret = valueAt(value, path);
    const isMask = typeof secret === 'string' && looksLikeMask(secret);
    return unless(!isMask, path, 'this is a mask, not the secret', remedy);
  });
}

function gatewayExposure({ gateway }: Config): Problems {
  const found = tokenProblem(gateway.host, gateway.token);
  return found === undefined ? [] : [{ path: 'gateway.token', ...found }];
}

function modelChoices({ agents: { defaults } }: Config): Problems {
  const { maxTokens, maxContextTokens, model, fallbackModels } = defaults;
  return [
    ...unless(
      maxTokens < maxContextTokens,
      'agents.defaults.maxTokens',
      `an answer of ${maxTokens} tokens leaves no room in a context of ${maxContextTokens}`,
      'Make it smaller than agents.defaults.maxContextTokens.',
    ),
    ...unless(
      model === '' || !fallbackModels.includes(model),
      'agents.defaults.fallbackModels',
      `"${model}" would fall back to itself`,
      'Remove it from the list.',
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
      `${least} is more than ${high}, which is ${most}`,
      `Make it at most ${most}.`,
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
  const seen = 'a login stands in the address, where it would be seen';
  return [
    ...written.flatMap(([path, url]) =>
      unless(!hasLogin(url), path, seen, 'Take it out; a key belongs in apiKey.'),
    ),
    ...written.flatMap(([path, url]) =>
      unless(
        url === '' || hasLogin(url) || isWebAddress(url),
        path,
        `"${url}" is no http or https address`,
        'Write it like https://api.example.org/v1.',
      ),
    ),
  ];
}

function hasLogin(url: string): boolean {
  const parsed = URL.parse(url);
  return parsed !== null && parsed.username + parsed.password !== '';
}

function timeZone({ sessions }: Config): Problems {
  const problem = `"${sessions.timeZone}" is no time zone`;
  const remedy = 'Use an IANA name like Europe/Berlin.';
  return unless(isTimeZone(sessions.timeZone), 'sessions.timeZone', problem, remedy);
}

/** Channels of our own, which need no section. */
const OWN_CHANNELS = ['web', 'terminal'];

/** An exception for nobody. */
function limitConflicts({ limits, channels }: Config): Problems {
  const known = [...Object.keys(channels), ...OWN_CHANNELS];
  return limits.exceptions.flatMap(({ who }, index) => {
    const [channel = '', ...id] = who.split(':');
    const isNamed = known.includes(channel) && (id.length === 0 || id.join(':') !== '');
    const problem = `"${who}" names no channel and nobody on one`;
    const remedy = `Write one of ${known.join(', ')}, or e.g. telegram:123456789.`;
    return unless(isNamed, `limits.exceptions.${index}.who`, problem, remedy);
  });
}

function compactionConflicts({ agents }: Config): Problems {
  const { softPercent, hardPercent } = agents.defaults.compaction.lossless;
  return unless(
    softPercent < hardPercent,
    'agents.defaults.compaction.lossless.softPercent',
    'every call that may be summed up behind the answer would wait for it',
    `Make it less than hardPercent, ${hardPercent}.`,
  );
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

function toolConflicts({ tools, channels }: Config): Problems {
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
): Problems {
  return entries.flatMap(({ who }, index): Problems => {
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
    const right = `"${channel}:${spelled}"`;
    const problem = `"${who}" is spelled ${right} on this channel`;
    return unless(spelled === id, path, problem, `Write ${right}.`);
  });
}
