// The command `nanobot channels`: shows the state of each channel and connects one: verifies its
// credentials and pairs its owner.

import { Command } from 'commander';
import { channelLine, type ReportedChannel } from '../channels/channel-lines.ts';
import type { LoginFlags } from '../channels/channel-steps.ts';
import { t } from '../lib/texts.ts';
import { parseNumbers, parsePhone, parseSeconds } from './flag-values.ts';
import { CommandFailure, EXIT, type Terminal, textTable } from './terminal.ts';

const LOCAL_NAMES = ['web', 'terminal'];

export function channelsCommand(terminal: Terminal): Command {
  const command = new Command('channels').description(t`connect channels and show their status`);
  command
    .command('status')
    .description(t`show the status of each channel`)
    .option('--json', t`print as JSON`)
    .action(({ json }: { readonly json?: boolean }) => showStatus(terminal, json === true));
  command
    .command('login')
    .description(t`connect a channel: check its credentials and pair its owner`)
    .argument('<channel>', t`telegram, email, whatsapp or lark`)
    .option('-t, --token <token>', t`Telegram: a new bot token`)
    .option(
      '--phone <number>',
      t`WhatsApp: number of the account, to link it by a code instead of the QR code`,
      parsePhone,
    )
    .option('--self', t`WhatsApp: the number is yours; the agent answers in the chat with yourself`)
    .option('--no-self', t`WhatsApp: the number belongs to the agent alone`)
    .option(
      '--allow <numbers>',
      t`WhatsApp: numbers that may write, separated by commas`,
      parseNumbers,
    )
    .option('--email <address>', t`Email: address of the mailbox`)
    .option('--account <name>', t`Email: short name of an additional mailbox`)
    .option('--email-client-id <id>', t`Email with OAuth2: client id`)
    .option(
      '--email-client-secret <secret>',
      t`Email with OAuth2: client secret; default: $EMAIL_CLIENT_SECRET`,
    )
    .option(
      '--email-refresh-token <token>',
      t`Email with OAuth2: refresh token; default: $EMAIL_REFRESH_TOKEN`,
    )
    .option(
      '--email-token-url <url>',
      t`Email with OAuth2: token address, if the provider is unknown`,
    )
    .option(
      '--email-authorize-url <url>',
      t`Email with OAuth2: consent address, if the provider is unknown`,
    )
    .option(
      '--email-device-url <url>',
      t`Email with OAuth2: address for codes of other devices, if the provider is unknown`,
    )
    .option('--email-scope <scope>', t`Email with OAuth2: scope, if the provider is unknown`)
    .option('--device', t`Email with OAuth2: log in by a code on another device`)
    .option('--app-id <id>', t`Lark: app id from the developer console`)
    .option('--app-secret <secret>', t`Lark: app secret; default: $LARK_APP_SECRET`)
    .option('--domain <domain>', t`Lark: feishu, lark (outside China) or a URL`)
    .option('--pair-wait <seconds>', t`wait until the owner opens the pairing link`, parseSeconds)
    .action((name: string, flags: LoginFlags) => login(terminal, name, flags));
  command
    .command('restart')
    .description(t`restart a channel of the running gateway`)
    .argument('<channel>', t`e.g. whatsapp; email@work is the mailbox "work"`)
    .action((name: string) => restart(terminal, name));
  return command;
}

async function showStatus(terminal: Terminal, json: boolean) {
  const { configInForce } = await import('../kernel/config/files/config-file.ts');
  const { findRunningGateway } = await import('../kernel/home-state.ts');
  const { reportChannels } = await import('../channels/channel-lines.ts');
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
  if (LOCAL_NAMES.includes(name)) {
    return terminal.note(
      t`${name} needs no login. "nanobot link" opens the web page, "nanobot agent" talks to the agent here.`,
    );
  }
  await assertKnown(name);
  await assertAccount(name, flags.account);
  const { openHome } = await import('../kernel/config/files/first-run.ts');
  const { channelStep } = await import('../channels/channel-steps.ts');
  const { createAsker, settleAll } = await import('./onboard/asker.ts');
  await openHome(terminal.home, terminal.env);
  const asker = createAsker(terminal, terminal.interactive);
  await settleAll(asker, [await channelStep(terminal, asker, name, flags)]);
  const { findRunningGateway } = await import('../kernel/home-state.ts');
  if ((await findRunningGateway(terminal.home)) !== undefined) return;
  asker.say(t`The agent answers only while the gateway is running. Start it: nanobot gateway`);
}

async function restart(terminal: Terminal, name: string) {
  const { accountOf } = await import('../kernel/message/ids.ts');
  await assertKnown(accountOf(name).channel);
  const { restartRemote, runningGateway } = await import('./login/remote-login.ts');
  await restartRemote(await runningGateway(terminal), name);
  terminal.note(t`${name} restarted. Check it: nanobot channels status`);
}

/** @throws SettingError that suggests the nearest existing name */
async function assertKnown(name: string) {
  const { channelNamed } = await import('../features/people/admissions.ts');
  channelNamed(name);
}

/** @throws CommandFailure where the channel has one account, or the name is invalid */
async function assertAccount(channel: string, account: string | undefined) {
  if (account === undefined) return;
  const { mayHaveSeveral } = await import('../kernel/config/config.ts');
  const { accountName } = await import('../kernel/config/settings-fields.ts');
  if (!mayHaveSeveral(channel)) {
    throw new CommandFailure(EXIT.usage, t`${channel} has only one account; remove --account`);
  }
  const [problem] = accountName.safeParse(account).error?.issues ?? [];
  if (problem !== undefined) throw new CommandFailure(EXIT.usage, problem.message);
}
