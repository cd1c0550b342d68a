// What was said in a door's chats, in rows of the channel's state. Appending is idempotent by message
// id; callers keep to one writer per chat. An intent is a message on its way to the bus: it becomes
// part of the log in the transaction that removes it.

import { z } from 'zod';
import { ATTACHMENT_KINDS } from '../../core/attachment.ts';
import type { MessageId } from '../../core/ids.ts';
import { mediaId, messageId } from '../../core/ids.ts';
import type { Choice } from '../../core/message.ts';
import type { KeyValueStore } from '../../store/store.ts';
import type { DoorChat, DoorFile } from '../door.ts';
import { titleOf } from './title.ts';

export type Said = {
  readonly id: MessageId;
  readonly from: 'person' | 'agent';
  readonly replyTo?: MessageId;
  readonly text: string;
  readonly choices?: readonly Choice[];
  readonly press?: string;
  readonly files?: readonly DoorFile[];
  readonly takesAway?: MessageId;
  /** Epoch milliseconds. */
  readonly at: number;
};

export type LogPage = {
  readonly said: readonly (Said & { readonly seq: number })[];
  readonly through: number;
};

/** A person's message that the bus may or may not have. */
export type Intent = {
  readonly id: MessageId;
  readonly chat: string;
  readonly text: string;
  readonly press?: string;
  readonly files?: readonly DoorFile[];
  readonly at: number;
};

const idSchema = z.string().transform(messageId);
const doorFileSchema = z.object({
  media: z.string().transform(mediaId),
  name: z.string(),
  kind: z.enum(ATTACHMENT_KINDS),
  mimeType: z.string(),
  sizeBytes: z.number(),
});
const saidSchema = z.object({
  id: idSchema,
  from: z.enum(['person', 'agent']),
  replyTo: idSchema.exactOptional(),
  text: z.string(),
  choices: z.array(z.object({ label: z.string(), token: z.string() })).exactOptional(),
  press: z.string().exactOptional(),
  files: z.array(doorFileSchema).exactOptional(),
  takesAway: idSchema.exactOptional(),
  at: z.number(),
});
const intentSchema = z.object({
  id: idSchema,
  chat: z.string(),
  text: z.string(),
  press: z.string().exactOptional(),
  files: z.array(doorFileSchema).exactOptional(),
  at: z.number(),
});
const headSchema = z.object({ title: z.string(), updatedAt: z.number(), lastSeq: z.number() });
type Head = z.infer<typeof headSchema>;

/** Digits of a number in a key, so that key order is number order. */
const KEY_DIGITS = 16;
const INTENTS = 'intent/';
const RECENT = 'recent/';

const inKey = (value: number) => String(value).padStart(KEY_DIGITS, '0');
const goneId = (id: MessageId) => messageId(`${id}/gone`);
const headKey = (chat: string) => `chat/${chat}`;
const saidPrefix = (chat: string) => `said/${chat}/`;
const saidKey = (chat: string, seq: number) => `${saidPrefix(chat)}${inKey(seq)}`;
const idKey = (chat: string, id: MessageId) => `id/${chat}/${id}`;
const intentKey = ({ chat, id }: Pick<Intent, 'chat' | 'id'>) => `${INTENTS}${chat}/${id}`;
const recentKey = (chat: string, at: number) => `${RECENT}${inKey(at)}/${chat}`;

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

  /** The message's number in the chat; a known message keeps the one it has. */
  async append(chat: string, said: Said): Promise<number> {
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
      title: head?.title ?? titleOf(said.text || (said.files?.[0]?.name ?? '')),
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
    ]);
    return seq;
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

/** One value or none, for flatMap. */
function parsed<T>(schema: z.ZodType<T>, text: string): readonly T[] {
  const result = z.string().transform(parseJson).pipe(schema).safeParse(text);
  return result.success ? [result.data] : [];
}

function parseJson(text: string, context: z.RefinementCtx): unknown {
  try {
    return JSON.parse(text);
  } catch {
    context.addIssue({ code: 'custom', message: 'no JSON' });
    return z.NEVER;
  }
}
