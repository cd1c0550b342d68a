// `nanobot onboard`: sets up model, Telegram and mail, each proved before it is saved. Every answer
// is also a flag.

import { Command, Option } from 'commander';
import { parseList, parsePort, parseSeconds } from './flag-values.ts';
import type { EmailFlags } from './onboard/email-step.ts';
import type { ModelFlags } from './onboard/model-step.ts';
import type { TelegramFlags } from './onboard/telegram-step.ts';
import type { Terminal } from './terminal.ts';

type OnboardFlags = ModelFlags & TelegramFlags & EmailFlags & { readonly yes?: boolean };

const SECURITY = ['tls', 'starttls', 'none'];

export function onboardCommand(terminal: Terminal): Command {
  return new Command('onboard')
    .description('set up model, Telegram and mail; each is proved before it is saved')
    .option('-y, --yes', 'ask nothing: what no flag answers is found or left out')
    .option('--model <name>', 'with its prefix, e.g. anthropic/claude-sonnet-5-5')
    .option('--api-key <key>', 'of the model’s provider')
    .option('--api-base <url>', 'of the model’s provider, instead of its own')
    .option('--telegram <token>', 'bot token from @BotFather')
    .option('--no-telegram', 'leave Telegram as it is')
    .option('--pair-wait <seconds>', 'wait for the tap on the pairing link', parseSeconds)
    .option('--email <address>', 'the agent’s own mail address')
    .option('--no-email', 'leave mail as it is')
    .option('--email-password <password>', 'or EMAIL_PASSWORD in the environment')
    .option('--email-username <name>', 'where it is not the address')
    .option('--email-allow <addresses>', 'whose mail it may answer, by commas', parseList)
    .option('--imap-host <host>', 'where it is not found by itself')
    .option('--imap-port <port>', 'default 993', parsePort)
    .addOption(new Option('--imap-security <kind>').choices(SECURITY))
    .option('--smtp-host <host>', 'where it is not found by itself')
    .option('--smtp-port <port>', 'default 465', parsePort)
    .addOption(new Option('--smtp-security <kind>').choices(SECURITY))
    .action((flags: OnboardFlags) => onboard(terminal, flags));
}

async function onboard(terminal: Terminal, given: OnboardFlags) {
  const { openHome } = await import('../app/first-run.ts');
  const { createAsker } = await import('./onboard/asker.ts');
  const { setUpModel } = await import('./onboard/model-step.ts');
  const { setUpTelegram } = await import('./onboard/telegram-step.ts');
  const { setUpEmail } = await import('./onboard/email-step.ts');
  const { notes } = await openHome(terminal.home, terminal.env);
  const asker = createAsker(terminal, terminal.interactive && given.yes !== true);
  for (const note of notes) asker.say(note);
  const flags = withoutDefaults(given);
  await setUpModel(terminal, asker, flags);
  await setUpTelegram(terminal, asker, flags);
  await setUpEmail(terminal, asker, flags);
  asker.say('Done. "nanobot gateway" starts it; "nanobot doctor" checks it at any time.');
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
