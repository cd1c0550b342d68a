// Checks of remote services: the model, the proxies, Telegram, Lark, each mailbox.

import {
  checkMailLogins,
  proveLark,
  proveTelegram,
  webhookOf,
} from '../../channels/channel-setup.ts';
import type { GrantRows } from '../../channels/email/access-tokens.ts';
import { type EmailConfig, mailboxesOf, usesOAuth2 } from '../../channels/email/settings.ts';
import { larkRoot } from '../../channels/lark/settings.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { OpenedState } from '../../kernel/home-state.ts';
import { ChannelError, NanobotError } from '../../kernel/message/errors.ts';
import { accountName, channelName, channelScope } from '../../kernel/message/ids.ts';
import { isDirect, ProxyError, readProxy, shownProxy } from '../../lib/net/address-rules.ts';
import { proveProxy } from '../../lib/net/proxies.ts';
import { t } from '../../lib/texts.ts';
import { createCredentials } from '../../providers/credentials.ts';
import { proveConfigured, resolveConfigured } from '../../providers/model-setup.ts';
import { CLOUD_ORDER, DEMO_MODEL } from '../../providers/rules/model-names.ts';
import { type Finding, fail, type Machine, ok, warn } from './machine-checks.ts';

const MODEL_TIMEOUT_MS = 60_000;
const CHANNEL_TIMEOUT_MS = 30_000;
const SET_UP = t`Connect a model: nanobot onboard`;
const MODEL_REMEDIES: Readonly<Record<string, string>> = {
  provider_network: t`Check the network connection, and providers.<vendor>.apiBase if it is set.`,
  provider_unknown_model: SET_UP,
};

export async function checkModel(
  { env, clock, home }: Machine,
  config: Config,
  isLive: boolean,
): Promise<Finding> {
  try {
    const name = await resolveConfigured(config, env, clock, home);
    if (name === DEMO_MODEL) return warn('model', t`none; the demo model answers`, SET_UP);
    if (!isLive) return ok('model', t`${name} (not tested; --live sends a test request)`);
    const signal = AbortSignal.timeout(MODEL_TIMEOUT_MS);
    const proof = await proveConfigured(config, env, clock, signal, home);
    if (!proof.ok) return fail('model', t`${proof.model} returned an empty answer`, SET_UP);
    return ok('model', t`${proof.model} answered in ${proof.latencyMs} ms`);
  } catch (error) {
    if (!(error instanceof NanobotError)) throw error;
    return fail('model', error.message, modelRemedy(error));
  }
}

/**
 * Models for the background, or for when another one fails: that one is misspelt would show late.
 */
export async function checkOtherModels(
  { env, clock, home }: Machine,
  config: Config,
): Promise<readonly Finding[]> {
  const { fallbackModels, fastModel } = config.agents.defaults;
  const settings = [
    ...fallbackModels.map((model) => ['fallbackModels', model] as const),
    ...(fastModel === '' ? [] : [['fastModel', fastModel] as const]),
  ];
  const found = settings.map(async ([setting, model]) => {
    const defaults = { ...config.agents.defaults, model };
    const agents = { ...config.agents, defaults };
    try {
      await resolveConfigured({ ...config, agents }, env, clock, home);
      return [];
    } catch (error) {
      if (!(error instanceof NanobotError)) throw error;
      const text = t`agents.defaults.${setting}: "${model}" is not used, ${error.message}`;
      return [warn('model', text, error.userText ?? SET_UP)];
    }
  });
  return (await Promise.all(found)).flat();
}

/** The text for a person in a chat, and what only the operator of the machine can do. */
function modelRemedy({ code, userText = SET_UP }: NanobotError): string {
  const more = MODEL_REMEDIES[code];
  return more === undefined ? userText : `${userText} ${more}`;
}

/**
 * Each proxy by a connection to what it is for; the first server of each, because a proxy that
 * refuses one is reported where that is checked.
 */
export async function checkProxies(
  config: Config,
  env: Machine['env'],
): Promise<readonly Finding[]> {
  const served = new Map<string, URL>();
  for (const [setting, address] of proxiedServers(config, env)) {
    const url = URL.parse(address);
    const proxy = readProxy(setting);
    const isFor = proxy && url && !isDirect(proxy, url.hostname, portOf(url));
    if (isFor && !served.has(setting)) served.set(setting, url);
  }
  return Promise.all([...served].map(([setting, url]) => checkProxy(setting, url)));
}

function* proxiedServers({ channels, network, ...config }: Config, env: Machine['env']) {
  const { telegram, lark, whatsapp, email } = channels;
  if (telegram.enabled) yield [telegram.proxy, telegram.apiRoot] as const;
  if (lark.enabled) yield [lark.proxy, larkRoot(lark.domain)] as const;
  if (whatsapp.enabled) yield [whatsapp.proxy, whatsapp.socketUrl] as const;
  for (const { enabled, proxy, imapHost, imapPort } of mailboxesOf(email).values()) {
    if (enabled) yield [proxy, `imap://${imapHost}:${imapPort}`] as const;
  }
  const credentials = createCredentials({ ...config, channels, network }, env, []);
  for (const vendor of CLOUD_ORDER) {
    const access = credentials.accessTo(vendor);
    if (access !== undefined) yield [access.proxy, access.apiBase] as const;
  }
  yield [network.proxy, telegram.apiRoot] as const;
}

const USUAL_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'ws:': 80 };
const portOf = ({ port, protocol }: URL) => Number(port) || (USUAL_PORTS[protocol] ?? 443);

async function checkProxy(setting: string, url: URL): Promise<Finding> {
  const [host, port] = [url.hostname, portOf(url)];
  try {
    await proveProxy(setting, host, port);
    const proxy = readProxy(setting);
    return ok(PROXY_CHECK, t`${proxy && shownProxy(proxy)} connects to ${host}:${port}`);
  } catch (error) {
    if (error instanceof ProxyError) return fail(PROXY_CHECK, error.problem, error.remedy);
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    const remedy = t`Use socks5h instead of socks5, so that the proxy looks the name up.`;
    return fail(PROXY_CHECK, t`this machine does not find ${host} (${code})`, remedy);
  }
}

const PROXY_CHECK = 'proxy';

export async function checkTelegram({
  channels: { telegram },
}: Config): Promise<readonly Finding[]> {
  let clock: readonly Finding[] = [];
  const found = await checkBot(
    'telegram',
    telegram.enabled,
    t`Enter a new token`,
    async (signal) => {
      const bot = await proveTelegram(telegram.token, telegram, signal);
      if (bot.aheadMs !== undefined) clock = [clockFinding(bot.aheadMs)];
      return t`token accepted, bot @${bot.username}`;
    },
  );
  const isProven = telegram.enabled && found.every(({ level }) => level === 'ok');
  return [...found, ...clock, ...(isProven ? await checkWebhook(telegram) : [])];
}

/** Servers of OAuth2 and signatures of mails allow a few minutes at most. */
const MAX_SKEW_MS = 60_000;

export function clockFinding(aheadMs: number): Finding {
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  if (Math.abs(aheadMs) <= MAX_SKEW_MS) return ok('clock', t`right, compared with Telegram`);
  const way = aheadMs > 0 ? t`slow` : t`fast`;
  const remedy = t`Set the clock: sudo timedatectl set-ntp true, or start chrony or ntpd.`;
  return warn('clock', t`${seconds} s ${way}, compared with Telegram`, remedy);
}

async function checkWebhook({
  token,
  ...line
}: Config['channels']['telegram']): Promise<readonly Finding[]> {
  const hook = await webhookOf(token, line, AbortSignal.timeout(CHANNEL_TIMEOUT_MS));
  if (hook === undefined) return [];
  const text = t`a webhook sends the bot's messages to ${hook.host}, so this program gets none`;
  const remedy = t`Run: nanobot doctor --fix. If another program uses the bot, give it a bot of its own.`;
  const fix = { text: t`remove the webhook; waiting messages stay`, run: () => hook.remove() };
  return [fail('telegram-webhook', text, remedy, fix)];
}

export function checkLark({ channels: { lark } }: Config): Promise<readonly Finding[]> {
  return checkBot('lark', lark.enabled, t`Enter the app id and secret again`, async (signal) => {
    return t`app accepted, bot ${(await proveLark(lark, signal)).name}`;
  });
}

/** `what`: what to do where the platform rejects the credentials. */
async function checkBot(
  channel: string,
  isEnabled: boolean,
  what: string,
  prove: (signal: AbortSignal) => Promise<string>,
): Promise<readonly Finding[]> {
  if (!isEnabled) return [];
  try {
    return [ok(channel, await prove(AbortSignal.timeout(CHANNEL_TIMEOUT_MS)))];
  } catch (error) {
    if (!(error instanceof NanobotError)) throw error;
    // An unreachable platform says nothing about the credentials.
    const isAway = error instanceof ChannelError && error.remedy.kind === 'backoff';
    const remedy = isAway
      ? t`Check the network connection; the gateway retries automatically.`
      : t`${what}: nanobot channels login ${channel}`;
    return [fail(channel, error.message, remedy)];
  }
}

export async function checkMailboxes(
  { channels }: Config,
  state: OpenedState | undefined,
): Promise<readonly Finding[]> {
  const mailboxes = [...mailboxesOf(channels.email)].filter(([, { enabled }]) => enabled);
  const findings = mailboxes.map(([account, mailbox]) => {
    const at = { channel: channelName('email'), account };
    return checkMailbox(accountName(at), mailbox, state?.store.scope(channelScope(at)));
  });
  return Promise.all(findings);
}

async function checkMailbox(
  name: string,
  email: EmailConfig,
  state: GrantRows | undefined,
): Promise<Finding> {
  if (state === undefined && usesOAuth2(email)) {
    // The provider may void a refresh token at its use, and nothing could keep the next one.
    return warn(name, t`OAuth2 is not tested before the first start`, t`Start it: nanobot gateway`);
  }
  const proof = await checkMailLogins(email, AbortSignal.timeout(CHANNEL_TIMEOUT_MS), state);
  if (proof.kind === 'proven')
    return ok(name, t`login accepted by ${email.imapHost} and ${email.smtpHost}`);
  return fail(name, `${proof.step}: ${proof.problem}`, proof.remedy);
}
