// `nanobot telegram`, `email`, `whatsapp` and `lark`: one channel alone in the foreground, whether or not the configuration turns it on.

import { Command } from 'commander';
import type { Terminal } from './terminal.ts';

export function telegramCommand(terminal: Terminal): Command {
  return new Command('telegram')
    .description('run the Telegram channel alone, in the foreground')
    .option('-t, --token <token>', 'bot token, instead of channels.telegram.token')
    .action(async ({ token }: { readonly token?: string }) => {
      const given = token === undefined ? {} : { 'channels.telegram.token': token };
      await runAlone(terminal, 'telegram', given);
    });
}

export function emailCommand(terminal: Terminal): Command {
  return new Command('email')
    .description('run the email channel alone, in the foreground')
    .action(() => runAlone(terminal, 'email', {}));
}

export function whatsAppCommand(terminal: Terminal): Command {
  return new Command('whatsapp')
    .description('run the WhatsApp channel alone, in the foreground')
    .action(() => runAlone(terminal, 'whatsapp', {}));
}

export function larkCommand(terminal: Terminal): Command {
  return new Command('lark')
    .description('run the Lark channel alone, in the foreground')
    .action(() => runAlone(terminal, 'lark', {}));
}

async function runAlone(terminal: Terminal, name: string, given: Readonly<Record<string, string>>) {
  const { runGateway } = await import('./run-gateway.ts');
  const overrides = { ...given, [`channels.${name}.enabled`]: true };
  await runGateway(terminal, { overrides, channels: [name], http: false });
}
