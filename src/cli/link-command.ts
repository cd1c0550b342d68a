// The command `nanobot link`: prints a one-time link that opens the running gateway's web page
// logged in.

import { Command } from 'commander';
import { t } from '../lib/texts.ts';
import type { Terminal } from './terminal.ts';

export function linkCommand(terminal: Terminal): Command {
  return new Command('link')
    .description(t`print a one-time login link for the web page`)
    .option(
      '--revoke-all',
      t`first log out every browser and replace the token that the gateway created`,
    )
    .action(({ revokeAll }: { readonly revokeAll?: boolean }) =>
      printLink(terminal, revokeAll === true),
    );
}

async function printLink(terminal: Terminal, revokeAll: boolean) {
  const { loadConfig } = await import('../kernel/config/files/config-file.ts');
  const { loginLink } = await import('../http/serve-http.ts');
  const { remoteCode, runningGateway } = await import('./login/remote-login.ts');
  const gateway = await runningGateway(terminal);
  const { hasMadeToken } = await loadConfig(terminal.home, terminal.env);
  const code = await remoteCode(gateway, revokeAll);
  if (revokeAll) terminal.note(revokedText(hasMadeToken));
  terminal.print(loginLink(gateway.address, code));
  terminal.note(t`The link works once, within 15 minutes.`);
}

function revokedText(hasMadeToken: boolean): string {
  const token = hasMadeToken
    ? t`The gateway has a new token.`
    : t`gateway.token is configured and stays the same; change it if others know it.`;
  return t`All browsers are logged out. ${token}`;
}
