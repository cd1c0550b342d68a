// The durable inbound rows: messages of people, stored together with the ratchet that decrypted
// them, until they are handed over. A plaintext is matched to its stanza by the ciphertext's
// buffer. The inbox decides who may write and what is a duplicate.

import { type BinaryNode, proto, unpadRandomMax16 } from '@whiskeysockets/baileys';
import type { KeyValueEntry } from '../../kernel/bus/store/store.ts';
import { BACKOFF, ChannelError } from '../../kernel/message/errors.ts';
import { createChange } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelHost } from '../channel.ts';
import {
  ciphertextsOf,
  type Envelope,
  envelopeOf,
  isPublicPost,
  isUserContent,
  type MessageKey,
  messageOf,
  type OwnIds,
  resentByPhone,
} from './content.ts';

const DAMAGED_PREFIX = 'inbox-damaged/';
/** The highest arrival number that was handed over: numbers continue after it at a restart. */
const HANDED_OVER = 'inbox-handed-over';

/** A part of a stanza to be decrypted: its envelope, and its place among all arrivals. */
type Seen = { readonly envelope: Envelope; readonly arrival: number };

type LedgerDeps = Pick<ChannelHost, 'state' | 'clock' | 'log'> & {
  /** The linked account's own addresses. */
  readonly own: () => OwnIds | undefined;
};

export async function openLedger(deps: LedgerDeps): Promise<Ledger> {
  const [newest] = await deps.state.list(INBOX_PREFIX, { limit: 1, newestFirst: true });
  const handedOver = (await deps.state.get(HANDED_OVER)) ?? '';
  return new Ledger(deps, { newest: newest?.key ?? '', handedOver });
}

export class Ledger {
  readonly #deps: LedgerDeps;
  readonly #seen = new WeakMap<Uint8Array, Seen>();
  /** Not decrypted yet, oldest first, with the monotonic time of arrival. */
  readonly #pending = new Map<Uint8Array, number>();
  #progressAt = 0;
  #lastArrival: number;
  #highestHandedOver: string;
  #hasNew = false;
  readonly #arrived = createChange();

  constructor(
    deps: LedgerDeps,
    { newest, handedOver }: { readonly newest: string; readonly handedOver: string },
  ) {
    this.#deps = deps;
    this.#lastArrival = Math.max(arrivalNumber(newest), arrivalNumber(handedOver));
    this.#highestHandedOver = handedOver;
  }

  /** Records whose ciphertext this stanza carries; called before Baileys handles it. */
  observe(stanza: BinaryNode): void {
    const own = this.#deps.own();
    const envelope = own === undefined ? undefined : envelopeOf(stanza, own);
    if (envelope === undefined) return;
    for (const ciphertext of ciphertextsOf(stanza)) {
      // Counted here because the library reorders, e.g. while it moves a session to a LID.
      this.#seen.set(ciphertext, { envelope, arrival: this.#nextArrival() });
      this.#pending.set(ciphertext, this.#deps.clock.monotonic());
    }
  }

  /**
   * The rows that store this plaintext; none if it is no user content. For the session repository,
   * inside its unit of work.
   * @throws ChannelError if the stanza was not observed, so that the message has no known author
   */
  rowsFor(ciphertext: Uint8Array, plaintext: Uint8Array): readonly KeyValueEntry[] {
    const seen = this.#seen.get(ciphertext);
    if (seen === undefined) {
      const problem = t`A WhatsApp message was decrypted of which no stanza was seen.`;
      throw new ChannelError('whatsapp_unattributed', problem, { remedy: BACKOFF });
    }
    const read = decoded(plaintext);
    if (read === undefined) {
      this.#deps.log.warn('decrypted WhatsApp message without readable content');
      return [];
    }
    const { envelope, arrival } = seen;
    const contents = resentByPhone(envelope, read.message) ?? [{ envelope, ...read }];
    return contents
      .filter((one) => !isPublicPost(one.envelope) && isUserContent(one.message))
      .map((one, index) => this.#rowOf(one, index === 0 ? arrival : this.#nextArrival()));
  }

  /** Called when rows became durable. */
  stored(): void {
    this.#hasNew = true;
    this.#arrived.notify();
  }

  /** This ciphertext was decrypted, or refused permanently. */
  settled(ciphertext: Uint8Array): void {
    this.#pending.delete(ciphertext);
    this.#progressAt = this.#deps.clock.monotonic();
  }

  /** Waiting rows in arrival order; `behind`: only those after the row with this key. */
  async list(limit: number, behind = ''): Promise<readonly LedgerRow[]> {
    const rows: LedgerRow[] = [];
    const damaged: KeyValueEntry[] = [];
    for (let after = behind; rows.length < limit; ) {
      const wanted = limit - rows.length;
      const entries = await this.#deps.state.list(INBOX_PREFIX, { limit: wanted, after });
      for (const entry of entries) {
        const row = decodeRow(entry.key, entry.value);
        if (row === undefined) damaged.push(entry);
        else rows.push(row);
      }
      after = entries.at(-1)?.key ?? '';
      if (entries.length < wanted) break;
    }
    if (damaged.length > 0) await this.#setAside(damaged);
    return rows;
  }

  async remove(arrivals: readonly string[]): Promise<void> {
    await this.#takeOut(arrivals, []);
  }

  /** Resolves when a row was stored since the last call. @throws the signal's reason */
  async arrival(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (!this.#hasNew) await this.#arrived.next(signal);
    this.#hasNew = false;
  }

  /** While message stanzas wait to be decrypted: milliseconds without progress. */
  stalledMs(): number | undefined {
    const [oldest] = this.#pending.values();
    if (oldest === undefined) return undefined;
    return this.#deps.clock.monotonic() - Math.max(oldest, this.#progressAt);
  }

  /** The connection ended: stanzas that are not decrypted yet will be sent again. */
  disconnected(): void {
    this.#pending.clear();
  }

  #nextArrival(): number {
    this.#lastArrival += 1;
    return this.#lastArrival;
  }

  #rowOf(
    { envelope, bytes }: { readonly envelope: Envelope; readonly bytes: Uint8Array },
    arrival: number,
  ): KeyValueEntry {
    return { key: arrivalKey(arrival), value: encodeRow(envelope, this.#deps.clock.now(), bytes) };
  }

  async #setAside(damaged: readonly KeyValueEntry[]): Promise<void> {
    this.#deps.log.error('stored WhatsApp messages not readable', { count: damaged.length });
    const keys = damaged.map(({ key }) => key);
    const moved = damaged.map(({ key, value }) => {
      return { key: DAMAGED_PREFIX + key.slice(INBOX_PREFIX.length), value };
    });
    await this.#takeOut(keys, moved);
  }

  /** Removes rows from the ledger; their numbers are never reused. */
  async #takeOut(keys: readonly string[], moved: readonly KeyValueEntry[]): Promise<void> {
    if (keys.length === 0) return;
    for (const key of keys) if (key > this.#highestHandedOver) this.#highestHandedOver = key;
    const deleted = keys.map((key) => ({ key, value: undefined }));
    const mark = { key: HANDED_OVER, value: this.#highestHandedOver };
    await this.#deps.state.setMany([...deleted, ...moved, mark]);
  }
}

/** Undefined if the plaintext holds no message. */
function decoded(plaintext: Uint8Array) {
  try {
    const bytes = unpadRandomMax16(plaintext);
    return { bytes, message: proto.Message.decode(bytes) };
  } catch {
    return undefined;
  }
}

// One waiting message as text. The message stays in its original bytes, so that a later version can
// read what this one could not.

const INBOX_PREFIX = 'inbox/';
const VERSION = 1;
const ARRIVAL_DIGITS = 15;

export type LedgerRow = {
  /** Key of the row; sorts by arrival. */
  readonly arrival: string;
  readonly key: MessageKey;
  /** The server's time, epoch milliseconds. */
  readonly sentAt: number;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
  readonly pushName?: string;
  /** As Baileys returns it: messages from the owner's other device are unwrapped. */
  readonly message: proto.IMessage;
};

export function arrivalKey(number: number): string {
  return INBOX_PREFIX + String(number).padStart(ARRIVAL_DIGITS, '0');
}

/** 0 for an invalid key. */
function arrivalNumber(key: string): number {
  return Number.parseInt(key.slice(INBOX_PREFIX.length), 10) || 0;
}

export function encodeRow(envelope: Envelope, receivedAt: number, message: Uint8Array): string {
  const { key, sentAt = receivedAt, pushName } = envelope;
  const bytes = Buffer.from(message).toString('base64');
  return JSON.stringify({ v: VERSION, key, sentAt, receivedAt, pushName, message: bytes });
}

/** Undefined if the row cannot be read. */
function decodeRow(arrival: string, value: string): LedgerRow | undefined {
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
