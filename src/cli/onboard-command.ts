// The command `nanobot onboard`: sets up the model (key and one real completion first), Telegram,
// mail, Lark and WhatsApp, each verified before it is saved. Every answer is also a flag.

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Argument, Command, Option } from 'commander';
import type { EmailFlags } from '../channels/email/setup.ts';
import type { LarkFlags } from '../channels/lark/setup.ts';
import type { TelegramFlags } from '../channels/telegram/setup.ts';
import type { WhatsAppFlags } from '../channels/whatsapp/setup.ts';
import { type Asker, currentConfig, save, tryOut } from '../features/setup/asker.ts';
import type { ModelFlags } from '../features/setup/model-step.ts';
import { APPROVAL_POLICIES, type ApprovalPolicy, POLICY_WORDS } from '../kernel/access/rights.ts';
import { GENERAL_PROXY, ProxyError } from '../lib/net/address-rules.ts';
import { proveProxy } from '../lib/net/proxies.ts';
import { t } from '../lib/texts.ts';
import { parseList, parseNumbers, parsePhone, parsePort, parseSeconds } from './flag-values.ts';
import { CommandFailure, EXIT, type Terminal } from './terminal.ts';

type ProxyFlags = { readonly proxy?: string };

/** Asked for only where Telegram cannot be reached. */
async function setUpProxy(
  terminal: Terminal,
  asker: Asker,
  { proxy }: ProxyFlags,
): Promise<string | undefined> {
  if (proxy === undefined) return undefined;
  const settings = { [GENERAL_PROXY]: proxy };
  const { network, channels } = await tryOut(terminal, settings);
  const { hostname, port } = new URL(channels.telegram.apiRoot);
  await asker.during(
    t`Connecting through the proxy`,
    () => proveProxy(network.proxy, hostname, Number(port) || 443).catch(orRefused(asker)),
    () => t`The proxy works.`,
  );
  await save(terminal, settings);
  return 'proxy';
}

/** A proxy may serve the model and not Telegram. @throws CommandFailure where it does not work */
const orRefused = (asker: Asker) => (error: unknown) => {
  if (!(error instanceof ProxyError)) throw error;
  if (error.code !== 'proxy_refused') throw new CommandFailure(EXIT.failure, error.message);
  asker.warn(error.message);
};

/** The default of approvals; saved where it changes. */
async function setUpApprovals(
  terminal: Terminal,
  asker: Asker,
  { approvals }: Pick<OnboardFlags, 'approvals'>,
): Promise<string | undefined> {
  const { owner } = (await currentConfig(terminal)).tools.approvals;
  const choices = (['normal', 'strict', 'open'] as const).map((value) => {
    return { value, label: value, hint: POLICY_WORDS[value] };
  });
  const chosen = approvals ?? (await asker.choose(t`How much should it ask you?`, choices, owner));
  if (chosen === owner) return undefined;
  await save(terminal, { 'tools.approvals.owner': chosen });
  return t`approvals ${chosen}`;
}

type OnboardFlags = ProxyFlags &
  ModelFlags &
  TelegramFlags &
  EmailFlags &
  LarkFlags &
  WhatsAppFlags & { readonly yes?: boolean; readonly approvals?: ApprovalPolicy };

const FOREIGN_HOMES = ['.openclaw', '.nanobot-python'];
const SECURITY = ['tls', 'starttls', 'none'];

export function onboardCommand(terminal: Terminal): Command {
  return new Command('onboard')
    .description(t`set up the model, Telegram, email, Lark and WhatsApp, and test each`)
    .option('-y, --yes', t`ask no questions: values without a flag are detected or skipped`)
    .option('--model <name>', t`model with its prefix, e.g. anthropic/claude-sonnet-5-5`)
    .option('--api-key <key>', t`API key of the model’s provider`)
    .option('--api-base <url>', t`API address, if it is not the provider’s own`)
    .option('--proxy <url>', t`proxy of all connections, e.g. socks5h://proxy.example:1080`)
    .addOption(
      new Option('--approvals <policy>', t`how much the agent asks you`).choices(APPROVAL_POLICIES),
    )
    .option('--telegram <token>', t`bot token from @BotFather`)
    .option('--no-telegram', t`do not change Telegram`)
    .option('--pair-wait <seconds>', t`wait until the owner opens the pairing link`, parseSeconds)
    .option('--email <address>', t`email address of the agent`)
    .option('--no-email', t`do not change email`)
    .option('--email-password <password>', t`password or app password; default: $EMAIL_PASSWORD`)
    .option('--email-client-id <id>', t`OAuth2 instead of a password: client id`)
    .option(
      '--email-client-secret <secret>',
      t`OAuth2: client secret; default: $EMAIL_CLIENT_SECRET`,
    )
    .option(
      '--email-refresh-token <token>',
      t`OAuth2: refresh token; default: $EMAIL_REFRESH_TOKEN`,
    )
    .option('--email-token-url <url>', t`OAuth2: token address, if the provider is unknown`)
    .option('--email-authorize-url <url>', t`OAuth2: consent address, if the provider is unknown`)
    .option(
      '--email-device-url <url>',
      t`OAuth2: address for codes of other devices, if the provider is unknown`,
    )
    .option('--email-scope <scope>', t`OAuth2: scope, if the provider is unknown`)
    .option('--email-device', t`OAuth2: log in by a code on another device`)
    .option('--email-username <name>', t`user name, if it is not the address`)
    .option(
      '--email-allow <addresses>',
      t`addresses whose email the agent answers, separated by commas`,
      parseList,
    )
    .option('--imap-host <host>', t`IMAP server, if it is not detected`)
    .option('--imap-port <port>', t`IMAP port; default: 993`, parsePort)
    .addOption(new Option('--imap-security <kind>').choices(SECURITY))
    .option('--smtp-host <host>', t`SMTP server, if it is not detected`)
    .option('--smtp-port <port>', t`SMTP port; default: 465`, parsePort)
    .addOption(new Option('--smtp-security <kind>').choices(SECURITY))
    .option('--lark', t`connect Lark (Feishu)`)
    .option('--no-lark', t`do not change Lark`)
    .option('--lark-app-id <id>', t`app id from the developer console`)
    .option('--lark-app-secret <secret>', t`app secret; default: $LARK_APP_SECRET`)
    .option('--lark-domain <domain>', t`feishu, lark (outside China) or a URL`)
    .option('--whatsapp', t`link WhatsApp`)
    .option('--no-whatsapp', t`do not change WhatsApp`)
    .option(
      '--whatsapp-phone <number>',
      t`number of the account, to link it by a code instead of the QR code`,
      parsePhone,
    )
    .option('--whatsapp-self', t`the number is yours; the agent answers in the chat with yourself`)
    .option('--no-whatsapp-self', t`the number belongs to the agent alone`)
    .option(
      '--whatsapp-allow <numbers>',
      t`numbers that may write, separated by commas`,
      parseNumbers,
    )
    .addArgument(
      new Argument('[part]', t`only this: voice, or the web search`).choices(['voice', 'search']),
    )
    .action((part: 'voice' | 'search' | undefined, flags: OnboardFlags) =>
      part === undefined ? onboard(terminal, flags) : onboardPart(terminal, part),
    );
}

async function onboardPart(terminal: Terminal, part: 'voice' | 'search') {
  if (!terminal.interactive) {
    const message = t`"nanobot onboard ${part}" asks questions and needs a terminal; in a script, use: nanobot config set`;
    throw new CommandFailure(EXIT.usage, message);
  }
  const { openHome } = await import('../kernel/config/files/first-run.ts');
  const { createAsker, settleAll } = await import('./onboard/asker.ts');
  await openHome(terminal.home, terminal.env);
  const asker = createAsker(terminal, true);
  if (part === 'voice') {
    const { setUpVoice } = await import('../features/voice/setup.ts');
    return settleAll(asker, [[t`Voice`, () => setUpVoice(terminal, asker)]]);
  }
  const { setUpWebSearch } = await import('../tools/search/setup.ts');
  return settleAll(asker, [[t`Web search`, () => setUpWebSearch(terminal, asker)]]);
}

async function onboard(terminal: Terminal, given: OnboardFlags) {
  const { openHome } = await import('../kernel/config/files/first-run.ts');
  const { createAsker, settleAll } = await import('./onboard/asker.ts');
  const { setUpModel } = await import('../features/setup/model-step.ts');
  const { setUpTelegram } = await import('../channels/telegram/setup.ts');
  const { setUpEmail } = await import('../channels/email/setup.ts');
  const { setUpLark } = await import('../channels/lark/setup.ts');
  const { setUpWhatsApp } = await import('../channels/whatsapp/setup.ts');
  const { notes } = await openHome(terminal.home, terminal.env);
  const asker = createAsker(terminal, terminal.interactive && given.yes !== true);
  for (const note of [...notes, ...otherHomes()]) asker.say(note);
  const flags = withoutDefaults(given);
  if (asker.interactive) asker.say(t`Press Ctrl+C at a question to skip or repeat this step.`);
  await settleAll(asker, [
    [t`Proxy`, () => setUpProxy(terminal, asker, flags)],
    [t`Model`, () => setUpModel(terminal, asker, flags)],
    ['Telegram', (isRetry) => setUpTelegram(terminal, asker, flags, isRetry)],
    [t`Email`, (isRetry) => setUpEmail(terminal, asker, flags, isRetry)],
    ['Lark', (isRetry) => setUpLark(terminal, asker, flags, isRetry)],
    ['WhatsApp', (isRetry) => setUpWhatsApp(terminal, asker, flags, isRetry)],
    [t`Approvals`, () => setUpApprovals(terminal, asker, flags)],
  ]);
  const { findRunningGateway } = await import('../kernel/home-state.ts');
  const isRunning = (await findRunningGateway(terminal.home)) !== undefined;
  asker.say(t`Setup finished. Start with "nanobot gateway"; check with "nanobot doctor".`);
  if (isRunning || !asker.interactive || !(await asker.confirm(t`Start nanobot now?`, true)))
    return;
  const { runGateway } = await import('./gateway-command.ts');
  await runGateway(terminal, { overrides: {}, channels: 'all', http: true });
}

/** Homes of other programs that can be imported. */
function otherHomes(): readonly string[] {
  return FOREIGN_HOMES.map((name) => join(homedir(), name))
    .filter((folder) => existsSync(folder))
    .map((folder) => t`Found ${folder}. Import its settings and memory: nanobot import ${folder}`);
}

/** `--no-x` makes commander set `x` to true where the flag is absent. */
function withoutDefaults({ telegram, email, ...rest }: OnboardFlags): OnboardFlags {
  const said = (value: unknown): value is string | false =>
    typeof value === 'string' || value === false;
  return {
    ...rest,
    ...(said(telegram) ? { telegram } : {}),
    ...(said(email) ? { email } : {}),
  };
}
