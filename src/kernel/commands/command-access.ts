// Who may use a chat command, and where: decided by the access that the command declares. Access to
// a private chat gives no command in a group. Case A03.

import { ADMITTED_ROLES, type AdmittedRole } from '../access/admission.ts';
import type { SenderStanding } from '../access/rights.ts';
import type { MessageBus, Trace } from '../bus/bus.ts';
import type { SessionKey } from '../message/ids.ts';
import { type InboundMessage, sessionKeyOf } from '../message/message.ts';

/** The lowest permitted role; `nobody`: not in that place. */
type Lowest = AdmittedRole | 'nobody';

type CommandAccess = {
  readonly direct: Lowest;
  readonly group: Lowest;
  /** Harmless enough for an unverified sender. */
  readonly unverified?: true;
  /** Its use is audited; its argument is not, because it may be a code or personal. */
  readonly audited?: true;
};

export const EVERYBODY: CommandAccess = { direct: 'guest', group: 'trusted', unverified: true };
/** Shows or changes one conversation; in a group the one of all members. */
export const CONVERSATION: CommandAccess = { direct: 'guest', group: 'trusted' };
/** Changes how much an answer costs. */
export const COSTS: CommandAccess = { direct: 'trusted', group: 'owner' };
export const PERSONAL: CommandAccess = { direct: 'guest', group: 'nobody' };
/** Decides about other people. */
/** Commands whose answers hold no text of others: a reply to such an answer does not taint. */
export const PLAIN_COMMANDS: ReadonlySet<string> = new Set([
  ...[
    '/help',
    '/start',
    '/status',
    '/whoami',
    '/usage',
    '/cost',
    '/budget',
    '/model',
    '/think',
    '/queue',
    '/mode',
    '/local',
    '/language',
    '/timezone',
    '/quiet',
    '/me',
    '/stop',
    '/continue',
  ],
]);

export const OWNER_ONLY: CommandAccess = { direct: 'owner', group: 'nobody' };

/** How much of a command is audited: an owner's decision with its argument, unless that is secret. */
export function auditExtent({ direct, audited }: CommandAccess): 'whole' | 'name' | 'none' {
  if (audited === true) return 'name';
  return direct === 'owner' ? 'whole' : 'none';
}

export type CommandVerdict = 'yes' | 'not this role' | 'not here' | 'not verified';

export function mayGive(
  access: CommandAccess,
  { role, place, verified }: Omit<SenderStanding, 'medium'>,
): CommandVerdict {
  if (verified === 'unverified' && access.unverified !== true) return 'not verified';
  if (reaches(role, access[place])) return 'yes';
  return place === 'group' && reaches(role, access.direct) ? 'not here' : 'not this role';
}

function reaches(role: AdmittedRole, lowest: Lowest): boolean {
  return lowest !== 'nobody' && ADMITTED_ROLES.indexOf(role) <= ADMITTED_ROLES.indexOf(lowest);
}

// What a chat command is. The facts of a feature's commands are plain data, so that channels and
// documentation list them without a gateway; the feature's factory adds what each of them does.

/** Who used a command, and where. */
export type CommandOrigin = {
  readonly session: SessionKey;
  readonly message: InboundMessage;
  /** Undefined if the sender was let in for one message only. */
  readonly role: AdmittedRole | undefined;
};

type CommandFacts = {
  readonly summary: string;
  readonly usage?: string;
  /** Other names, which no menu shows. */
  readonly aliases?: readonly string[];
  readonly access: CommandAccess;
  /** `immediate`: answered at once, even while a turn runs; `in_order`: queued like a message. */
  readonly timing: 'immediate' | 'in_order';
  /**
   * Repeating it changes nothing: it runs before its message is stored, so that a crash in between
   * repeats it.
   */
  readonly isRepeatable?: true;
};

/** By name. */
export type CommandTable<Name extends string = string> = Readonly<Record<Name, CommandFacts>>;

export type CommandInfo = CommandFacts & { readonly name: string };

export type Command = CommandInfo & {
  run(origin: CommandOrigin, argument: string): Promise<string>;
};

/** Each command of the table with its implementation. */
export function commandsOf<Name extends string>(
  table: CommandTable<Name>,
  runs: Readonly<Record<Name, Command['run']>>,
): readonly Command[] {
  const names = Object.keys(table) as Name[];
  return names.map((name) => ({ ...table[name], name, run: runs[name] }));
}

/** The trace of the message that a command is about: the one it replies to, otherwise the last. */
export async function tracedMessage(
  { session, message }: CommandOrigin,
  bus: Pick<MessageBus, 'trace'>,
): Promise<Trace | undefined> {
  const { id, replyTo, sender, group, chat } = message;
  const replied = replyTo === undefined ? undefined : await bus.trace(replyTo);
  // An id gives no access to other conversations.
  if (replied?.session === session || replied?.session === sessionKeyOf(chat)) return replied;
  if (sender.kind !== 'person') return undefined;
  return bus.trace({ session, besides: id, ...(group === undefined ? {} : { by: sender.id }) });
}
