// `/cluster`: the machines that run models for us, and those that were found and wait for an owner.

import type { Command, CommandDeps, CommandOrigin } from '../../kernel/commands/command.ts';

const OFF = 'Peers are switched off (cluster.enabled).';
const HINT = 'Say /cluster list, or /cluster confirm or forget with an address as host:port.';

export const CLUSTER_COMMANDS: readonly Command[] = [
  {
    name: 'cluster',
    summary: 'other machines that run models',
    usage: '/cluster [list | confirm <host:port> | forget <host:port>]',
    timing: 'immediate',
    isRepeatable: true,
    run: cluster,
  },
];

async function cluster(_origin: CommandOrigin, argument: string, { local }: CommandDeps) {
  const { cluster: desk } = local;
  if (desk === undefined) return OFF;
  const [word = 'list', address = ''] = argument.split(/\s+/).filter((part) => part !== '');
  if (word === 'list') return desk.list();
  if (address === '') return HINT;
  if (word === 'confirm') return desk.confirm(address);
  return word === 'forget' ? desk.forget(address) : HINT;
}
