// `nanobot channels`: how each channel fares, and connecting one: its credentials proved, its owner
// paired.

import { Command } from 'commander';
import { type ReportedStatus, statusLine } from './channel-lines.ts';
import { CommandFailure, EXIT } from './exit-codes.ts';
import { parseSeconds } from './flag-values.ts';
import type { Terminal } from './terminal.ts';
import { textTable } from './text-table.ts';

type LoginFlags = { readonly token?: string; readonly pairWait?: number };

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
    .argument('<channel>', 'telegram or email')
    .option('-t, --token <token>', 'Telegram: a new bot token')
    .option('--pair-wait <seconds>', 'Telegram: wait for the tap on the link', parseSeconds)
    .action((name: string, flags: LoginFlags) => login(terminal, name, flags));
  return command;
}

async function showStatus(terminal: Terminal, json: boolean) {
  const { loadConfig } = await import('../app/config.ts');
  const { findRunningGateway } = await import('../app/running-gateway.ts');
  const { reportChannels } = await import('./reported-channels.ts');
  const { config } = await loadConfig(terminal.home, terminal.env);
  const channels = await reportChannels(config, await findRunningGateway(terminal.home));
  if (json) return terminal.printJson(channels);
  const row = ({ name, status }: { readonly name: string; readonly status: ReportedStatus }) => [
    name,
    statusLine(status, terminal.clock.now()),
  ];
  for (const line of textTable(channels.map(row))) terminal.tell(line);
}

async function login(terminal: Terminal, name: string, flags: LoginFlags) {
  if (DOORS.includes(name)) {
    return terminal.note(`${name} needs no login: it is open to whoever sits at this machine.`);
  }
  const { CHANNELS } = await import('../channels/index.ts');
  const { nearestName } = await import('../core/nearest.ts');
  const names = CHANNELS.map((channel) => channel.name);
  if (!names.includes(name)) {
    const near = nearestName(name, names) ?? names.join(' or ');
    throw new CommandFailure(EXIT.notFound, `there is no channel ${name}; try ${near}`);
  }
  const { openHome } = await import('../app/first-run.ts');
  const { createAsker } = await import('./onboard/asker.ts');
  await openHome(terminal.home, terminal.env);
  const asker = createAsker(terminal, terminal.interactive);
  if (name === 'telegram') {
    const { setUpTelegram } = await import('./onboard/telegram-step.ts');
    await setUpTelegram(terminal, asker, { telegram: flags.token ?? '', ...waitOf(flags) });
  } else {
    const { setUpEmail } = await import('./onboard/email-step.ts');
    await setUpEmail(terminal, asker, { email: '' });
  }
}

const waitOf = ({ pairWait }: LoginFlags) => (pairWait === undefined ? {} : { pairWait });
