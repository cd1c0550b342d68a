// What the doctor asks of the world: the model, Telegram, Lark, each mailbox.

import { checkMailLogins, proveLark, proveTelegram } from '../../channels/channel-setup.ts';
import { mailboxesOf } from '../../channels/email/rules/accounts.ts';
import type { Config, EmailConfig } from '../../kernel/config/config.ts';
import { accountName } from '../../kernel/message/account.ts';
import { ChannelError, NanobotError } from '../../kernel/message/errors.ts';
import { channelName } from '../../kernel/message/ids.ts';
import { proveConfigured, resolveConfigured } from '../../providers/model-setup.ts';
import { DEMO_MODEL } from '../../providers/rules/model-names.ts';
import type { Terminal } from '../terminal.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

const MODEL_TIMEOUT_MS = 60_000;
const CHANNEL_TIMEOUT_MS = 30_000;
const SET_UP = 'Connect one: nanobot onboard';
const MODEL_REMEDIES: Readonly<Record<string, string>> = {
  provider_network:
    'Check the network of this machine, and providers.<vendor>.apiBase if it is set.',
  provider_unknown_model: SET_UP,
};

export async function checkModel(
  { env, clock, home }: Terminal,
  config: Config,
  isLive: boolean,
): Promise<Finding> {
  try {
    const name = await resolveConfigured(config, env, clock, home);
    if (name === DEMO_MODEL) return warn('model', 'none: a demo answers', SET_UP);
    if (!isLive) return ok('model', `${name} (not asked; --live asks it)`);
    const signal = AbortSignal.timeout(MODEL_TIMEOUT_MS);
    const proof = await proveConfigured(config, env, clock, signal, home);
    if (!proof.ok) return fail('model', `${proof.model} answered nothing`, SET_UP);
    return ok('model', `${proof.model} answered in ${proof.latencyMs} ms`);
  } catch (error) {
    if (!(error instanceof NanobotError)) throw error;
    return fail('model', error.message, modelRemedy(error));
  }
}

/** What the person in a chat would read, and what only whoever sits at the machine can do. */
function modelRemedy({ code, userText = SET_UP }: NanobotError): string {
  const more = MODEL_REMEDIES[code];
  return more === undefined ? userText : `${userText} ${more}`;
}

export async function checkTelegram({
  channels: { telegram },
}: Config): Promise<readonly Finding[]> {
  if (!telegram.enabled) return [];
  try {
    const signal = AbortSignal.timeout(CHANNEL_TIMEOUT_MS);
    const bot = await proveTelegram(telegram.token, telegram.apiRoot, signal);
    return [ok('telegram', `the token is @${bot.username}'s`)];
  } catch (error) {
    if (!(error instanceof NanobotError)) throw error;
    return [fail('telegram', error.message, remedyFor(error, 'A new token', 'telegram'))];
  }
}

export async function checkLark({ channels: { lark } }: Config): Promise<readonly Finding[]> {
  if (!lark.enabled) return [];
  try {
    const bot = await proveLark(lark, AbortSignal.timeout(CHANNEL_TIMEOUT_MS));
    return [ok('lark', `the app's bot is ${bot.name}`)];
  } catch (error) {
    if (!(error instanceof NanobotError)) throw error;
    return [fail('lark', error.message, remedyFor(error, 'Id and secret', 'lark'))];
  }
}

/** A platform that does not answer says nothing about what it would be told. */
function remedyFor(error: NanobotError, what: string, channel: 'telegram' | 'lark'): string {
  const isAway = error instanceof ChannelError && error.remedy.kind === 'backoff';
  if (isAway) return 'Check the network of this machine; the gateway tries again by itself.';
  return `${what}: nanobot channels login ${channel}`;
}

export async function checkMailboxes({ channels }: Config): Promise<readonly Finding[]> {
  const mailboxes = [...mailboxesOf(channels.email)].filter(([, { enabled }]) => enabled);
  const findings = mailboxes.map(([account, mailbox]) =>
    checkMailbox(accountName({ channel: channelName('email'), account }), mailbox),
  );
  return Promise.all(findings);
}

async function checkMailbox(name: string, email: EmailConfig): Promise<Finding> {
  const proof = await checkMailLogins(email, AbortSignal.timeout(CHANNEL_TIMEOUT_MS));
  if (proof.kind === 'proven')
    return ok(name, `${email.imapHost} and ${email.smtpHost} take the log-in`);
  return fail(name, `${proof.step}: ${proof.problem}`, proof.remedy);
}
