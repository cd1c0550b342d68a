// The operations of people on their memory: show, export, erase and reflect. Whose notes and
// conversations are used follows from who asks in which chat.

import {
  CONVERSATION,
  type Command,
  type CommandTable,
  commandsOf,
  PERSONAL,
} from '../../kernel/commands/command-access.ts';
import {
  type InboundMessage,
  idsOf,
  sessionKeyOf,
  sessionOf,
} from '../../kernel/message/message.ts';
import { NOTICES } from '../../kernel/owners.ts';
import { LIFETIME_MS, type QuestionHandler } from '../../kernel/questions/question-rows.ts';
import type { Questions } from '../../kernel/questions/questions.ts';
import { holdsWords } from '../../kernel/sessions/rules/forgetting.ts';
import type { TurnPersonOf } from '../../kernel/turns/origins.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import type { DataExport } from './data-export.ts';
import type { Asking, Erasure, Forgetting } from './personal-data.ts';
import type { ReflectionService } from './reflection.ts';

export type MemoryService = ReturnType<typeof createMemoryService>;

type MemoryServiceDeps = {
  readonly personOf: TurnPersonOf;
  readonly kept: Forgetting;
  /** Loaded on use. */
  readonly handOut: () => Promise<DataExport>;
  readonly forgetting: Erasure;
  readonly questions: Pick<Questions, 'ask'>;
};

type Part = Parameters<DataExport['handOutPart']> extends [Asking, ...infer Rest] ? Rest : never;

/** The subject kind of the question. */
export const FORGET_SUBJECT = 'forget';

const LISTED = 12;
const LISTED_ON_PAGE = 200;
const FORGET_HINT = t`Usage: /forget <words that occur there>, e.g. /forget the name of my doctor`;
const NOTHING = t`Nothing I keep about you contains all of these words. Files of the workspace are not searched.`;
const GONE = t`This was already decided.`;

export function createMemoryService(deps: MemoryServiceDeps) {
  const { personOf, kept, handOut, forgetting, questions } = deps;
  async function askingOf(message: InboundMessage): Promise<Asking> {
    return { message, session: sessionOf(message), person: await personOf(message) };
  }

  /** The person's conversations; of a group, whose chat its folder does not tell, the notes alone. */
  async function reachIn(notes: string) {
    const here = sessionKeyOf(NOTICES);
    const asked = { message: { chat: NOTICES }, session: here, person: { notes } };
    const { chats } = await kept.reachOf(asked);
    return { notes, chats: notes === '' ? chats : chats.filter((chat) => chat !== here) };
  }

  return {
    show: async (message: InboundMessage) => (await handOut()).overview(await askingOf(message)),
    /** The memory in this folder of the workspace, for an owner who asks by a command. */
    notesOf: async (folder: string) => (await handOut()).notesOf(folder),
    handOut: async (message: InboundMessage, format: 'md' | 'jsonl') =>
      (await handOut()).handOut(await askingOf(message), format),
    /** Sends conversations that the sender may read as a file; returns the answer for them. */
    handOutPart: async (message: InboundMessage, ...part: Part) =>
      (await handOut()).handOutPart(await askingOf(message), ...part),
    askingOf,
    /** Lists what would be erased and asks for confirmation; returns the list. */
    async forget(message: InboundMessage, words: string): Promise<string> {
      if (holdsWords(words) === undefined || message.sender.kind !== 'person') return FORGET_HINT;
      const reach = { ...(await kept.reachOf(await askingOf(message))), words };
      const { places, count } = await kept.find(reach, LISTED);
      if (count === 0) return NOTHING;
      await forgetting.keep(message.id, { reach, chat: message.chat });
      await questions.ask({
        id: `${FORGET_SUBJECT}/${message.id}`,
        chat: message.chat,
        markdown: t`Delete ${placesIn(count)} for good? They are listed below.`,
        choices: [
          { label: t`Forget`, action: 'forget' },
          { label: t`Keep`, action: 'keep' },
        ],
        approvers: idsOf(message.sender),
        subject: `${FORGET_SUBJECT}:${message.id}`,
        expiresInMs: LIFETIME_MS.forget,
      });
      const lines = places.map(({ where, text }) => `- ${where}: ${text}`);
      const more = count - places.length;
      return [...lines, ...(more > 0 ? [t`- and ${more} more`] : [])].join('\n');
    },
    /** What erasing these words would delete of the person of a folder, for an owner. */
    async findIn(folder: string, words: string) {
      return kept.find({ ...(await reachIn(folder)), words }, LISTED_ON_PAGE);
    },
    /** Erases them, also after a kill; returns what was done. `id`: a repeat is one request. */
    async eraseIn(folder: string, words: string, id: string): Promise<string> {
      const reach = { ...(await reachIn(folder)), words };
      await forgetting.keep(id, { reach, chat: NOTICES });
      return (await forgetting.decided(id)) ?? GONE;
    },
    handler: {
      async answer({ rest }, { action }) {
        if (action === 'forget') return (await forgetting.decided(rest)) ?? GONE;
        await forgetting.drop(rest);
        return t`Nothing was forgotten.`;
      },
      expired: ({ rest }) => forgetting.drop(rest),
    } satisfies QuestionHandler,
  };
}

const placesIn = (count: number) => ngettext(msgid`this entry`, `these ${count} entries`, count);

// `/memory`, `/forget` and `/export`: show, erase and export what is stored about a person.

export const MEMORY_COMMANDS = {
  memory: {
    summary: t`show what I remember about you, or have me review it`,
    usage: '/memory [reflect]',
    access: CONVERSATION,
    timing: 'in_order',
  },
  forget: {
    summary: t`delete something from all I keep about you, for good`,
    usage: '/forget <words>',
    access: { direct: 'guest', group: 'owner', audited: true },
    timing: 'in_order',
  },
  export: {
    summary: t`send you all I keep about you`,
    usage: '/export [md | jsonl]',
    access: PERSONAL,
    timing: 'in_order',
  },
} satisfies CommandTable;

export function memoryCommands(
  memory: Pick<MemoryService, 'show' | 'forget' | 'handOut'>,
  reflection: Pick<ReflectionService, 'reflect'>,
): readonly Command[] {
  return commandsOf(MEMORY_COMMANDS, {
    async memory({ message, role }, argument) {
      if (argument.trim().toLowerCase() !== 'reflect') return memory.show(message);
      const mayReflect = role === 'owner' || (role === 'trusted' && message.group === undefined);
      return mayReflect ? reflection.reflect(message) : t`Only my owner can do that.`;
    },
    forget: ({ message }, argument) => memory.forget(message, argument),
    export: ({ message }, argument) =>
      memory.handOut(message, argument.trim().toLowerCase() === 'jsonl' ? 'jsonl' : 'md'),
  });
}
