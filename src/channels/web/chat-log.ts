// The log of the chats of a local channel, in rows of its state. Appending is idempotent by message
// id, and one transaction: other processes append too. An intent is a message on its way to the bus:
// it becomes part of the log in the transaction that removes it.

import { z } from 'zod';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { ATTACHMENT_KINDS } from '../../kernel/message/attachment.ts';
import {
  callId,
  type MessageId,
  mediaId,
  messageId,
  type TurnId,
  turnId,
} from '../../kernel/message/ids.ts';
import type { LiveUpdate } from '../../kernel/message/message.ts';
import type { Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { createChange } from '../../lib/async.ts';
import { storedJson } from '../../lib/json/json.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import {
  LOCAL_CHAT_NAME,
  type LocalAmendment,
  type LocalChat,
  type LocalChatChange,
  type LocalEvent,
  LocalNameError,
} from '../local-channel.ts';

type NumberedSaid = Said & { readonly seq: number };

type LogPage = {
  readonly said: readonly NumberedSaid[];
  readonly through: number;
};

/** Digits of a number in a key, so that key order is number order. */
const KEY_DIGITS = 16;
/** Rows searched for a chat's new title. */
const TITLE_ROWS = 10;
const INTENTS = 'intent/';
const RECENT = 'recent/';
const ARCHIVED = 'archived/';

const inKey = (value: number) => String(value).padStart(KEY_DIGITS, '0');
/** Different each time: the outcome may change. */
const closedId = (id: MessageId, at: number) => messageId(`${id}/closed/${at}`);
const goneId = (id: MessageId) => messageId(`${id}/gone`);
const replacedId = (id: MessageId) => messageId(`${id}/replaced`);
const headKey = (chat: string) => `chat/${chat}`;
const saidPrefix = (chat: string) => `said/${chat}/`;
const saidKey = (chat: string, seq: number) => `${saidPrefix(chat)}${inKey(seq)}`;
/** Number of the row that records the newest change of a message. */
const changeKey = (chat: string, id: MessageId) => `change/${chat}/${id}`;
const idKey = (chat: string, id: MessageId) => `id/${chat}/${id}`;
const intentKey = ({ chat, id }: Pick<Intent, 'chat' | 'id'>) => `${INTENTS}${chat}/${id}`;
/** Where a chat stands in the list of its kind. */
const listKey = (chat: string, { updatedAt, isArchived }: Pick<Head, 'updatedAt' | 'isArchived'>) =>
  `${isArchived === true ? ARCHIVED : RECENT}${inKey(updatedAt)}/${chat}`;

type AlsoChanged = {
  readonly title?: string;
  /** Called with the new row's number. */
  readonly rows?: (seq: number) => readonly Row[];
};
type Row = { readonly key: string; readonly value: string | undefined };

const titleFor = ({ text, files }: Pick<Said, 'text' | 'files'>) =>
  titleOf(text || (files?.[0]?.name ?? ''));

export class ChatLog {
  readonly #state: KeyValueStore;

  constructor(state: KeyValueStore) {
    this.#state = state;
  }

  async has(chat: string, id: MessageId): Promise<boolean> {
    return (await this.#state.get(idKey(chat, id))) !== undefined;
  }

  async lastSeq(chat: string): Promise<number> {
    return (await this.#head(chat))?.lastSeq ?? 0;
  }

  async intend(intent: Intent): Promise<void> {
    await this.#state.set(intentKey(intent), JSON.stringify(intent));
  }

  async withdraw(intent: Intent): Promise<void> {
    await this.#state.delete(intentKey(intent));
  }

  /** Messages that an earlier process had on their way to the bus. */
  async intents(): Promise<readonly Intent[]> {
    const rows = await this.#state.list(INTENTS);
    const intents = rows.flatMap(({ value }) => storedJson(intentSchema, value) ?? []);
    return intents.toSorted((one, other) => one.at - other.at);
  }

  /** Undefined if it was never said here, or was removed. */
  async find(chat: string, id: MessageId): Promise<NumberedSaid | undefined> {
    const known = await this.#state.get(idKey(chat, id));
    const said = known === undefined ? undefined : await this.#said(chat, Number(known));
    return said && { ...said, seq: Number(known) };
  }

  async #said(chat: string, seq: number): Promise<Said | undefined> {
    return storedJson(saidSchema, await this.#state.get(saidKey(chat, seq)));
  }

  /** @throws LocalNameError for anything but what a person typed here. */
  async requireChangeable(chat: string, { id }: LocalAmendment): Promise<void> {
    const said = await this.find(chat, id);
    const isTyped = said?.press === undefined && said?.amends === undefined;
    if (said?.from === 'person' && isTyped) return;
    throw new LocalNameError(t`There is no message of yours here to change.`);
  }

  /** The message's number in the chat; a known message keeps its own. */
  append(chat: string, said: Said, also: AlsoChanged = {}): Promise<number> {
    return this.#state.update((read) => {
      const rows = read([headKey(chat), idKey(chat, said.id)]);
      const known = rows.get(idKey(chat, said.id));
      const settled = { key: intentKey({ chat, id: said.id }), value: undefined };
      if (known !== undefined) return { rows: [settled], result: Number(known) };
      const head = storedJson(headSchema, rows.get(headKey(chat)));
      const seq = (head?.lastSeq ?? 0) + 1;
      // Never back in time, so that the list keeps its order when the clock is set back.
      const updatedAt = Math.max(said.at, head?.updatedAt ?? 0);
      const next: Head = {
        title: also.title ?? head?.title ?? titleFor(said),
        updatedAt,
        lastSeq: seq,
        ...(head?.isNamed === true ? { isNamed: true } : {}),
      };
      const written = [
        ...(head === undefined ? [] : [{ key: listKey(chat, head), value: undefined }]),
        { key: listKey(chat, next), value: chat },
        { key: headKey(chat), value: JSON.stringify(next) },
        { key: saidKey(chat, seq), value: JSON.stringify(said) },
        { key: idKey(chat, said.id), value: String(seq) },
        settled,
        ...(also.rows?.(seq) ?? []),
      ];
      return { rows: written, result: seq };
    });
  }

  /**
   * Changes or removes a person's message: its row holds the current text, and only the newest
   * change is recorded, so that no earlier text remains.
   */
  async amend(chat: string, change: Said & { readonly amends: LocalAmendment }): Promise<number> {
    const { id, kind } = change.amends;
    const earlier = await this.find(chat, id);
    if (earlier === undefined) return this.append(chat, { ...change, text: '' });
    const { seq: at, ...said } = earlier;
    const before = await this.#state.get(changeKey(chat, id));
    const now = kind === 'edited' ? JSON.stringify({ ...said, text: change.text }) : undefined;
    const title = await this.#titleBehind(chat, earlier, change);
    return this.append(chat, change, {
      ...(title === undefined ? {} : { title }),
      rows: (seq) => [
        ...(before === undefined ? [] : [{ key: saidKey(chat, Number(before)), value: undefined }]),
        { key: saidKey(chat, at), value: now },
        { key: changeKey(chat, id), value: now && String(seq) },
      ],
    });
  }

  /** The chat's title, if it was made of the text that changes. */
  async #titleBehind(chat: string, earlier: NumberedSaid, change: Said) {
    const head = await this.#head(chat);
    if (head?.isNamed === true || head?.title !== titleFor(earlier)) return undefined;
    if (change.text !== '') return titleFor(change);
    const { said } = await this.read(chat, 0, TITLE_ROWS);
    return (
      said
        .filter(({ id }) => id !== earlier.id)
        .map(titleFor)
        .find((title) => title !== '') ?? ''
    );
  }

  /** Removes a message for readers from now on; its row stays empty. */
  async takeAway(chat: string, seq: number, at: number): Promise<boolean> {
    const said = await this.#said(chat, seq);
    if (said?.from !== 'agent') return false;
    const { id } = said;
    await this.append(chat, { id: goneId(id), from: 'agent', text: '', takesAway: id, at });
    await this.#state.delete(saidKey(chat, seq));
    return true;
  }

  /** A newer answer takes the place of this one, which stays. */
  async markReplaced(chat: string, seq: number, at: number): Promise<void> {
    const said = await this.#said(chat, seq);
    if (said?.from !== 'agent') return;
    const { id } = said;
    await this.append(chat, { id: replacedId(id), from: 'agent', text: '', replaced: id, at });
  }

  /**
   * Removes the buttons below the message with this number and sets its text to `now`; false if the
   * message was removed.
   */
  async closeChoices(chat: string, seq: number, at: number, now = ''): Promise<boolean> {
    const said = await this.#said(chat, seq);
    if (said?.from !== 'agent') return false;
    if (said.choices === undefined && (now === '' || now === said.text)) return true;
    const { choices: _spent, ...rest } = said;
    const { id, text } = rest;
    const row = { key: saidKey(chat, seq), value: JSON.stringify({ ...rest, text: now || text }) };
    const closed: Said = { id: closedId(id, at), from: 'agent', text: now, closes: id, at };
    await this.append(chat, closed, { rows: () => [row] });
    return true;
  }

  /** In order; damaged rows are skipped. `through`: how far the log was read. */
  async read(chat: string, afterSeq: number, limit: number): Promise<LogPage> {
    const prefix = saidPrefix(chat);
    const rows = await this.#state.list(prefix, { after: saidKey(chat, afterSeq), limit });
    const seqOf = (key: string) => Number(key.slice(prefix.length));
    const said = rows.flatMap(({ key, value }) => {
      const one = storedJson(saidSchema, value);
      return one === undefined ? [] : [{ ...one, seq: seqOf(key) }];
    });
    const last = rows.at(-1);
    return { said, through: last === undefined ? afterSeq : seqOf(last.key) };
  }

  async chats(limit: number, which: 'open' | 'archived' = 'open'): Promise<readonly LocalChat[]> {
    const prefix = which === 'open' ? RECENT : ARCHIVED;
    const rows = await this.#state.list(prefix, { limit, newestFirst: true });
    const heads = await Promise.all(rows.map(({ value }) => this.#head(value)));
    return rows.flatMap(({ value: chat }, index) => {
      const head = heads[index];
      if (head === undefined) return [];
      const { title, updatedAt, lastSeq } = head;
      return [{ chat, title, updatedAt, lastSeq }];
    });
  }

  /** Renames or archives a chat; a new message brings an archived one back. False if there is none. */
  changeChat(chat: string, { title, isArchived }: LocalChatChange): Promise<boolean> {
    return this.#state.update((read) => {
      const head = storedJson(headSchema, read([headKey(chat)]).get(headKey(chat)));
      if (head === undefined) return { rows: [], result: false };
      const { isArchived: before = false, ...kept } = head;
      const next: Head = {
        ...kept,
        ...(title === undefined ? {} : { title: titleOf(title), isNamed: true }),
        ...((isArchived ?? before) ? { isArchived: true } : {}),
      };
      const rows = [
        { key: listKey(chat, head), value: undefined },
        { key: listKey(chat, next), value: chat },
        { key: headKey(chat), value: JSON.stringify(next) },
      ];
      return { rows, result: true };
    });
  }

  #head(chat: string): Promise<Head | undefined> {
    return storedHead(this.#state, chat);
  }
}

const storedHead = async (state: KeyValueStore, chat: string) =>
  storedJson(headSchema, await state.get(headKey(chat)));

/** The title of a chat of a page or terminal; undefined for other chats. */
export async function chatTitle(state: KeyValueStore, chat: string): Promise<string | undefined> {
  return (await storedHead(state, chat))?.title;
}

/** @throws LocalNameError for a name that is not safe in a key. */
export function checkNames(...names: readonly string[]): void {
  const wrong = names.find((name) => !LOCAL_CHAT_NAME.test(name));
  if (wrong === undefined) return;
  throw new LocalNameError(t`A chat or client id has 1 to 64 letters, digits, ".", "_" or "-".`);
}

// The title of a chat in a list: the first words of its first message.

const MAX_TITLE_CHARS = 60;
const ELLIPSIS = '…';
/** A list shows plain text: a notice may begin with bold text. */
const MARKED = /(\*\*|`)(\S.*?)\1/gu;

export function titleOf(text: string): string {
  const line = text.toWellFormed().replace(/\s+/gu, ' ').replace(MARKED, '$2').trim();
  if (line.length <= MAX_TITLE_CHARS) return line;
  const cut = headOf(line, MAX_TITLE_CHARS - 1);
  const border = cut.lastIndexOf(' ');
  const words = border > MAX_TITLE_CHARS / 2 ? cut.slice(0, border) : cut;
  return `${words}${ELLIPSIS}`;
}

// The stored rows of the log of a local channel. An unreadable row counts as absent.

/** A message as its reader gets it, without its position. */
export type Said = Omit<Extract<LocalEvent, { readonly type: 'said' }>, 'type' | 'seq'>;

const idSchema = z.string().transform(messageId);
const localFileSchema = z.object({
  media: z.string().transform(mediaId),
  name: z.string(),
  kind: z.enum(ATTACHMENT_KINDS),
  mimeType: z.string(),
  sizeBytes: z.number(),
});
const amendsSchema = z.object({ id: idSchema, kind: z.enum(['edited', 'withdrawn', 'again']) });
const endedSchema = z.object({
  turn: z.string().transform(turnId),
  kind: z.enum(['answered', 'stopped', 'failed']),
  answers: z.number(),
  tools: z.array(
    z.object({
      callId: z.string().transform(callId),
      name: z.string(),
      detail: z.string(),
      status: z.enum(['running', 'ok', 'failed', 'waiting']),
      preview: z.string().exactOptional(),
    }),
  ),
});
const saidSchema = z.object({
  id: idSchema,
  from: z.enum(['person', 'agent']),
  replyTo: idSchema.exactOptional(),
  text: z.string(),
  choices: z.array(z.object({ label: z.string(), token: z.string() })).exactOptional(),
  press: z.string().exactOptional(),
  files: z.array(localFileSchema).exactOptional(),
  takesAway: idSchema.exactOptional(),
  replaced: idSchema.exactOptional(),
  amends: amendsSchema.exactOptional(),
  closes: idSchema.exactOptional(),
  ended: endedSchema.exactOptional(),
  at: z.number(),
});
const intentSchema = z.object({
  id: idSchema,
  chat: z.string(),
  text: z.string(),
  press: z.string().optional(),
  files: z.array(localFileSchema).readonly().optional(),
  amends: amendsSchema.optional(),
  at: z.number(),
});
/** A person's message that may or may not be on the bus. */
export type Intent = Readonly<z.infer<typeof intentSchema>>;
const headSchema = z.object({
  title: z.string(),
  updatedAt: z.number(),
  lastSeq: z.number(),
  /** The person chose the title. */
  isNamed: z.boolean().exactOptional(),
  isArchived: z.boolean().exactOptional(),
});
export type Head = z.infer<typeof headSchema>;

/**
 * Erases in one chat the messages that contain certain words; returns how many. Its title is erased
 * too if it contains them.
 */
export async function forgetSaid(
  state: KeyValueStore,
  chat: string,
  holds: Holds,
): Promise<number> {
  const rows = await state.list(saidPrefix(chat));
  const gone = rows.filter(({ value }) => holds(value)).map(({ key }) => key);
  const key = headKey(chat);
  const head = await state.get(key);
  const isTold = head !== undefined && holds(head);
  await state.setMany([
    ...gone.map((key) => ({ key, value: undefined })),
    ...(isTold ? [{ key, value: JSON.stringify({ ...JSON.parse(head), title: ELLIPSIS }) }] : []),
  ]);
  return gone.length;
}

// The readers of the chats of a local channel. A reader is notified that the log has grown and
// reads it itself, so that no message is buffered or lost; of live previews it holds only the
// newest per turn.

export class Readers {
  readonly #readers = new Map<string, Set<ChatReader>>();
  /** The newest update of each running turn, for later readers. */
  readonly #running = new Map<string, Map<TurnId, LiveUpdate>>();

  open(chat: string, signal: AbortSignal): ChatReader {
    const ofChat = this.#readers.get(chat) ?? new Set();
    const running = this.#running.get(chat)?.values() ?? [];
    const reader = new ChatReader(running, signal, () => {
      ofChat.delete(reader);
      if (ofChat.size === 0 && this.#readers.get(chat) === ofChat) this.#readers.delete(chat);
    });
    this.#readers.set(chat, ofChat.add(reader));
    return reader;
  }

  show(update: LiveUpdate): void {
    const { chat } = update.chat;
    const running = this.#running.get(chat) ?? new Map<TurnId, LiveUpdate>();
    if (update.phase === 'ended') running.delete(update.turnId);
    else running.set(update.turnId, update);
    if (running.size === 0) this.#running.delete(chat);
    else this.#running.set(chat, running);
    for (const reader of this.#readers.get(chat) ?? []) reader.show(update);
  }

  logHasGrown(chat: string): void {
    for (const reader of this.#readers.get(chat) ?? []) reader.logHasGrown();
  }

  /** Another process has written, in whichever chat. */
  logsMayHaveGrown(): void {
    for (const chat of this.#readers.keys()) this.logHasGrown(chat);
  }
}

class ChatReader implements Disposable {
  readonly #pictures: Map<TurnId, LiveUpdate>;
  readonly #signal: AbortSignal;
  readonly #close: () => void;
  readonly #change = createChange();
  #hasGrown = true;
  #hasNews = false;

  constructor(running: Iterable<LiveUpdate>, signal: AbortSignal, close: () => void) {
    this.#pictures = new Map([...running].map((update) => [update.turnId, update]));
    this.#signal = signal;
    this.#close = close;
  }

  show(update: LiveUpdate): void {
    this.#pictures.set(update.turnId, update);
    this.#tell();
  }

  logHasGrown(): void {
    this.#hasGrown = true;
    this.#tell();
  }

  /** Whether the log may have grown since the last call. */
  takeGrowth(): boolean {
    const hasGrown = this.#hasGrown;
    this.#hasGrown = false;
    return hasGrown;
  }

  /** The newest update, since the last call, of each turn that ended. */
  takeEndings(): readonly LiveUpdate[] {
    return this.#take(({ phase }) => phase === 'ended');
  }

  /** The newest update, since the last call, of each running turn. */
  takeRunning(): readonly LiveUpdate[] {
    return this.#take(({ phase }) => phase !== 'ended');
  }

  /** Resolves when there is something new, or when the reader's signal aborts. */
  async arrival(): Promise<void> {
    if (!this.#hasNews) await this.#change.next(this.#signal).catch(() => undefined);
    this.#hasNews = false;
  }

  [Symbol.dispose](): void {
    this.#close();
  }

  #tell(): void {
    this.#hasNews = true;
    this.#change.notify();
  }

  #take(isWanted: (update: LiveUpdate) => boolean): readonly LiveUpdate[] {
    const taken = [...this.#pictures.values()].filter(isWanted);
    for (const { turnId } of taken) this.#pictures.delete(turnId);
    return taken;
  }
}
