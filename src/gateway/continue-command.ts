// `/continue`: moves a conversation, with its context and the turn under way, to another door of the
// same person.

import { messageId } from '../core/ids.ts';
import { doorOf, isSameChat, type Person } from '../core/person.ts';
import type { Command, CommandDeps, CommandOrigin } from './command.ts';
import { withPerson } from './person-commands.ts';

export const CONTINUE_COMMANDS: readonly Command[] = [
  {
    name: 'continue',
    summary: 'go on with this conversation on another door',
    usage: '/continue <door>',
    timing: 'immediate',
    isRepeatable: true,
    run: (origin, argument, deps) =>
      withPerson(origin, deps, (person) => continueOn(person, origin, argument, deps)),
  },
];

async function continueOn(
  person: Person,
  { message, session }: CommandOrigin,
  argument: string,
  { bus, people }: CommandDeps,
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
