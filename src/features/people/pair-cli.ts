// The command `nanobot pair`: paired people and waiting unknown senders, and decisions about both.

import { Command, Option } from 'commander';
import { momentText } from '../../cli/flag-values.ts';
import { CommandFailure, EXIT, type Terminal, textTable, withState } from '../../cli/terminal.ts';
import { ADMITTED_ROLES, type AdmittedRole } from '../../kernel/access/admission.ts';
import { counted, type Decisions } from '../../kernel/people/unknown-senders.ts';
import { t } from '../../lib/texts.ts';
import type { Meant } from './admissions.ts';

type ApproveFlags = { readonly role: AdmittedRole; readonly once?: boolean };

export function pairCommand(terminal: Terminal): Command {
  const command = new Command('pair').description(t`decide who may talk to the agent`);
  command
    .command('list')
    .description(t`list paired people and waiting unknown senders`)
    .option('--json', t`print as JSON`)
    .action(({ json }: { readonly json?: boolean }) => listPairs(terminal, json === true));
  command
    .command('approve')
    .description(t`let a person in`)
    .argument('<channel>', 'e.g. telegram')
    .argument('<user>', terminal.typed(t`id from "nanobot pair list", or pairing code`))
    .addOption(
      new Option('--role <role>', t`role of the person`).choices(ADMITTED_ROLES).default('trusted'),
    )
    .option('--once', t`answer the waiting messages, but do not let the person in`)
    .action((channel: string, user: string, flags: ApproveFlags) =>
      flags.once === true
        ? approveOnce(terminal, channel, user)
        : approve(terminal, channel, user, flags.role),
    );
  const decisions = [
    [
      'block',
      t`refuse a person permanently, even if an allow list names them`,
      t`id of the person`,
      block,
    ],
    [
      'drop',
      t`discard the waiting messages of an unknown sender without a decision`,
      t`id or pairing code`,
      drop,
    ],
    ['revoke', t`undo an approval or a block`, t`id of the person`, revoke],
  ] as const;
  for (const [name, description, who, run] of decisions) {
    command
      .command(name)
      .description(description)
      .argument('<channel>', 'e.g. telegram')
      .argument('<user>', who)
      .action((channel: string, user: string) => run(terminal, channel, user));
  }
  return command;
}

async function listPairs(terminal: Terminal, json: boolean) {
  const { approved, pending } = await withState(terminal, async ({ people }) => ({
    ...(await people.pairing.list()),
    pending: (await people.strangers.list()).map(({ code: _hash, ...one }) => one),
  }));
  if (json) return terminal.printJson({ approved, pending });
  const rows = [...approved, ...pending.map((one) => ({ ...one, role: 'waiting' }))].map((one) => {
    const { role, channel, userId, name, at } = one;
    return [
      role,
      channel,
      userId,
      name,
      momentText(at),
      ...('excerpt' in one ? [one.excerpt] : []),
    ];
  });
  for (const line of textTable(rows)) terminal.print(line);
  if (rows.length === 0) terminal.note(t`No paired people and no waiting senders.`);
}

/** Runs the work with whom the owner means. */
async function about<Result>(
  terminal: Terminal,
  channel: string,
  user: string,
  work: (who: Meant, decisions: Decisions) => Promise<Result>,
): Promise<Result> {
  const { channelNamed, subjectOf } = await import('./admissions.ts');
  const definition = channelNamed(channel);
  return withState(terminal, async ({ people: { decisions } }) =>
    work(await subjectOf(decisions, definition, user), decisions),
  );
}

async function approve(terminal: Terminal, channel: string, user: string, role: AdmittedRole) {
  const { id, answered } = await about(terminal, channel, user, async (who, decisions) => ({
    id: who.userId,
    answered: await decisions.allow(who, role),
  }));
  terminal.note(t`${id} may talk to the agent on ${channel}, as ${role}.`);
  if (answered > 0) terminal.note(t`Answering what they wrote: ${counted(answered)}.`);
}

async function approveOnce(terminal: Terminal, channel: string, user: string) {
  const answered = await about(terminal, channel, user, async ({ waiting }, decisions) =>
    waiting === undefined ? 0 : decisions.allowOnce(waiting),
  );
  if (answered === 0)
    throw new CommandFailure(EXIT.notFound, t`there is no waiting message of ${user}`);
  terminal.note(t`Answering once: ${counted(answered)}.`);
}

async function block(terminal: Terminal, channel: string, user: string) {
  const id = await about(terminal, channel, user, async (who, decisions) => {
    await decisions.block(who);
    return who.userId;
  });
  terminal.note(t`${id} is blocked on ${channel}. To undo: nanobot pair revoke ${channel} ${id}`);
}

async function drop(terminal: Terminal, channel: string, user: string) {
  const dropped = await about(terminal, channel, user, async ({ waiting }, decisions) => {
    if (waiting !== undefined) await decisions.drop(waiting);
    return waiting;
  });
  if (dropped === undefined)
    throw new CommandFailure(EXIT.notFound, t`there is no waiting message of ${user}`);
  terminal.note(t`The messages of ${dropped.userId} were discarded.`);
}

async function revoke(terminal: Terminal, channel: string, user: string) {
  const { channelNamed, checkedId } = await import('./admissions.ts');
  const id = checkedId(channelNamed(channel), user);
  const revoked = await withState(terminal, ({ pairing }) => pairing.revoke(channel, id));
  if (!revoked)
    throw new CommandFailure(EXIT.notFound, t`${id} is neither paired nor blocked on ${channel}`);
  terminal.note(
    t`${id} is no longer paired or blocked; only channels.${channel}.allowFrom applies.`,
  );
}
