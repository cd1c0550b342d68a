// `/link` and `/unlink`: join and part the channels of one person; both channels are told.

import { LINK_COMMAND, type SettledVerdict } from '../../kernel/access/admission.ts';
import { PERSONAL } from '../../kernel/access/command-access.ts';
import { doorOf, doorWords } from '../../kernel/access/person.ts';
import type { Medium } from '../../kernel/access/rights.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command.ts';
import type { Gated } from '../../kernel/intake/group-intake.ts';
import { messageId } from '../../kernel/message/ids.ts';
import { type InboundMessage, idsOf } from '../../kernel/message/message.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import type { Logger } from '../../lib/logger.ts';
import { LINK_CODE_MINUTES, linkCommandOf } from './links.ts';
import type { People } from './people.ts';
import { withPerson } from './person-commands.ts';

export const LINK_COMMANDS = {
  [LINK_COMMAND]: {
    summary: 'connect another channel to your account',
    usage: '/link [code]',
    access: { ...PERSONAL, audited: true },
    timing: 'immediate',
  },
  unlink: {
    summary: 'disconnect one of your channels',
    usage: '/unlink <door>',
    access: { ...PERSONAL, audited: true },
    timing: 'immediate',
  },
} satisfies CommandTable;

export type LinkCommandDeps = {
  readonly people: Pick<People, 'links' | 'persons'>;
  /** What kind of channel it is. */
  mediumOf(channel: string): Medium;
};

export function linkCommands(deps: LinkCommandDeps): readonly Command[] {
  return commandsOf(LINK_COMMANDS, {
    [LINK_COMMAND]: (origin, argument) => (argument === '' ? issue(origin, deps) : noGood(origin)),
    unlink: (origin, argument) => unlink(origin, argument, deps),
  });
}

const WRONG_CODE = 'That code is not good (any more). Send /link on the other door for a new one.';
const TURNED_ROUND =
  'You may do more here than on the other door. Send /link here, and the code it gives there.';

function issue(origin: CommandOrigin, deps: LinkCommandDeps): Promise<string> {
  return withPerson(origin, deps.people.persons, async (person) => {
    const { chat } = origin.message;
    if (deps.mediumOf(chat.channel) === 'mail') return 'Send /link from a chat, not by mail.';
    const code = await deps.people.links.issue(person, chat);
    if (code === undefined) return 'I gave you several codes in the last hour. Try again later.';
    return (
      `Send ${verbatim(linkCommandOf(code))} to me on the other door within ` +
      `${LINK_CODE_MINUTES} minutes. Whoever sends it is you from then on: give it to nobody.`
    );
  });
}

/** A code that is good was taken at the gate. */
async function noGood({ message }: CommandOrigin): Promise<string> {
  return message.addressing === 'direct' ? WRONG_CODE : 'I do that only between the two of us.';
}

function unlink(
  origin: CommandOrigin,
  argument: string,
  { people: { persons } }: LinkCommandDeps,
): Promise<string> {
  return withPerson(origin, persons, async (person) => {
    const doors = person.doors.map(({ channel }) => channel).join(', ');
    const door = argument.trim().toLowerCase();
    if (door === '') return `Say which: /unlink with one of ${doors}.`;
    switch (await persons.unlink(person.id, door)) {
      case 'done':
        return `${door} is no door of yours any more.`;
      case 'only':
        return 'That is your only door.';
      case 'needed':
        return `You were let in on ${door}; without it your other doors would close. My owner can let you in on another one first.`;
      case 'unknown':
        return `Your doors are ${doors}.`;
    }
  });
}

export type LinkGateDeps = {
  readonly people: Pick<People, 'links' | 'decisions' | 'persons'>;
  readonly bus: Pick<MessageBus, 'send'>;
  readonly log: Logger;
  /** Tells an owner. */
  tellOwner(text: string): void;
};

/** Takes a code at the gate; undefined where a stranger's is no good and they stay one. */
export async function redeemLink(
  message: InboundMessage,
  code: string,
  otherwise: SettledVerdict,
  deps: LinkGateDeps,
): Promise<Gated | undefined> {
  const role = otherwise.kind === 'admit' ? otherwise.role : undefined;
  const outcome = await deps.people.links.redeem(message, code, role);
  if (outcome.kind === 'wrong' && otherwise.kind !== 'admit') return undefined;
  const reply = (markdown: string) =>
    deps.bus.send({
      id: messageId(`${message.id}/reply`),
      chat: message.chat,
      markdown,
      replyTo: message.id,
    });
  const gate = `command /${LINK_COMMAND}`;
  if (outcome.kind !== 'linked') {
    const text = outcome.kind === 'wrong' ? WRONG_CODE : TURNED_ROUND;
    return {
      entry: { kind: 'record', message, gate },
      afterwards: async () => void (await reply(text)),
    };
  }
  const { person, shownIn } = outcome;
  const { chat, sender } = message;
  const there = doorOf(person, shownIn.channel);
  const ids = sender.kind === 'person' ? idsOf(sender) : [];
  const here = { channel: chat.channel, ids };
  return {
    entry: { kind: 'record', message, gate: 'linked by code' },
    async afterwards() {
      deps.log.warn('doors linked', { person: person.id, channel: chat.channel });
      await reply(
        `You are the same person here and on ${there === undefined ? shownIn.channel : doorWords(there)}. ` +
          `Undo it with ${verbatim(`/unlink ${chat.channel}`)}.`,
      );
      await deps.bus.send({
        id: messageId(`${message.id}/linked`),
        chat: shownIn,
        markdown:
          `You are the same person here and on ${doorWords(here)}. ` +
          `If that was not you: ${verbatim(`/unlink ${chat.channel}`)}.`,
      });
      if (person.role !== 'owner') {
        deps.tellOwner(`${verbatim(person.name)} (${person.id}) linked ${doorWords(here)}.`);
      }
      await deps.people.decisions.answerHeld(chat.channel, ids);
    },
  };
}
