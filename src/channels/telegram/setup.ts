// Onboarding of Telegram: the bot's token, tested by asking Telegram for its bot, and a link whose
// first tap makes its sender the owner.

import {
  type Asker,
  currentConfig,
  type Settings,
  type SetupHost,
  save,
  tryOut,
} from '../../features/setup/asker.ts';
import { offerPairing } from '../../features/setup/pairing.ts';
import { ChannelError } from '../../kernel/message/errors.ts';
import { readProxy } from '../../lib/net/address-rules.ts';
import { t } from '../../lib/texts.ts';
import { type ProvenBot, pairingLink, proveTelegram } from '../channel-setup.ts';
import type { TelegramConfig } from './settings.ts';

const PROOF_TIMEOUT_MS = 20_000;
const TOKEN_VARIABLE = 'TELEGRAM_BOT_TOKEN';

export type TelegramFlags = {
  /** A token, or false for --no-telegram. */
  readonly telegram?: string | false;
  /** Seconds to wait for the tap on the link. */
  readonly pairWait?: number;
};

const HOW_TO = t`Telegram: open https://t.me/BotFather, send /newbot, answer its two questions and copy the token.`;

export async function setUpTelegram(
  host: SetupHost,
  asker: Asker,
  flags: TelegramFlags,
  isRetry = false,
): Promise<string | undefined> {
  if (flags.telegram === false) return undefined;
  const { token: known } = (await currentConfig(host)).channels.telegram;
  const wanted =
    isRetry ||
    flags.telegram !== undefined ||
    (await asker.confirm(t`Connect Telegram?`, known !== ''));
  if (!wanted) return undefined;
  const bot = await provedBot(host, asker, isRetry ? '' : flags.telegram || known);
  await offerPairing(host, asker, {
    channel: 'telegram',
    request: t`Open this link on your phone and tap Start. The first person who does becomes the owner:`,
    sign: t`the tap`,
    link: (code) => pairingLink(bot.username, code),
    ...(flags.pairWait === undefined ? {} : { waitSecs: flags.pairWait }),
  });
  return `Telegram @${bot.username}`;
}

async function provedBot(host: SetupHost, asker: Asker, given: string): Promise<ProvenBot> {
  if (given !== '') return proveAndSave(host, asker, given);
  asker.say(HOW_TO);
  const token = await asker.secret({ message: t`Bot token`, flag: '--telegram' });
  return proveAndSave(host, asker, token);
}

async function proveAndSave(host: SetupHost, asker: Asker, given: string): Promise<ProvenBot> {
  const { telegram } = (await currentConfig(host)).channels;
  const { token: known } = telegram;
  const through = (settings: Settings, channel: TelegramConfig) =>
    asker.during(
      t`Checking the token with Telegram`,
      async () => ({
        bot: await proveTelegram(given, channel, AbortSignal.timeout(PROOF_TIMEOUT_MS)),
        settings,
      }),
      ({ bot }) => t`Telegram accepted it: @${bot.username} (${bot.name}).`,
    );
  const { bot, settings } = await through({}, telegram).catch(async (error: unknown) => {
    const proxied = await askProxy(asker, error);
    return through(proxied, (await tryOut(host, proxied)).channels.telegram);
  });
  await save(host, {
    ...settings,
    'channels.telegram.enabled': true,
    // A configured value may be a reference to the environment, and stays.
    ...(given === known ? {} : { 'channels.telegram.token': tokenText(host, given) }),
  });
  return bot;
}

/** Where Telegram is blocked. @throws the error, if a proxy cannot help or the person has none */
async function askProxy(asker: Asker, error: unknown): Promise<Settings> {
  const isAway = error instanceof ChannelError && error.code === 'telegram_unreachable';
  if (!isAway || !asker.interactive) throw error;
  asker.warn(error.message);
  const proxy = await asker.text({
    message: t`Proxy for Telegram, e.g. socks5h://proxy.example:1080 (leave empty: none)`,
    flag: '--proxy',
    optional: true,
    check: (text) => (readProxy(text) === undefined ? PROXY_FORM : undefined),
  });
  if (proxy === '') throw error;
  return { 'channels.telegram.proxy': proxy };
}

const PROXY_FORM = t`Start with http://, https://, socks5:// or socks5h://, and end with the port.`;

/** A token from the environment is saved as a reference, not copied. */
function tokenText({ env }: SetupHost, token: string): string {
  return env[TOKEN_VARIABLE] === token ? `\${${TOKEN_VARIABLE}}` : token;
}
