// Settings that are each fine alone but not together, or fine for the schema but not for the world.
// Found at load, so that nothing fails an hour later. Each channel's own are in a file of its own.

import type { Config } from '../config.ts';
import type { ConfigProblem } from '../errors.ts';
import { tokenProblem } from '../gateway-token.ts';
import { valueAt } from '../json-paths.ts';
import { isTimeZone } from '../zone-time.ts';
import { emailConflicts } from './conflicts-email.ts';
import { larkConflicts } from './conflicts-lark.ts';
import { compactionConflicts, limitConflicts } from './conflicts-limits.ts';
import { modeConflicts } from './conflicts-modes.ts';
import { telegramConflicts } from './conflicts-telegram.ts';
import { toolConflicts } from './conflicts-tools.ts';
import { voiceConflicts } from './conflicts-voice.ts';
import { whatsappConflicts } from './conflicts-whatsapp.ts';
import type { JsonValue } from './json.ts';
import { toolServerConflicts } from './mcp.ts';
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
