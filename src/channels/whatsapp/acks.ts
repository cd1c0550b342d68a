// The server's word on what we sent: a message counts as sent only when its ack came, and never
// because the library's call resolved (reference section 7.4). What a refusal means is decided here.

import type { BinaryNode, WASocket } from '@whiskeysockets/baileys';
import { after, BACKOFF, DeliveryError, NEVER, type Remedy } from '../../kernel/message/errors.ts';

type Ack =
  | { readonly kind: 'taken' }
  /** `code` as the server wrote it. */
  | { readonly kind: 'refused'; readonly code: string }
  /** The connection is gone; whether the message arrived is not known. */
  | { readonly kind: 'lost' };

/** Where acks come from. */
export type AckSource = Pick<WASocket, 'ws'>;

export interface Acks {
  /** Listens on a new socket; disposed when its connection is over. */
  attach(socket: AckSource): Disposable;
  /** To be called before the message is sent; disposed when nobody waits any more. */
  expect(socket: AckSource, id: string): Disposable & { readonly answer: Promise<Ack> };
}

/** The server's answer to a message of ours. */
export const ACK_EVENT = 'CB:ack,class:message';

/** `onStray`: the server took a message for which nobody waited any more. */
export function createAcks(onStray: (id: string) => void): Acks {
  const expected = new Map<AckSource, Map<string, (ack: Ack) => void>>();

  return {
    attach(socket) {
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
    expect(socket, id) {
      const waiting = expected.get(socket);
      const { promise, resolve } = Promise.withResolvers<Ack>();
      if (waiting === undefined) resolve({ kind: 'lost' });
      else waiting.set(id, resolve);
      return { answer: promise, [Symbol.dispose]: () => void waiting?.delete(id) };
    },
  };
}

/** Of the 400s those that pass: timeout, conflict, stale device list, too early, too many, old counter. */
const PASSING: readonly number[] = [408, 409, 421, 425, 429, 496];
const TOO_MANY = 429;
/** After a complaint about our pace the chat rests. */
const REST_MS = 60_000;
/** The server's devices of those who would get the message are not the ones we know. */
export const STALE_DEVICES = '479';
/** Why a refusal is for good, where the code says more than its number. */
const REASONS: Readonly<Record<string, string>> = {
  '403': 'it is forbidden',
  '404': 'there is no such WhatsApp account',
  '463': 'the account may not write to people who did not write first',
  [STALE_DEVICES]: 'the message has no valid recipient',
};

export function refusal(code: string): DeliveryError {
  const reason = REASONS[code] ?? `error ${code.slice(0, 16)}`;
  return new DeliveryError(`WhatsApp refused the message: ${reason}`, {
    certainty: 'not_sent',
    remedy: remedyFor(Number(code)),
    code: 'whatsapp_refused',
  });
}

/** A repetition changes nothing about the 400s; everything else is the server's own trouble. */
function remedyFor(code: number): Remedy {
  if (code === TOO_MANY) return after(REST_MS);
  return code >= 400 && code < 500 && !PASSING.includes(code) ? NEVER : BACKOFF;
}
