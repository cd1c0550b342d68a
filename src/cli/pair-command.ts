// `nanobot pair`: who was let in, who knocked, and letting people in or out by hand.

import { Command, Option } from 'commander';
import { ADMITTED_ROLES, type AdmittedRole, EVERYBODY } from '../core/admission.ts';
import { isAllowEntry, normaliseAllowed } from '../core/whatsapp-jid.ts';
import { CommandFailure, EXIT } from './exit-codes.ts';
import { momentText } from './moment.ts';
import type { Terminal } from './terminal.ts';
import { textTable } from './text-table.ts';
import { asTyped } from './typed-command.ts';
import { withState } from './with-state.ts';

export function pairCommand(terminal: Terminal): Command {
  const command = new Command('pair').description('people who may talk to the agent');
  command
    .command('list')
    .description('people let in beside the allow lists, and strangers who wrote')
    .option('--json', 'as JSON')
    .action(({ json }: { readonly json?: boolean }) => listPairs(terminal, json === true));
  command
    .command('approve')
    .description('let a person in')
    .argument('<channel>', 'e.g. telegram')
    .argument('<user>', asTyped('their id as "nanobot pair list" shows it', terminal.env))
    .addOption(
      new Option('--role <role>', 'what they are to the agent')
        .choices(ADMITTED_ROLES)
        .default('trusted'),
    )
    .action((channel: string, user: string, { role }: { readonly role: AdmittedRole }) =>
      approve(terminal, channel, user, role),
    );
  command
    .command('block')
    .description('refuse a person for good, whatever the allow lists say')
    .argument('<channel>', 'e.g. telegram')
    .argument('<user>', 'their id')
    .action((channel: string, user: string) => block(terminal, channel, user));
  command
    .command('revoke')
    .description('take back what was approved or blocked')
    .argument('<channel>', 'e.g. telegram')
    .argument('<user>', 'their id')
    .action((channel: string, user: string) => revoke(terminal, channel, user));
  return command;
}

async function listPairs(terminal: Terminal, json: boolean) {
  const pairs = await withState(terminal, ({ pairing }) => pairing.list());
  if (json) return terminal.printJson(pairs);
  const approved = pairs.approved.map((one) => [
    one.role,
    one.channel,
    one.userId,
    one.name,
    momentText(one.at),
  ]);
  const pending = pairs.pending.map((one) => [
    'waiting',
    one.channel,
    one.userId,
    one.name,
    momentText(one.at),
  ]);
  const rows = [...approved, ...pending];
  for (const line of textTable(rows)) terminal.print(line);
  if (rows.length === 0) terminal.note('Nobody was let in by hand, and nobody is waiting.');
}

async function approve(terminal: Terminal, channel: string, user: string, role: AdmittedRole) {
  const id = await checkedId(channel, user);
  await withState(terminal, ({ pairing }) => pairing.approve(channel, id, role));
  terminal.note(`${id} may talk to the agent on ${channel}, as ${role}.`);
}

async function block(terminal: Terminal, channel: string, user: string) {
  const id = await checkedId(channel, user);
  await withState(terminal, ({ pairing }) => pairing.block(channel, [id]));
  terminal.note(`${id} is refused on ${channel} until "nanobot pair revoke ${channel} ${id}".`);
}

async function revoke(terminal: Terminal, channel: string, user: string) {
  const id = await checkedId(channel, user);
  const revoked = await withState(terminal, ({ pairing }) => pairing.revoke(channel, id));
  if (!revoked) throw new CommandFailure(EXIT.notFound, `${id} was not let in on ${channel}`);
  terminal.note(`Nothing is decided about ${id} now; channels.${channel}.allowFrom counts alone.`);
}

/** The id as the channel spells it. @throws CommandFailure where it can be nobody's there. */
async function checkedId(channel: string, user: string): Promise<string> {
  const { CHANNELS } = await import('../channels/index.ts');
  const { nearestName } = await import('../core/nearest.ts');
  const names = CHANNELS.map((definition) => definition.name);
  if (!names.includes(channel)) {
    const near = nearestName(channel, names) ?? names.join(' or ');
    throw new CommandFailure(EXIT.notFound, `there is no channel ${channel}; try ${near}`);
  }
  const problem = idProblem(channel, user);
  if (problem !== undefined) throw new CommandFailure(EXIT.usage, problem);
  return channel === 'whatsapp' ? normaliseAllowed(user) : user.toLowerCase();
}

function idProblem(channel: string, user: string): string | undefined {
  if (channel === 'telegram' && !/^\d+$/.test(user)) {
    return 'Telegram people are known by their numeric id; names can change hands';
  }
  if (channel === 'email' && !/^[^\s@]+@[^\s@]+$/.test(user)) return 'give the mail address';
  if (channel === 'whatsapp' && (user === EVERYBODY || !isAllowEntry(user))) {
    return 'give the number with its country code, like +491511234567, or the id of "pair list"';
  }
  return undefined;
}
