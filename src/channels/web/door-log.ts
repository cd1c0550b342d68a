// The log of the chats of a built-in channel, in rows of its state. Appending is idempotent by message id;
// there is one writer per chat. An intent is a message on its way to the bus: it becomes part of the log in
// the transaction that removes it.

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { type MessageId, messageId } from '../../kernel/message/ids.ts';
import { headOf } from '../../lib/text/cut.ts';
import { DOOR_NAME, type DoorAmendment, type DoorChat, DoorNameError } from '../door.ts';
import {
  type Head,
  headSchema,
  type Intent,
  intentSchema,
  parsed,
  type Said,
  saidSchema,
} from './door-rows.ts';

type NumberedSaid = Said & { readonly seq: number };

export type LogPage = {
  readonly said: readonly NumberedSaid[];
  readonly through: number;
};

/** Digits of a number in a key, so that key order is number order. */
const KEY_DIGITS = 16;
/** Looked through for a chat's new name. */
const TITLE_ROWS = 10;
const INTENTS = 'intent/';
const RECENT = 'recent/';

const inKey = (value: number) => String(value).padStart(KEY_DIGITS, '0');
const closedId = (id: MessageId) => messageId(`${id}/closed`);
const goneId = (id: MessageId) => messageId(`${id}/gone`);
const headKey = (chat: string) => `chat/${chat}`;
const saidPrefix = (chat: string) => `said/${chat}/`;
const saidKey = (chat: string, seq: number) => `${saidPrefix(chat)}${inKey(seq)}`;
/** Number of the row that tells of the newest change of a message. */
const changeKey = (chat: string, id: MessageId) => `change/${chat}/${id}`;
const idKey = (chat: string, id: MessageId) => `id/${chat}/${id}`;
const intentKey = ({ chat, id }: Pick<Intent, 'chat' | 'id'>) => `${INTENTS}${chat}/${id}`;
const recentKey = (chat: string, at: number) => `${RECENT}${inKey(at)}/${chat}`;

type AlsoChanged = {
  readonly title?: string;
  /** Given the new row's number. */
  readonly rows?: (seq: number) => readonly Row[];
};
type Row = { readonly key: string; readonly value: string | undefined };

const titleFor = ({ text, files }: Pick<Said, 'text' | 'files'>) =>
  titleOf(text || (files?.[0]?.name ?? ''));

export class DoorLog {
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

  /** What a process that is gone had on its way to the bus. */
  async intents(): Promise<readonly Intent[]> {
    const rows = await this.#state.list(INTENTS);
    const intents = rows.flatMap(({ value }) => parsed(intentSchema, value));
    return intents.toSorted((one, other) => one.at - other.at);
  }

  /** Undefined where it was never said here, or was taken away. */
  async find(chat: string, id: MessageId): Promise<NumberedSaid | undefined> {
    const known = await this.#state.get(idKey(chat, id));
    const value = known && (await this.#state.get(saidKey(chat, Number(known))));
    const [said] = value === undefined ? [] : parsed(saidSchema, value);
    return said === undefined ? undefined : { ...said, seq: Number(known) };
  }

  /** @throws DoorNameError for anything but what a person typed here. */
  async requireChangeable(chat: string, { id }: DoorAmendment): Promise<void> {
    const said = await this.find(chat, id);
    const isTyped = said?.press === undefined && said?.amends === undefined;
    if (said?.from === 'person' && isTyped) return;
    throw new DoorNameError('There is no message of yours here that could be changed.');
  }

  /** The message's number in the chat; a known message keeps the one it has. */
  async append(chat: string, said: Said, also: AlsoChanged = {}): Promise<number> {
    const known = await this.#state.get(idKey(chat, said.id));
    if (known !== undefined) {
      await this.#state.delete(intentKey({ chat, id: said.id }));
      return Number(known);
    }
    const head = await this.#head(chat);
    const seq = (head?.lastSeq ?? 0) + 1;
    // Never back in time, so that the list keeps its order when the clock is set back.
    const updatedAt = Math.max(said.at, head?.updatedAt ?? 0);
    const next: Head = {
      title: also.title ?? head?.title ?? titleFor(said),
      updatedAt,
      lastSeq: seq,
    };
    await this.#state.setMany([
      ...(head === undefined ? [] : [{ key: recentKey(chat, head.updatedAt), value: undefined }]),
      { key: recentKey(chat, updatedAt), value: chat },
      { key: headKey(chat), value: JSON.stringify(next) },
      { key: saidKey(chat, seq), value: JSON.stringify(said) },
      { key: idKey(chat, said.id), value: String(seq) },
      { key: intentKey({ chat, id: said.id }), value: undefined },
      ...(also.rows?.(seq) ?? []),
    ]);
    return seq;
  }

  /**
   * What a person's message says from now on, or that it is gone: its row is as it is now, and of its
   * changes the newest is told, so that no earlier words stay behind.
   */
  async amend(chat: string, change: Said & { readonly amends: DoorAmendment }): Promise<number> {
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

  /** The chat's name where it was made of the words that change. */
  async #titleBehind(chat: string, earlier: NumberedSaid, change: Said) {
    if ((await this.#head(chat))?.title !== titleFor(earlier)) return undefined;
    if (change.text !== '') return titleFor(change);
    const { said } = await this.read(chat, 0, TITLE_ROWS);
    return (
      said
        .filter(({ id }) => id !== earlier.id)
        .map(titleFor)
        .find((title) => title !== '') ?? ''
    );
  }

  /** Takes a message of this number away for whoever reads from now on; its row is left empty. */
  async takeAway(chat: string, seq: number, at: number): Promise<boolean> {
    const value = await this.#state.get(saidKey(chat, seq));
    const [said] = value === undefined ? [] : parsed(saidSchema, value);
    if (said === undefined || said.from !== 'agent') return false;
    const { id } = said;
    await this.append(chat, { id: goneId(id), from: 'agent', text: '', takesAway: id, at });
    await this.#state.delete(saidKey(chat, seq));
    return true;
  }

  /** Nothing can be pressed below the message of this number any more, and it says `now`. */
  async closeChoices(chat: string, seq: number, at: number, now = ''): Promise<void> {
    const value = await this.#state.get(saidKey(chat, seq));
    const [said] = value === undefined ? [] : parsed(saidSchema, value);
    if (said?.choices === undefined) return;
    const { choices: _spent, ...rest } = said;
    const { id, text } = rest;
    const row = { key: saidKey(chat, seq), value: JSON.stringify({ ...rest, text: now || text }) };
    const closed: Said = { id: closedId(id), from: 'agent', text: now, closes: id, at };
    await this.append(chat, closed, { rows: () => [row] });
  }

  /** In order; a row that is damaged is passed over. `through`: how far the log was read. */
  async read(chat: string, afterSeq: number, limit: number): Promise<LogPage> {
    const prefix = saidPrefix(chat);
    const rows = await this.#state.list(prefix, { after: saidKey(chat, afterSeq), limit });
    const numbered = rows.map(({ key, value }) => ({
      seq: Number(key.slice(prefix.length)),
      value,
    }));
    const said = numbered.flatMap(({ seq, value }) =>
      parsed(saidSchema, value).map((one) => ({ ...one, seq })),
    );
    return { said, through: numbered.at(-1)?.seq ?? afterSeq };
  }

  async chats(limit: number): Promise<readonly DoorChat[]> {
    const rows = await this.#state.list(RECENT, { limit, newestFirst: true });
    const heads = await Promise.all(rows.map(({ value }) => this.#head(value)));
    return rows.flatMap(({ value: chat }, index) => {
      const head = heads[index];
      return head === undefined ? [] : [{ chat, ...head }];
    });
  }

  async #head(chat: string): Promise<Head | undefined> {
    const value = await this.#state.get(headKey(chat));
    return value === undefined ? undefined : parsed(headSchema, value)[0];
  }
}

/** What a chat of a page or terminal is called; undefined where it is none of theirs. */
export async function chatTitle(state: KeyValueStore, chat: string): Promise<string | undefined> {
  const value = await state.get(headKey(chat));
  return value === undefined ? undefined : parsed(headSchema, value)[0]?.title;
}

/** @throws DoorNameError for what is not safe in a key. */
export function checkNames(...names: readonly string[]): void {
  const wrong = names.find((name) => !DOOR_NAME.test(name));
  if (wrong === undefined) return;
  throw new DoorNameError('A chat or client id has 1 to 64 letters, digits, ".", "_" or "-".');
}

// The name of a chat in a list: the first words of what was said first.

const MAX_TITLE_CHARS = 60;
const ELLIPSIS = '…';
/** A list shows plain text: a notice may begin with something bold. */
const MARKED = /(\*\*|`)(\S.*?)\1/gu;

export function titleOf(text: string): string {
  const line = text.toWellFormed().replace(/\s+/gu, ' ').replace(MARKED, '$2').trim();
  if (line.length <= MAX_TITLE_CHARS) return line;
  const cut = headOf(line, MAX_TITLE_CHARS - 1);
  const border = cut.lastIndexOf(' ');
  const words = border > MAX_TITLE_CHARS / 2 ? cut.slice(0, border) : cut;
  return `${words}${ELLIPSIS}`;
}
