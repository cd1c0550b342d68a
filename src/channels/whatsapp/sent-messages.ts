// Everything we sent, stored before it leaves: for sending it again under the same id after a crash,
// and for phones that ask for it again days later (case W06). Nothing of it is kept in memory.

import { createHash } from 'node:crypto';
import { proto } from '@whiskeysockets/baileys';
import { z } from 'zod';
import type { KeyValueChange, KeyValueStore } from '../../kernel/bus/store/store.ts';
import { type ChatId, chatId } from '../../kernel/message/ids.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { storedJson } from './stored-json.ts';

export type SentMessage = {
  readonly chat: ChatId;
  /** The address it was sent to. */
  readonly jid: string;
  /** Epoch milliseconds of the first try. */
  readonly at: number;
  /** `taken`: the server acknowledged it. */
  readonly state: 'sending' | 'taken';
  readonly message: proto.IMessage;
};

const rowSchema = z.object({
  chat: z.string(),
  jid: z.string(),
  at: z.number(),
  state: z.enum(['sending', 'taken']),
  /** The protobuf in base64. */
  message: z.string(),
});

export interface SentMessages {
  get(id: string): Promise<SentMessage | undefined>;
  /** Stores it, and further rows in the same transaction. */
  store(id: string, message: SentMessage, rows?: readonly KeyValueChange[]): Promise<void>;
  /** The server has it; unknown ids are ignored. */
  taken(id: string): Promise<void>;
}

const PREFIX = 'sent/';
const DAY_MS = 86_400_000;
/** Phones ask again for at least a week; a day more because of clocks. */
const KEEP_MS = 8 * DAY_MS;
/** The form of WhatsApp Web's own ids: by it other clients tell what device wrote. */
const ID_PREFIX = '3EB0';
const ID_DIGITS = 18;

/** The id under which this part of a message is sent, the same on every try. */
export function sentId(message: string, part: number | string): string {
  const digest = createHash('sha256').update(`${message}\n${part}`).digest('hex');
  return ID_PREFIX + digest.slice(0, ID_DIGITS).toUpperCase();
}

export function createSentMessages(deps: {
  readonly state: KeyValueStore;
  readonly clock: Clock;
}): SentMessages {
  const { state, clock } = deps;
  let expiredAt = Number.NEGATIVE_INFINITY;

  async function expireDaily(): Promise<void> {
    if (clock.monotonic() - expiredAt < DAY_MS) return;
    expiredAt = clock.monotonic();
    await state.expire(PREFIX, clock.now() - KEEP_MS);
  }

  async function get(id: string): Promise<SentMessage | undefined> {
    const value = await state.get(PREFIX + id);
    return value === undefined ? undefined : decode(value);
  }

  return {
    get,
    async store(id, message, rows = []) {
      await expireDaily();
      await state.setMany([{ key: PREFIX + id, value: encode(message) }, ...rows]);
    },
    async taken(id) {
      const message = await get(id);
      if (message === undefined || message.state === 'taken') return;
      await state.set(PREFIX + id, encode({ ...message, state: 'taken' }));
    },
  };
}

function encode(sent: SentMessage): string {
  const bytes = proto.Message.encode(sent.message).finish();
  return JSON.stringify({ ...sent, message: Buffer.from(bytes).toString('base64') });
}

/** A damaged one counts as never sent: sent again it has the same id, so that it shows once. */
function decode(value: string): SentMessage | undefined {
  const row = storedJson(rowSchema, value);
  if (row === undefined) return undefined;
  try {
    const message = proto.Message.decode(Buffer.from(row.message, 'base64'));
    return { ...row, chat: chatId(row.chat), message };
  } catch {
    return undefined;
  }
}
