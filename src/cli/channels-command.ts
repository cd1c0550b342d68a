// `nanobot channels`: how each channel fares, and connecting one: its credentials proved, its owner
// paired.

import { Command } from 'commander';
import type { CredentialFlags } from '../channels/email/setup.ts';
import { defined } from '../lib/json/json.ts';
import { channelLine, type ReportedChannel } from './channel-lines.ts';
import { parseNumbers, parsePhone, parseSeconds } from './flag-values.ts';
import type { Asker, Step } from './onboard/asker.ts';
import { CommandFailure, EXIT, type Terminal, textTable } from './terminal.ts';

type LoginFlags = {
  readonly token?: string;
  readonly phone?: string;
  readonly self?: boolean;
  readonly allow?: readonly string[];
  readonly pairWait?: number;
  readonly email?: string;
  readonly account?: string;
  readonly appId?: string;
  readonly appSecret?: string;
  readonly domain?: string;
} & CredentialFlags;

const DOORS = ['web', 'terminal'];

export function channelsCommand(terminal: Terminal): Command {
  const command = new Command('channels').description('the platforms people write from');
  command
    .command('status')
    .description('how each channel fares')
    .option('--json', 'as JSON')
    .action(({ json }: { readonly json?: boolean }) => showStatus(terminal, json === true));
  command
    .command('login')
    .description('prove a channel’s credentials and pair its owner')
    .argument('<channel>', 'telegram, email, whatsapp or lark')
    .option('-t, --token <token>', 'Telegram: a new bot token')
    .option('--phone <number>', 'WhatsApp: its number, for a code beside the QR', parsePhone)
    .option('--self', 'WhatsApp: the number is yours; answer in the chat with yourself')
    .option('--no-self', 'WhatsApp: the number is the agent’s own')
    .option('--allow <numbers>', 'WhatsApp: who may write, by commas', parseNumbers)
    .option('--email <address>', 'Email: the address of the mailbox')
    .option('--account <name>', 'Email: a further mailbox, by a short name')
    .option('--email-client-id <id>', 'Email by OAuth2: id of the client')
    .option('--email-client-secret <secret>', 'Email by OAuth2, or EMAIL_CLIENT_SECRET')
    .option('--email-refresh-token <token>', 'Email by OAuth2, or EMAIL_REFRESH_TOKEN')
    .option('--email-token-url <url>', 'Email by OAuth2: where the provider is not known')
    .option('--email-scope <scope>', 'Email by OAuth2: where the provider is not known')
    .option('--app-id <id>', 'Lark: of an app in the developer console')
    .option('--app-secret <secret>', 'Lark: or LARK_APP_SECRET in the environment')
    .option('--domain <domain>', 'Lark: feishu, lark (outside China) or an address')
    .option('--pair-wait <seconds>', 'wait for the first use of the pairing link', parseSeconds)
    .action((name: string, flags: LoginFlags) => login(terminal, name, flags));
  command
    .command('restart')
    .description('start a channel of the running gateway again')
    .argument('<channel>', 'e.g. whatsapp; email@work is the mailbox "work"')
    .action((name: string) => restart(terminal, name));
  return command;
}

async function showStatus(terminal: Terminal, json: boolean) {
  const { configInForce } = await import('../kernel/config/files/config-file.ts');
  const { findRunningGateway } = await import('../kernel/running-gateway.ts');
  const { reportChannels } = await import('./channel-lines.ts');
  const running = await findRunningGateway(terminal.home);
  const { config } = await configInForce(terminal.home, terminal.env, running !== undefined);
  const channels = await reportChannels(config, running);
  if (json) return terminal.printJson(channels);
  const row = (channel: ReportedChannel) => [
    channel.name,
    channelLine(channel, terminal.clock.now()),
  ];
  for (const line of textTable(channels.map(row))) terminal.tell(line);
}

async function login(terminal: Terminal, name: string, flags: LoginFlags) {
  if (DOORS.includes(name)) {
    return terminal.note(
      `${name} has no account to connect. "nanobot link" opens the web page, "nanobot agent" talks here.`,
    );
  }
  await assertKnown(name);
  await assertAccount(name, flags.account);
  const { openHome } = await import('../kernel/config/files/first-run.ts');
  const { createAsker, settleAll } = await import('./onboard/asker.ts');
  await openHome(terminal.home, terminal.env);
  const asker = createAsker(terminal, terminal.interactive);
  await settleAll(asker, [await stepOf(terminal, asker, name, flags)]);
  const { findRunningGateway } = await import('../kernel/running-gateway.ts');
  if ((await findRunningGateway(terminal.home)) !== undefined) return;
  asker.say('The agent answers there while the gateway runs. Start it: nanobot gateway');
}

async function stepOf(
  terminal: Terminal,
  asker: Asker,
  name: string,
  flags: LoginFlags,
): Promise<readonly [title: string, step: Step]> {
  const { token, phone, self, allow, appId, appSecret, domain, account, pairWait } = flags;
  if (name === 'telegram') {
    const { setUpTelegram } = await import('../channels/telegram/setup.ts');
    const given = { telegram: token ?? '', ...defined({ pairWait }) };
    return ['Telegram', (again) => setUpTelegram(terminal, asker, given, again)];
  }
  if (name === 'whatsapp') {
    const { setUpWhatsApp } = await import('../channels/whatsapp/setup.ts');
    const said = { whatsappPhone: phone, whatsappSelf: self, whatsappAllow: allow, pairWait };
    const given = { whatsapp: true, ...defined(said) };
    return ['WhatsApp', () => setUpWhatsApp(terminal, asker, given)];
  }
  if (name === 'lark') {
    const { setUpLark } = await import('../channels/lark/setup.ts');
    const said = { larkAppId: appId, larkAppSecret: appSecret, larkDomain: domain, pairWait };
    const given = { lark: true, ...defined(said) };
    return ['Lark', (again) => setUpLark(terminal, asker, given, again)];
  }
  const { setUpEmail } = await import('../channels/email/setup.ts');
  const { accountId } = await import('../kernel/message/ids.ts');
  const { account: _, ...rest } = flags;
  const which = account === undefined ? {} : { account: accountId(account) };
  const given = { ...rest, ...which, email: flags.email ?? '' };
  return ['Mail', () => setUpEmail(terminal, asker, given)];
}

async function restart(terminal: Terminal, name: string) {
  const { accountOf } = await import('../kernel/message/account.ts');
  await assertKnown(accountOf(name).channel);
  const { restartRemote, runningGateway } = await import('./login/remote-login.ts');
  await restartRemote(await runningGateway(terminal), name);
  terminal.note(`${name} was started again. nanobot channels status shows how it fares.`);
}

/** @throws CommandFailure with the nearest name there is. */
async function assertKnown(name: string) {
  const { CHANNELS } = await import('../channels/index.ts');
  const { nearestName } = await import('../lib/text/nearest.ts');
  const names = CHANNELS.map((channel) => channel.name);
  if (names.includes(name)) return;
  const near = nearestName(name, names) ?? names.join(' or ');
  throw new CommandFailure(EXIT.notFound, `there is no channel ${name}; try ${near}`);
}

/** @throws CommandFailure where the channel has one account, or the name is none. */
async function assertAccount(channel: string, account: string | undefined) {
  if (account === undefined) return;
  const { mayHaveSeveral } = await import('../kernel/config/accounts.ts');
  const { accountName } = await import('../kernel/config/settings-fields.ts');
  if (!mayHaveSeveral(channel)) {
    throw new CommandFailure(EXIT.usage, `${channel} has one account: leave out --account`);
  }
  const [problem] = accountName.safeParse(account).error?.issues ?? [];
  if (problem !== undefined) throw new CommandFailure(EXIT.usage, problem.message);
}
