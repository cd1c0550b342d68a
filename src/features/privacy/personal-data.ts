// All that is kept of a person, over every store that holds some of it: notes, conversations, the index
// over both, queues, the logs of our own doors, mails, and plans, questions, and what helpers did.

import { forgetSaid } from '../../channels/web/door-rows.ts';
import type { EmbeddedStore, KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import { chatRefOf, type InboundMessage } from '../../kernel/message/message.ts';
import type { TurnPerson } from '../../kernel/message/notes.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import type { PersonalData } from '../../kernel/personal-data.ts';
import {
  findToForget,
  forgetInSessions,
  type SessionForgetting,
} from '../../kernel/sessions/forget.ts';
import type { SessionIndexing } from '../../kernel/sessions/index-sessions.ts';
import { isoTime } from '../../kernel/sessions/rules/entry.ts';
import { placeOfWords } from '../../kernel/sessions/rules/extract.ts';
import { type Holds, holdsWords } from '../../kernel/sessions/rules/forgetting.ts';
import { partOf } from '../../lib/text/cut.ts';
import type { TextIndex } from '../memory/memory.ts';
import type { NoteReader } from '../memory/note-files.ts';
import { findInNotes, forgetInNotes } from '../memory/notes.ts';
import { isOwnDoor } from '../memory/past-sessions.ts';
import type { HandedOut } from './handed-out.ts';

type ErasingChannel = {
  readonly name: string;
  erase?(state: KeyValueStore, chat: string, holds: Holds): Promise<number>;
};

export type ForgettingDeps = {
  readonly reader: NoteReader;
  readonly sessions: SessionForgetting;
  readonly index: TextIndex;
  readonly indexing: SessionIndexing;
  readonly store: EmbeddedStore;
  readonly handedOut: Pick<HandedOut, 'forget'>;
  /** By their names; what a channel keeps of a chat it erases itself. */
  readonly channels: readonly ErasingChannel[];
  /** What features keep of conversations. */
  personalData(): readonly PersonalData[];
  /** Whose conversations, without topics. */
  chatsOf(asking: Asking): Promise<readonly string[]>;
};

const SNIPPET_CHARS = 80;

export type Forgetting = ReturnType<typeof createForgetting>;

export function createForgetting(deps: ForgettingDeps) {
  const { reader, sessions, index, indexing, store } = deps;

  /** With the conversations of jobs and subagents that were started in them, however deep. */
  async function withThoseBelow(own: readonly string[], isOwner: boolean) {
    const chats = new Set(own);
    for (let before = -1; before !== chats.size; ) {
      before = chats.size;
      for (const data of deps.personalData()) {
        for (const chat of (await data.chatsBelow?.([...chats], isOwner)) ?? []) chats.add(chat);
      }
    }
    return [...chats];
  }

  return {
    async reach(asking: Asking, words: string): Promise<Reach> {
      const { notes } = asking.person;
      const chats = await withThoseBelow(await deps.chatsOf(asking), notes === '');
      return { words, notes, chats };
    },
    /** At most `limit` places are told; all are counted. */
    async find(
      { words, notes, chats }: Reach,
      limit: number,
    ): Promise<{ readonly places: readonly KeptPlace[]; readonly count: number }> {
      const holds = holdsWords(words) ?? (() => false);
      const inNotes = await findInNotes(reader, notes, holds);
      const places = inNotes.map(({ path, line, text }) => ({
        where: `${path}:${line}`,
        text: around(text, words),
      }));
      for (const data of deps.personalData()) {
        for (const { where, text } of (await data.find?.(chats, holds)) ?? []) {
          places.push({ where, text: around(text, words) });
        }
      }
      let count = places.length;
      for await (const { session, at, text } of findToForget(sessions.folder, chats, holds)) {
        count += 1;
        if (places.length >= limit) continue;
        const when =
          at === undefined ? 'damaged line' : `${isoTime(at).slice(0, 16).replace('T', ' ')} UTC`;
        places.push({ where: `${session}, ${when}`, text: around(text, words) });
      }
      return { places: places.slice(0, limit), count };
    },
    /** May be repeated. Nothing of it is left in any file when this resolves. */
    async forget({ words, notes, chats }: Reach): Promise<ForgetReport> {
      const holds = holdsWords(words) ?? (() => false);
      const noteLines = await forgetInNotes(reader, notes, holds);
      const { files, entries } = await forgetInSessions(sessions, chats, holds);
      for (const name of files) indexing.rewritten(name);
      for (const name of index.sources(`notes/${notes}memory/`)) index.remove(name);
      const texts = [await store.forgetTexts(chats, holds), await inChannels(deps, chats, holds)];
      for (const data of deps.personalData()) {
        texts.push((await data.forget?.(chats, holds)) ?? 0);
      }
      await deps.handedOut.forget(notes);
      // Also what a try that was killed rewrote and could not tell the index of.
      await indexing.flush();
      await index.scrub();
      await store.scrub();
      return { noteLines, entries, texts: texts.reduce((sum, count) => sum + count, 0) };
    },
    /** Leaves nothing of a wish that was deleted in the file of the store. */
    scrub: () => store.scrub(),
  };
}

async function inChannels(
  { store, channels }: Pick<ForgettingDeps, 'store' | 'channels'>,
  chats: readonly string[],
  holds: (text: string) => boolean,
): Promise<number> {
  let texts = 0;
  for (const ref of chats.flatMap((chat) => chatRefOf(chat) ?? [])) {
    const scope = store.scope(`channel:${ref.channel}:${ref.account}`);
    if (isOwnDoor(ref.channel)) texts += await forgetSaid(scope, ref.chat, holds);
    const channel = channels.find(({ name }) => name === ref.channel);
    texts += (await channel?.erase?.(scope, ref.chat, holds)) ?? 0;
  }
  return texts;
}

function around(text: string, words: string): string {
  const flat = text.replace(/\s+/g, ' ').trim();
  const start = Math.max(0, placeOfWords(flat, words) - SNIPPET_CHARS / 2);
  const cut = partOf(flat, start, start + SNIPPET_CHARS);
  return verbatim(`${start > 0 ? '…' : ''}${cut}${start + SNIPPET_CHARS < flat.length ? '…' : ''}`);
}

/** A turn in the chat of a message, as far as it says whose it is. */
export type Asking = {
  readonly message: InboundMessage;
  readonly session: SessionKey;
  readonly person: TurnPerson;
};

/** What a wish to forget reaches, kept until it is answered. */
export type Reach = {
  readonly words: string;
  readonly notes: string;
  /** Session keys without topics. */
  readonly chats: readonly string[];
};

export type KeptPlace = { readonly where: string; readonly text: string };

export type ForgetReport = {
  readonly noteLines: number;
  readonly entries: number;
  /** Of messages in the queues and the logs of our own doors. */
  readonly texts: number;
};
