// `/continue`: moves a conversation, with its context and the turn under way, to another channel of the same
// person.

import { PERSONAL } from '../../kernel/access/command-access.ts';
import { doorOf, isSameChat, type Person } from '../../kernel/access/person.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command.ts';
import { messageId } from '../../kernel/message/ids.ts';
import type { People } from './people.ts';
import { withPerson } from './person-commands.ts';

export const CONTINUE_COMMANDS = {
  continue: {
    summary: 'go on with this conversation on another door',
    usage: '/continue <door>',
    access: PERSONAL,
    timing: 'immediate',
    isRepeatable: true,
  },
} satisfies CommandTable;

export type ContinueCommandDeps = {
  readonly bus: Pick<MessageBus, 'send'>;
  readonly people: Pick<People, 'persons' | 'routes'>;
};

export function continueCommands(deps: ContinueCommandDeps): readonly Command[] {
  return commandsOf(CONTINUE_COMMANDS, {
    continue: (origin, argument) =>
      withPerson(origin, deps.people.persons, (person) =>
        continueOn(person, origin, argument, deps),
      ),
  });
}

async function continueOn(
  person: Person,
  { message, session }: CommandOrigin,
  argument: string,
  { bus, people }: ContinueCommandDeps,
): Promise<string> {
  const others = person.doors.filter((door) => !isSameChat(door.chat, message.chat));
  const names = others.filter(({ chat }) => chat !== undefined).map(({ channel }) => channel);
  const door = doorOf({ doors: others }, argument.trim().toLowerCase());
  if (door === undefined) {
    if (names.length === 0) return `I know you only here. ${LINK_HINT}`;
    return `Say where: /continue with one of ${names.join(', ')}.`;
  }
  if (door.chat === undefined)
    return `Write to me on ${door.channel} first, so that I know the way.`;
  await people.routes.move(session, { to: door.chat, at: message.receivedAt });
  await bus.send({
    id: messageId(`${message.id}/continued`),
    chat: door.chat,
    markdown: `We go on here with what we had on ${message.chat.channel}.`,
  });
  return `Continues on ${door.channel}.`;
}

const LINK_HINT = 'Join another door with /link first.';
