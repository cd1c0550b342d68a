// `nanobot onboard`: sets up model, Telegram, mail, Lark and WhatsApp, each proved before it is saved
// (WhatsApp is linked instead). Every answer is also a flag.

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import type { EmailFlags } from '../channels/email/setup.ts';
import type { LarkFlags } from '../channels/lark/setup.ts';
import type { TelegramFlags } from '../channels/telegram/setup.ts';
import type { WhatsAppFlags } from '../channels/whatsapp/setup.ts';
import { parseList, parseNumbers, parsePhone, parsePort, parseSeconds } from './flag-values.ts';
import type { ModelFlags } from './onboard/model-step.ts';
import type { Terminal } from './terminal.ts';

type OnboardFlags = ModelFlags &
  TelegramFlags &
  EmailFlags &
  LarkFlags &
  WhatsAppFlags & { readonly yes?: boolean };

const FOREIGN_HOMES = ['.openclaw', '.nanobot-python'];
const SECURITY = ['tls', 'starttls', 'none'];

export function onboardCommand(terminal: Terminal): Command {
  return new Command('onboard')
    .description('set up model, Telegram, mail, Lark and WhatsApp; each is proved or linked')
    .option('-y, --yes', 'ask nothing: what no flag answers is found or left out')
    .option('--model <name>', 'with its prefix, e.g. anthropic/claude-sonnet-5-5')
    .option('--api-key <key>', 'of the model’s provider')
    .option('--api-base <url>', 'of the model’s provider, instead of its own')
    .option('--telegram <token>', 'bot token from @BotFather')
    .option('--no-telegram', 'leave Telegram as it is')
    .option('--pair-wait <seconds>', 'wait for the first use of the pairing link', parseSeconds)
    .option('--email <address>', 'the agent’s own mail address')
    .option('--no-email', 'leave mail as it is')
    .option('--email-password <password>', 'or EMAIL_PASSWORD in the environment')
    .option('--email-client-id <id>', 'OAuth2 instead of a password: id of the client')
    .option('--email-client-secret <secret>', 'or EMAIL_CLIENT_SECRET in the environment')
    .option('--email-refresh-token <token>', 'or EMAIL_REFRESH_TOKEN in the environment')
    .option('--email-token-url <url>', 'where the provider is not known')
    .option('--email-scope <scope>', 'where the provider is not known')
    .option('--email-username <name>', 'where it is not the address')
    .option('--email-allow <addresses>', 'whose mail it may answer, by commas', parseList)
    .option('--imap-host <host>', 'where it is not found by itself')
    .option('--imap-port <port>', 'default 993', parsePort)
    .addOption(new Option('--imap-security <kind>').choices(SECURITY))
    .option('--smtp-host <host>', 'where it is not found by itself')
    .option('--smtp-port <port>', 'default 465', parsePort)
    .addOption(new Option('--smtp-security <kind>').choices(SECURITY))
    .option('--lark', 'connect Lark (Feishu)')
    .option('--no-lark', 'leave Lark as it is')
    .option('--lark-app-id <id>', 'of an app in the developer console')
    .option('--lark-app-secret <secret>', 'or LARK_APP_SECRET in the environment')
    .option('--lark-domain <domain>', 'feishu, lark (outside China) or an address')
    .option('--whatsapp', 'link WhatsApp')
    .option('--no-whatsapp', 'leave WhatsApp as it is')
    .option('--whatsapp-phone <number>', 'its number, for a code beside the QR', parsePhone)
    .option('--whatsapp-self', 'the number is yours; answer in the chat with yourself')
    .option('--no-whatsapp-self', 'the number is the agent’s own')
    .option('--whatsapp-allow <numbers>', 'who may write, by commas', parseNumbers)
    .action((flags: OnboardFlags) => onboard(terminal, flags));
}

async function onboard(terminal: Terminal, given: OnboardFlags) {
  const { openHome } = await import('../kernel/config/files/first-run.ts');
  const { createAsker } = await import('./onboard/asker.ts');
  const { setUpModel } = await import('./onboard/model-step.ts');
  const { setUpTelegram } = await import('../channels/telegram/setup.ts');
  const { setUpEmail } = await import('../channels/email/setup.ts');
  const { setUpLark } = await import('../channels/lark/setup.ts');
  const { setUpWhatsApp } = await import('../channels/whatsapp/setup.ts');
  const { settleAll } = await import('./onboard/steps.ts');
  const { notes } = await openHome(terminal.home, terminal.env);
  const asker = createAsker(terminal, terminal.interactive && given.yes !== true);
  for (const note of [...notes, ...otherHomes()]) asker.say(note);
  const flags = withoutDefaults(given);
  if (asker.interactive)
    asker.say('Ctrl+C at a question leaves its step: try it again or skip it.');
  await settleAll(asker, [
    ['The model', () => setUpModel(terminal, asker, flags)],
    ['Telegram', (isRetry) => setUpTelegram(terminal, asker, flags, isRetry)],
    ['Mail', (isRetry) => setUpEmail(terminal, asker, flags, isRetry)],
    ['Lark', (isRetry) => setUpLark(terminal, asker, flags, isRetry)],
    ['WhatsApp', (isRetry) => setUpWhatsApp(terminal, asker, flags, isRetry)],
  ]);
  const { findRunningGateway } = await import('../app/running-gateway.ts');
  const isRunning = (await findRunningGateway(terminal.home)) !== undefined;
  asker.say('Done. "nanobot gateway" starts it; "nanobot doctor" checks it at any time.');
  if (isRunning || !asker.interactive || !(await asker.confirm('Start nanobot now?', true))) return;
  const { runGateway } = await import('./run-gateway.ts');
  await runGateway(terminal, { overrides: {}, channels: 'all', http: true });
}

/** Whoever comes from another program need not type it all again. */
function otherHomes(): readonly string[] {
  return FOREIGN_HOMES.map((name) => join(homedir(), name))
    .filter((folder) => existsSync(folder))
    .map((folder) => `There is ${folder}: "nanobot import ${folder}" takes over what is in it.`);
}

/** `--no-x` makes commander set `x` to true where nothing was said. */
function withoutDefaults({ telegram, email, ...rest }: OnboardFlags): OnboardFlags {
  const said = (value: unknown): value is string | false =>
    typeof value === 'string' || value === false;
  return {
    ...rest,
    ...(said(telegram) ? { telegram } : {}),
    ...(said(email) ? { email } : {}),
  };
}
