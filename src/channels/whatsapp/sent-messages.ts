// Every message sent, stored before it leaves, to send it again under the same id after a crash and
// to answer phones that request it days later (case W06); and the server's acknowledgements: a
// message counts as sent only when its ack came.

import { hash } from 'node:crypto';
import { type BinaryNode, proto, type WASocket } from '@whiskeysockets/baileys';
import { z } from 'zod';
import type { KeyValueChange } from '../../kernel/bus/store/store.ts';
import { after, BACKOFF, NEVER, notSent, type Remedy } from '../../kernel/message/errors.ts';
import { type ChatId, chatId } from '../../kernel/message/ids.ts';
import { storedJson } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelHost } from '../channel.ts';

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

export type SentMessages = ReturnType<typeof createSentMessages>;

const PREFIX = 'sent/';
/** In the text of a row. */
const SENDING = '"state":"sending"';
const TAKEN = '"state":"taken"';
const DAY_MS = 86_400_000;
/** Phones request a message again for at least a week; a day more for differing clocks. */
const KEEP_MS = 8 * DAY_MS;
/** The form of WhatsApp Web's own ids, from which other clients infer the device. */
const ID_PREFIX = '3EB0';
const ID_DIGITS = 18;

/** The id under which this part of a message is sent, the same on every try. */
export function sentId(message: string, part: number | string): string {
  const digest = hash('sha256', `${message}\n${part}`);
  return ID_PREFIX + digest.slice(0, ID_DIGITS).toUpperCase();
}

export function createSentMessages({ state, clock }: Pick<ChannelHost, 'state' | 'clock'>) {
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
    /** Stores the message together with further rows in one transaction. */
    async store(
      id: string,
      message: SentMessage,
      rows: readonly KeyValueChange[] = [],
    ): Promise<void> {
      await expireDaily();
      await state.setMany([{ key: PREFIX + id, value: encode(message) }, ...rows]);
    },
    /** The server has it; unknown ids are ignored. */
    async taken(id: string): Promise<void> {
      const row = await state.get(PREFIX + id);
      const taken = row?.replace(SENDING, TAKEN);
      if (taken !== undefined && taken !== row) await state.set(PREFIX + id, taken);
    },
  };
}

function encode(sent: SentMessage): string {
  const bytes = proto.Message.encode(sent.message).finish();
  return JSON.stringify({ ...sent, message: Buffer.from(bytes).toString('base64') });
}

/** A damaged row counts as never sent: the retry has the same id, so that it shows once. */
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

// The server's acknowledgements of sent messages: a message counts as sent only when its ack came,
// and never because the library's call resolved (reference section 7.4). What a refusal means is
// decided here.

type Ack =
  | { readonly kind: 'taken' }
  /** `code` as the server sent it. */
  | { readonly kind: 'refused'; readonly code: string }
  /** The connection is lost; whether the message arrived is unknown. */
  | { readonly kind: 'lost' };

/** Where acks come from. */
type AckSource = Pick<WASocket, 'ws'>;

export type Acks = ReturnType<typeof createAcks>;

/** The server's answer to a message of ours. */
export const ACK_EVENT = 'CB:ack,class:message';

/** `onStray`: the server acknowledged a message that nothing waits for any more. */
export function createAcks(onStray: (id: string) => void) {
  const expected = new Map<AckSource, Map<string, (ack: Ack) => void>>();

  return {
    /** Listens on a new socket; disposed when its connection is over. */
    attach(socket: AckSource): Disposable {
      const waiting = new Map<string, (ack: Ack) => void>();
      expected.set(socket, waiting);
      const onAck = ({ attrs }: BinaryNode) => {
        const { id = '', error } = attrs;
        const ack: Ack = error === undefined ? { kind: 'taken' } : { kind: 'refused', code: error };
        const answer = waiting.get(id);
        if (answer !== undefined) answer(ack);
        else if (ack.kind === 'taken') onStray(id);
      };
      socket.ws.on(ACK_EVENT, onAck);
      return {
        [Symbol.dispose]() {
          socket.ws.off(ACK_EVENT, onAck);
          expected.delete(socket);
          for (const answer of waiting.values()) answer({ kind: 'lost' });
        },
      };
    },
    /** Call before the message is sent; dispose when the ack is no longer awaited. */
    expect(socket: AckSource, id: string) {
      const waiting = expected.get(socket);
      const { promise, resolve } = Promise.withResolvers<Ack>();
      if (waiting === undefined) resolve({ kind: 'lost' });
      else waiting.set(id, resolve);
      return { answer: promise, [Symbol.dispose]: () => void waiting?.delete(id) };
    },
  };
}

/** Temporary: timeout, conflict, stale device list, too early, too many, old counter. */
const PASSING: readonly number[] = [408, 409, 421, 425, 429, 496];
const TOO_MANY = 429;
/** Pause of the chat after a refusal for the sending rate. */
const REST_MS = 60_000;
/** The recipients' devices on the server differ from the known ones. */
export const STALE_DEVICES = '479';
/** Why a refusal is permanent, if the code has a known meaning. */
const REASONS: Readonly<Record<string, string>> = {
  '403': t`it is forbidden`,
  '404': t`there is no such WhatsApp account`,
  '463': t`the account may not write to people who did not write first`,
  [STALE_DEVICES]: t`the message has no valid recipient`,
};

export function refusal(code: string) {
  const reason = REASONS[code] ?? t`error ${code.slice(0, 16)}`;
  const message = t`WhatsApp refused the message: ${reason}`;
  return notSent(message, remedyFor(Number(code)), 'whatsapp_refused');
}

/** A retry changes nothing about the 400s; everything else is a failure of the server. */
function remedyFor(code: number): Remedy {
  if (code === TOO_MANY) return after(REST_MS);
  return code >= 400 && code < 500 && !PASSING.includes(code) ? NEVER : BACKOFF;
}
