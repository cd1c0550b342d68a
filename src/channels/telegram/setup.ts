// Onboarding of Telegram: the bot's token, tested by asking Telegram for its bot, and a link whose
// first tap makes its sender the owner.

import type { Asker } from '../../cli/onboard/asker.ts';
import { currentConfig, offerPairing, save } from '../../cli/onboard/asker.ts';
import type { Terminal } from '../../cli/terminal.ts';
import { t } from '../../lib/texts.ts';
import { type ProvenBot, pairingLink, proveTelegram } from '../channel-setup.ts';

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
  terminal: Terminal,
  asker: Asker,
  flags: TelegramFlags,
  isRetry = false,
): Promise<string | undefined> {
  if (flags.telegram === false) return undefined;
  const { token: known } = (await currentConfig(terminal)).channels.telegram;
  const wanted =
    isRetry ||
    flags.telegram !== undefined ||
    (await asker.confirm(t`Connect Telegram?`, known !== ''));
  if (!wanted) return undefined;
  const bot = await provedBot(terminal, asker, isRetry ? '' : flags.telegram || known);
  await offerPairing(terminal, asker, {
    channel: 'telegram',
    request: t`Open this link on your phone and tap Start. The first person who does becomes the owner:`,
    sign: t`the tap`,
    link: (code) => pairingLink(bot.username, code),
    ...(flags.pairWait === undefined ? {} : { waitSecs: flags.pairWait }),
  });
  return `Telegram @${bot.username}`;
}

async function provedBot(terminal: Terminal, asker: Asker, given: string): Promise<ProvenBot> {
  if (given !== '') return proveAndSave(terminal, asker, given);
  asker.say(HOW_TO);
  const token = await asker.secret({ message: t`Bot token`, flag: '--telegram' });
  return proveAndSave(terminal, asker, token);
}

async function proveAndSave(terminal: Terminal, asker: Asker, given: string): Promise<ProvenBot> {
  const { apiRoot, token: known } = (await currentConfig(terminal)).channels.telegram;
  const signal = AbortSignal.timeout(PROOF_TIMEOUT_MS);
  const bot = await asker.during(
    t`Checking the token with Telegram`,
    () => proveTelegram(given, apiRoot, signal),
    (found) => t`Telegram accepted it: @${found.username} (${found.name}).`,
  );
  await save(terminal, {
    'channels.telegram.enabled': true,
    // A configured value may be a reference to the environment, and stays.
    ...(given === known ? {} : { 'channels.telegram.token': tokenText(terminal, given) }),
  });
  return bot;
}

/** A token from the environment is saved as a reference, not copied. */
function tokenText({ env }: Terminal, token: string): string {
  return env[TOKEN_VARIABLE] === token ? `\${${TOKEN_VARIABLE}}` : token;
}
