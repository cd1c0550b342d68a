// `/cluster`: the machines that run models for us, and those that were found and wait for an owner.

import { OWNER_ONLY } from '../../kernel/access/command-access.ts';
import { type Command, type CommandTable, commandsOf } from '../../kernel/commands/command.ts';
import type { ClusterDesk } from './cluster-desk.ts';

const OFF = 'Peers are switched off (cluster.enabled).';
const HINT = 'Say /cluster list, or /cluster confirm or forget with an address as host:port.';

export const CLUSTER_COMMANDS = {
  cluster: {
    summary: 'other machines that run models',
    usage: '/cluster [list | confirm <host:port> | forget <host:port>]',
    access: OWNER_ONLY,
    timing: 'immediate',
    isRepeatable: true,
  },
} satisfies CommandTable;

/** `current`: undefined while peers are switched off. */
export function clusterCommands(current: () => ClusterDesk | undefined): readonly Command[] {
  return commandsOf(CLUSTER_COMMANDS, {
    cluster: (_origin, argument) => cluster(argument, current()),
  });
}

async function cluster(argument: string, desk: ClusterDesk | undefined): Promise<string> {
  if (desk === undefined) return OFF;
  const [word = 'list', address = ''] = argument.split(/\s+/).filter((part) => part !== '');
  if (word === 'list') return desk.list();
  if (address === '') return HINT;
  if (word === 'confirm') return desk.confirm(address);
  return word === 'forget' ? desk.forget(address) : HINT;
}
