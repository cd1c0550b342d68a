// The command `nanobot cluster`: lists machines that run models and confirms or forgets discovered
// ones. Works with and without a running gateway.

import { Command } from 'commander';
import { z } from 'zod';
import { CommandFailure, EXIT, printable, type Terminal, withState } from '../../cli/terminal.ts';
import { t } from '../../lib/texts.ts';
import type { ClusterService } from './cluster-service.ts';

const ADDRESS = t`address from "cluster list", e.g. 192.168.1.20:52415`;

/** The part of the response of `GET /api/status` that is used. */
const statusSchema = z.object({
  peers: z.array(
    z.object({
      name: z.string(),
      apiBase: z.string(),
      isConfigured: z.boolean(),
      isUp: z.boolean().optional(),
      models: z.array(z.string()),
    }),
  ),
});

export function clusterCommand(terminal: Terminal): Command {
  const command = new Command('cluster').description(t`other machines that run models`);
  command
    .command('list')
    .description(t`list configured peers and discovered hosts`)
    .action(() => told(terminal, (service) => service.list()));
  const decisions = {
    confirm: t`trust a discovered host with conversations until its identity changes`,
    forget: t`stop sending anything to a host`,
  } as const;
  for (const name of ['confirm', 'forget'] as const) {
    command
      .command(name)
      .description(decisions[name])
      .argument('<address>', ADDRESS)
      .action((address: string) =>
        told(terminal, async (service) => {
          const said = await service[name](address);
          if (said !== undefined) return said;
          const { unknownHost } = await import('./cluster-service.ts');
          throw new CommandFailure(EXIT.notFound, unknownHost(address));
        }),
      );
  }
  return command;
}

async function told(terminal: Terminal, work: (service: ClusterService) => Promise<string>) {
  const { openCluster } = await import('./cluster-service.ts');
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { askGateway, findRunningGateway } = await import('../../kernel/home-state.ts');
  const { config } = await loadConfig(terminal.home, terminal.env);
  const running = await findRunningGateway(terminal.home);
  const said =
    running === undefined
      ? undefined
      : await askGateway(running, '/api/status', config.gateway.token);
  const { peers = [] } = statusSchema.safeParse(said).data ?? {};
  const seen = peers.map((peer) => ({ ...peer, isUp: peer.isUp }));
  const text = await withState(terminal, ({ rows }) => work(openCluster(rows, config, seen)));
  for (const line of text.split('\n')) terminal.print(printable(line));
}
