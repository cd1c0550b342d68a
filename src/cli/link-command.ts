// `nanobot link`: a one-time link that opens the running gateway's web page logged in.

import { Command } from 'commander';
import type { Terminal } from './terminal.ts';

export function linkCommand(terminal: Terminal): Command {
  return new Command('link')
    .description('print a link that opens the web page logged in, once')
    .option('--revoke-all', 'first end every login, and the token that the gateway made')
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
  terminal.note('Opens once, within 15 minutes.');
}

function revokedText(hasMadeToken: boolean): string {
  const token = hasMadeToken
    ? 'The gateway has a new token.'
    : 'gateway.token stays as it is: change it where it is configured if others know it.';
  return `Every login of the page has ended. ${token}`;
}
