// Finds and erases everything stored about a person: notes, conversations, the full-text index, the
// message bus, the logs of local channels, mails, plans, questions, and the work of subagents.

import { CHANNELS } from '../../channels/index.ts';
import { forgetSaid } from '../../channels/web/chat-log.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { EmbeddedStore, KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { TextIndex } from '../../kernel/bus/store/text-index.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { MediaStore } from '../../kernel/media/media.ts';
import {
  channelScope,
  type MediaId,
  mediaId,
  messageId,
  type SessionKey,
} from '../../kernel/message/ids.ts';
import { type ChatRef, chatRefOf, type InboundMessage } from '../../kernel/message/message.ts';
import type { TurnPerson } from '../../kernel/message/untrusted.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import { type DataReach, exportedText, type PersonalData } from '../../kernel/personal-data.ts';
import { jsonRows, type Rows } from '../../kernel/rows.ts';
import {
  findToForget,
  forgetInSessions,
  type SessionFiles,
  sessionsOfChats,
} from '../../kernel/sessions/forget.ts';
import type { SessionIndexing } from '../../kernel/sessions/index-sessions.ts';
import { exportSession } from '../../kernel/sessions/maintenance.ts';
import { placeOfWords } from '../../kernel/sessions/rules/earlier.ts';
import { isoTime } from '../../kernel/sessions/rules/file.ts';
import { type Holds, holdsWords } from '../../kernel/sessions/rules/forgetting.ts';
import { inTime } from '../../lib/async.ts';
import { flag, object, place, rowShape } from '../../lib/json/json.ts';
import { oneLine, partOf } from '../../lib/text/cut.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import { aborted } from '../../lib/time/clock.ts';
import { isLocalChannel } from './memory-tools.ts';
import {
  findInNotes,
  forgetInNotes,
  LEARNINGS_FILE,
  listFiles,
  listNotes,
  type NoteReader,
  readNote,
  SESSIONS_FOLDER,
} from './notes.ts';

type ForgettingDeps = {
  readonly reader: NoteReader;
  readonly sessions: SessionFiles;
  readonly index: TextIndex;
  readonly indexing: SessionIndexing;
  readonly store: EmbeddedStore;
  readonly handedOut: Pick<HandedOut, 'forget'>;
  /** The data that features store of conversations. */
  personalData(): readonly PersonalData[];
  /** The person's chats, without topics. */
  chatsOf(asking: AskedFrom): Promise<readonly string[]>;
};

const SNIPPET_CHARS = 80;

export type Forgetting = ReturnType<typeof createForgetting>;

export function createForgetting(deps: ForgettingDeps) {
  const { reader, sessions, index, indexing, store } = deps;

  /** Adds the conversations of jobs and subagents that were started in them, at any depth. */
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
    async reachOf(asking: AskedFrom): Promise<DataReach> {
      const { notes } = asking.person;
      return { notes, chats: await withThoseBelow(await deps.chatsOf(asking), notes === '') };
    },
    /** Counts all places and returns at most `limit` of them. */
    async find(
      { words, notes, chats }: Reach,
      limit: number,
    ): Promise<{ readonly places: readonly KeptPlace[]; readonly count: number }> {
      const holds = holdsWords(words) ?? (() => false);
      const inNotes = await findInNotes(reader, notes, holds);
      const places: KeptPlace[] = inNotes.map(({ path, line, text }) => ({
        where: `${path}:${line}`,
        text: around(text, words),
      }));
      for (const data of deps.personalData()) {
        for (const { where, text } of (await data.find?.(chats, holds)) ?? []) {
          places.push({ where, text: around(text, words) });
        }
      }
      let count = places.length;
      for await (const { session, at, text } of findToForget(sessions, chats, holds)) {
        count += 1;
        if (places.length >= limit) continue;
        const when =
          at === undefined ? t`damaged line` : `${isoTime(at).slice(0, 16).replace('T', ' ')} UTC`;
        places.push({ where: `${session}, ${when}`, text: around(text, words), session });
      }
      return { places: places.slice(0, limit), count };
    },
    /** May be repeated. When it resolves, no file contains the words but for answers under way. */
    async forget({ words, notes, chats }: Reach): Promise<ForgetReport> {
      const holds = holdsWords(words) ?? (() => false);
      const noteLines = await forgetInNotes(reader, notes, holds);
      const { files, entries } = await forgetInSessions(sessions, chats, holds);
      for (const name of files) await indexing.rewritten(name);
      const noted = await index.states(`notes/${notes}memory/`);
      for (const name of noted.keys()) await index.remove(name);
      const { underWay, texts: queued } = await store.forgetTexts(chats, holds);
      const texts = [queued, await inChannels(store, chats, holds)];
      for (const data of deps.personalData()) {
        texts.push((await data.forget?.(chats, holds)) ?? 0);
      }
      await deps.handedOut.forget(notes);
      // Includes what an attempt that was killed rewrote without updating the index.
      await indexing.flushFor(chats);
      await index.scrub();
      await store.scrub();
      return { noteLines, entries, texts: texts.reduce((sum, count) => sum + count, 0), underWay };
    },
    /** Removes a deleted erase request from the file of the store. */
    scrub: () => store.scrub(),
  };
}

async function inChannels(
  store: EmbeddedStore,
  chats: readonly string[],
  holds: Holds,
): Promise<number> {
  let texts = 0;
  for (const ref of chats.flatMap((chat) => chatRefOf(chat) ?? [])) {
    const scope = store.scope(channelScope(ref));
    if (isLocalChannel(ref.channel)) texts += await forgetSaid(scope, ref.chat, holds);
    // A channel erases what it stores of a chat itself.
    const channel = CHANNELS.find(({ name }) => name === ref.channel);
    texts += (await channel?.erase?.(scope, ref.chat, holds)) ?? 0;
  }
  return texts;
}

function around(text: string, words: string): string {
  const flat = oneLine(text);
  const start = Math.max(0, placeOfWords(flat, words) - SNIPPET_CHARS / 2);
  const cut = partOf(flat, start, start + SNIPPET_CHARS);
  return verbatim(`${start > 0 ? '…' : ''}${cut}${start + SNIPPET_CHARS < flat.length ? '…' : ''}`);
}

/** The part of a turn that tells which person asks in which chat. */
export type Asking = {
  readonly message: InboundMessage;
  readonly session: SessionKey;
  readonly person: TurnPerson;
};

/** Whose data, asked in which chat. */
export type AskedFrom = Pick<Asking, 'session' | 'person'> & {
  readonly message: Pick<InboundMessage, 'chat'>;
};

/** The scope of an erase request, stored until it is answered. */
export type Reach = DataReach & { readonly words: string };

type KeptPlace = { readonly where: string; readonly text: string; readonly session?: string };

export type ForgetReport = {
  readonly noteLines: number;
  readonly entries: number;
  /** Number of messages in the message bus and in the logs of local channels. */
  readonly texts: number;
  /** Where answers that contain the words are still to be sent. */
  readonly underWay: readonly ChatRef[];
};

// What memory exports of a person: their notes and their conversations.

export const notesData = (reader: NoteReader): PersonalData => ({
  async *export({ notes }, format) {
    const listed = (await listNotes(reader, notes)).map(({ path }) => path);
    for (const path of [...listed, notes + LEARNINGS_FILE]) {
      const note = await readNote(reader, path);
      if (note !== undefined) yield exportedText({ type: 'note', path, text: note.text }, format);
    }
  },
});

export const conversationsData = (
  files: Pick<SessionFiles, 'folder' | 'complete'>,
): PersonalData => ({
  async *export({ chats }, format) {
    for (const session of await sessionsOfChats(files, chats)) {
      yield* exportSession(files.folder, session, format);
    }
  },
});

// The export files that were handed out. They contain all of a person's data, so an erase deletes
// them too; they can be exported again.

export type HandedOut = ReturnType<typeof createHandedOut>;

type HandedOutDeps = {
  readonly state: KeyValueStore;
  readonly media: Pick<MediaStore, 'remove'>;
  readonly reader: NoteReader;
};

/** Rows begin with the notes folder; it is empty for owners. */
const PREFIX = 'of:';
const EXPORT = /^export-\d{4}-\d{2}-\d{2}(?:-conversation)?\.(?:md|jsonl)$/;
const EMPTIED = t`Something in here was deleted. /export writes the file again.\n`;

export const exportPath = (notes: string, day: string, format: string) =>
  `${notes}${SESSIONS_FOLDER}/export-${day}.${format}`;

export function createHandedOut({ state, media, reader }: HandedOutDeps) {
  return {
    /** Durable when it resolves; called before the file is sent. */
    note: (notes: string, id: MediaId) => state.set(`${PREFIX}${notes}:${id}`, ''),
    async forget(notes: string): Promise<void> {
      const prefix = `${PREFIX}${notes}:`;
      for (const { key } of await state.list(prefix)) {
        // A file that is still being sent is deleted by the next erase request, or when its
        // retention ends.
        if (await media.remove(mediaId(key.slice(prefix.length)))) await state.delete(key);
      }
      const exported = await listFiles(reader, notes + SESSIONS_FOLDER, (name) =>
        EXPORT.test(name),
      );
      for (const { path } of exported) {
        await reader.files.write(reader.workspace(), path, EMPTIED);
      }
    },
  };
}

// Carries out erase requests. With much data this takes long and blocks nothing else: after a
// moment it continues in the background, and the person gets a message at the end. A decided
// request stays stored until then, so that it is repeated after a crash.

type ErasureDeps = Pick<Kernel, 'rows' | 'clock' | 'log'> & {
  readonly kept: Pick<Forgetting, 'forget' | 'scrub'>;
  readonly bus: Pick<MessageBus, 'send' | 'isDelivering'>;
};

/** An erase request and the chat it came from. */
type Wish = { readonly reach: Reach; readonly chat: ChatRef; readonly isDecided: boolean };

const WISH = rowShape<Wish>({ reach: object, chat: place, isDecided: flag });
/** Time until the answer to the button press, which later messages of the channel wait for. */
const SOON_MS = 2000;
const AGAIN_MS = 60_000;
/** Between two looks whether an answer is sent. */
const LOOK_MS = 5000;
const AT_IT = t`I am deleting it. This takes a while; I tell you when it is done.`;

export class Erasure {
  readonly #deps: ErasureDeps;
  readonly #wishes: Rows<Wish>;
  readonly #running = new Map<string, Promise<string>>();
  readonly #closing = new AbortController();

  constructor(deps: ErasureDeps) {
    this.#deps = deps;
    this.#wishes = deps.rows({ ...jsonRows(WISH), scope: 'forget', prefix: '' });
  }

  async keep(id: string, wish: Omit<Wish, 'isDecided'>): Promise<void> {
    await this.#wishes.change(id, () => ({ ...wish, isDecided: false }));
  }

  async drop(id: string): Promise<void> {
    await this.#wishes.change(id, () => 'remove');
  }

  /** The answer for the person; undefined where there is no such request. */
  async decided(id: string): Promise<string | undefined> {
    const { clock } = this.#deps;
    const wish = await this.#wishes.change(id, (each) => each && { ...each, isDecided: true });
    if (wish === undefined) return undefined;
    const words = await inTime(clock, SOON_MS, this.#work(id, wish));
    if (words !== 'late') return words;
    void this.#tellLater(id, wish);
    return AT_IT;
  }

  /** Resumes the requests of an earlier process; the question itself is not carried out again. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#deps.clock.sleep(SOON_MS, signal).catch(() => undefined);
    for (const [id, wish] of signal.aborted ? [] : await this.#wishes.entries()) {
      if (wish.isDecided && !this.#running.has(id)) void this.#tellLater(id, wish);
    }
    await aborted(signal);
    this.#closing.abort();
    await Promise.allSettled(this.#running.values());
  }

  /** One run per request, however often it is started. */
  #work(id: string, { reach }: Wish): Promise<string> {
    const known = this.#running.get(id);
    if (known !== undefined) return known;
    const work = this.#forget(id, reach).finally(() => this.#running.delete(id));
    this.#running.set(id, work);
    return work;
  }

  async #forget(id: string, reach: Reach): Promise<string> {
    const { kept, bus, clock } = this.#deps;
    let report = await kept.forget(reach);
    const { underWay } = report;
    // An answer is sent first, once. What is said meanwhile is no part of the request.
    for (const chat of underWay) {
      while (await bus.isDelivering(chat)) await clock.sleep(LOOK_MS, this.#closing.signal);
    }
    if (underWay.length > 0) report = both(report, await kept.forget(reach));
    await this.drop(id);
    await kept.scrub();
    return wordsFor(report);
  }

  async #tellLater(id: string, wish: Wish): Promise<void> {
    const { bus, clock, log } = this.#deps;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        const markdown = await this.#work(id, wish);
        await bus.send({ id: messageId(`forget/${id}/done`), chat: wish.chat, markdown });
        return;
      } catch (error) {
        if (!signal.aborted) log.error('erasure not finished', { wish: id, error });
        await clock.sleep(AGAIN_MS, signal).catch(() => undefined);
      }
    }
  }
}

const both = (one: ForgetReport, other: ForgetReport): ForgetReport => ({
  noteLines: one.noteLines + other.noteLines,
  entries: one.entries + other.entries,
  texts: one.texts + other.texts,
  underWay: other.underWay,
});

function wordsFor({ noteLines, entries, texts }: ForgetReport): string {
  const lines = ngettext(msgid`${noteLines} line`, `${noteLines} lines`, noteLines);
  const messages = ngettext(msgid`${entries} message`, `${entries} messages`, entries);
  const inQueues = ngettext(msgid`${texts} text`, `${texts} texts`, texts);
  return (
    t`Forgotten: ${lines} of notes, ${messages} in ` +
    t`conversations, ${inQueues} in the queues, and their entries in the index. I cannot ` +
    t`delete what is in the chat itself, at the platform or at the model provider, in files that were ` +
    t`received or sent, in other files of the workspace (also those I wrote, such as notes/), in the audit, ` +
    t`or in backups of this machine.`
  );
}
