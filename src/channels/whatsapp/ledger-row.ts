// One waiting message as text. The message stays in the bytes it came in, so that a later version
// reads what this one could not.

import { proto } from '@whiskeysockets/baileys';
import type { Envelope, MessageKey } from './envelope.ts';
import { messageOf } from './user-content.ts';

export const INBOX_PREFIX = 'inbox/';
const VERSION = 1;
const ARRIVAL_DIGITS = 15;

export type LedgerRow = {
  /** Key of the row; sorts by arrival. */
  readonly arrival: string;
  readonly key: MessageKey;
  /** By the server, epoch milliseconds. */
  readonly sentAt: number;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
  readonly pushName?: string;
  /** As Baileys gives it out: what the owner's other device sent is unwrapped. */
  readonly message: proto.IMessage;
};

export function arrivalKey(number: number): string {
  return INBOX_PREFIX + String(number).padStart(ARRIVAL_DIGITS, '0');
}

/** 0 for a key that is none. */
export function arrivalNumber(key: string): number {
  return Number.parseInt(key.slice(INBOX_PREFIX.length), 10) || 0;
}

export function encodeRow(envelope: Envelope, receivedAt: number, message: Uint8Array): string {
  const { key, sentAt = receivedAt, pushName } = envelope;
  const bytes = Buffer.from(message).toString('base64');
  return JSON.stringify({ v: VERSION, key, sentAt, receivedAt, pushName, message: bytes });
}

/** undefined where the row cannot be read. */
export function decodeRow(arrival: string, value: string): LedgerRow | undefined {
  try {
    const { v, key, sentAt, receivedAt, pushName, message } = JSON.parse(value);
    const isWhole =
      v === VERSION &&
      typeof key.id === 'string' &&
      typeof key.remoteJid === 'string' &&
      typeof key.fromMe === 'boolean' &&
      Number.isFinite(sentAt) &&
      Number.isFinite(receivedAt) &&
      typeof message === 'string';
    if (!isWhole) return undefined;
    return {
      arrival,
      key,
      sentAt,
      receivedAt,
      ...(typeof pushName === 'string' ? { pushName } : {}),
      message: messageOf(proto.Message.decode(Buffer.from(message, 'base64'))),
    };
  } catch {
    return undefined;
  }
}
