// What a chat command is. The facts of a feature's commands are plain data, so that channels and documentation
// list them without a gateway; the feature's factory adds what each of them does.

import type { AdmittedRole } from '../access/admission.ts';
import type { CommandAccess } from '../access/command-access.ts';
import type { SessionKey } from '../message/ids.ts';
import type { InboundMessage } from '../message/message.ts';

/** Lines of Markdown; none where there is nothing to say. */
export type StatusSource = (session: SessionKey) => readonly string[] | Promise<readonly string[]>;

/** Who gave a command, and where. */
export type CommandOrigin = {
  readonly session: SessionKey;
  readonly message: InboundMessage;
  /** Undefined where the sender was let in for one message only. */
  readonly role: AdmittedRole | undefined;
};

export type CommandFacts = {
  readonly summary: string;
  readonly usage?: string;
  readonly access: CommandAccess;
  /** `immediate`: answered at once, even while a turn runs; `in_order`: queued like a message. */
  readonly timing: 'immediate' | 'in_order';
  /** Repeating it changes nothing: it runs before its message is stored, so that a crash between repeats it. */
  readonly isRepeatable?: true;
};

/** By name. */
export type CommandTable<Name extends string = string> = Readonly<Record<Name, CommandFacts>>;

export type CommandInfo = CommandFacts & { readonly name: string };

export type Command = CommandInfo & {
  run(origin: CommandOrigin, argument: string): Promise<string>;
};

/** Each command of the table with what it does. */
export function commandsOf<Name extends string>(
  table: CommandTable<Name>,
  runs: Readonly<Record<Name, Command['run']>>,
): readonly Command[] {
  const names = Object.keys(table) as Name[];
  return names.map((name) => ({ ...table[name], name, run: runs[name] }));
}
