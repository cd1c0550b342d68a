// `nanobot gateway`: all channels, the web page and the agent, until stopped.

import { Command } from 'commander';
import type { ConfigOverrides } from '../kernel/config/check.ts';
import { parsePort } from './flag-values.ts';
import type { Terminal } from './terminal.ts';

type GatewayFlags = { readonly host?: string; readonly port?: number };

export function gatewayCommand(terminal: Terminal): Command {
  return new Command('gateway')
    .description('run the gateway: all channels and the web page, until stopped')
    .option('--host <host>', 'address to listen on, instead of gateway.host')
    .option('-p, --port <port>', 'port of the web page, instead of gateway.port', parsePort)
    .action(async (flags: GatewayFlags) => {
      const { runGateway } = await import('./run-gateway.ts');
      await runGateway(terminal, { overrides: overridesOf(flags), channels: 'all', http: true });
    });
}

function overridesOf({ host, port }: GatewayFlags): ConfigOverrides {
  return {
    ...(host === undefined ? {} : { 'gateway.host': host }),
    ...(port === undefined ? {} : { 'gateway.port': port }),
  };
}
