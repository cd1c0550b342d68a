// Settings that are each fine alone but not together, or fine for the schema but not for the world.
// Found at load, so that nothing fails an hour later.

import type { Config } from './config.ts';
import type { JsonValue } from './config-json.ts';
import { looksLikeMask, secretPaths } from './config-secrets.ts';
import type { ConfigProblem } from './errors.ts';
import { tokenProblem } from './gateway-token.ts';
import { valueAt } from './json-paths.ts';
import { isLoopbackHost } from './loopback.ts';
import { isTimeZone } from './zone-time.ts';

const TELEGRAM_TOKEN = /^\d+:[A-Za-z0-9_-]+$/;
const ADDRESS = /^[^\s@<>]+@[^\s@<>]+$/;

type Check = (config: Config) => readonly ConfigProblem[];

const CHECKS: readonly Check[] = [
  gatewayExposure,
  telegramSettings,
  emailServers,
  emailAddresses,
  modelChoices,
  retryWaits,
  urls,
  timeZone,
];

export function conflicts(config: Config): readonly ConfigProblem[] {
  return CHECKS.flatMap((check) => check(config));
}

/** Secrets that are the marks some program shows in place of the real ones. */
export function maskedSecrets(value: JsonValue): readonly ConfigProblem[] {
  const masked = [...secretPaths()].filter((path) => {
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

function telegramSettings({ channels: { telegram } }: Config): readonly ConfigProblem[] {
  const problems = notNumericIds(telegram.allowFrom);
  if (!telegram.enabled) return problems;
  const path = 'channels.telegram.token';
  const remedy = 'Ask @BotFather for one, or set channels.telegram.enabled to false.';
  if (telegram.token === '') return [...problems, { path, problem: 'no token is set', remedy }];
  if (TELEGRAM_TOKEN.test(telegram.token)) return problems;
  return [...problems, { path, problem: 'this does not look like a bot token', remedy }];
}

function notNumericIds(allowFrom: readonly string[]): readonly ConfigProblem[] {
  return allowFrom.flatMap((id, index) => {
    if (id === '*' || /^\d+$/.test(id)) return [];
    const problem = `"${id}" is no user id; names can change hands`;
    const remedy = 'Write the numeric id. The bot tells it to whoever writes to it.';
    return [{ path: `channels.telegram.allowFrom.${index}`, problem, remedy }];
  });
}

function emailServers({ channels: { email } }: Config): readonly ConfigProblem[] {
  const needed = email.enabled
    ? (['imapHost', 'smtpHost', 'username', 'password'] as const)
    : ([] as const);
  const missing = needed
    .filter((key) => email[key] === '')
    .map((key) => ({
      path: `channels.email.${key}`,
      problem: 'needed while channels.email.enabled is true',
      remedy: 'Set it; `nanobot onboard` finds the servers of most mailboxes.',
    }));
  const open = (['imap', 'smtp'] as const).filter((kind) => {
    const host = email[`${kind}Host`];
    return email[`${kind}Security`] === 'none' && host !== '' && !isLoopbackHost(host);
  });
  const unencrypted = open.map((kind) => ({
    path: `channels.email.${kind}Security`,
    problem: `"none" would send the password unencrypted to ${email[`${kind}Host`]}`,
    remedy: 'Use "tls" or "starttls"; "none" is for servers on this machine.',
  }));
  return [...missing, ...unencrypted];
}

function emailAddresses({ channels: { email } }: Config): readonly ConfigProblem[] {
  const senders = email.allowFrom.filter((address) => address !== '*');
  const lists = [
    { key: 'allowFrom', values: senders },
    { key: 'aliases', values: email.aliases },
    { key: 'from', values: email.from === '' ? [] : [email.from] },
  ];
  const wrong = lists.flatMap(({ key, values }) =>
    values.filter((value) => !ADDRESS.test(value)).map((value) => ({ key, value })),
  );
  const problems: ConfigProblem[] = wrong.map(({ key, value }) => ({
    path: `channels.email.${key}`,
    problem: `"${value}" is no mail address`,
    remedy: 'Write it as name@example.org, without a display name.',
  }));
  if (
    email.enabled &&
    email.from === '' &&
    email.username !== '' &&
    !ADDRESS.test(email.username)
  ) {
    problems.push({
      path: 'channels.email.from',
      problem: 'the username is no address, so ours is not known',
      remedy: 'Set it to the address of this mailbox.',
    });
  }
  return problems;
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

function urls({ providers, channels }: Config): readonly ConfigProblem[] {
  const bases = Object.entries(providers).map(
    ([name, { apiBase }]) => [`providers.${name}.apiBase`, apiBase] as const,
  );
  const written = [...bases, ['channels.telegram.apiRoot', channels.telegram.apiRoot] as const];
  return written
    .filter(([, url]) => url !== '' && !/^https?:$/.test(protocolOf(url)))
    .map(([path, url]) => ({
      path,
      problem: `"${url}" is no http or https address`,
      remedy: 'Write it like https://api.example.org/v1.',
    }));
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
