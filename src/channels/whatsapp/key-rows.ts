// Signal keys as rows of text, one row each. A row that cannot be read any more is remembered and
// said once; most kinds are then treated as missing, because the protocol replaces them by itself.

import {
  BufferJSON,
  proto,
  type SignalDataSet,
  type SignalDataTypeMap,
} from '@whiskeysockets/baileys';
import { ChannelError, NEVER } from '../../core/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import type { KeyValueChange } from '../../store/store.ts';
import { seal, unseal } from './sealed-row.ts';

export const KEY_PREFIX = 'key/';
export const PRE_KEY_PREFIX = `${KEY_PREFIX}pre-key/`;
/** Wide enough for the three bytes a pre-key id has: rows sort by number. */
const PRE_KEY_ID_DIGITS = 8;

/** What the library's JSON writes where bytes were. */
const BYTES = '"type":"Buffer"';

export type KeyType = keyof SignalDataTypeMap;

export function keyRow(type: KeyType, id: string): string {
  if (type === 'pre-key') return PRE_KEY_PREFIX + id.padStart(PRE_KEY_ID_DIGITS, '0');
  return `${KEY_PREFIX}${type}/${id}`;
}

/** The id of a pre-key's row. */
export function preKeyIdOf(row: string): number {
  return Number(row.slice(PRE_KEY_PREFIX.length));
}

export function encodeKey<T extends KeyType>(
  type: T,
  id: string,
  value: SignalDataTypeMap[T],
): string {
  return seal(keyRow(type, id), JSON.stringify(value, BufferJSON.replacer));
}

export class KeyRows {
  readonly #log: Logger;
  readonly #damaged = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Rows that were found unreadable and not written anew since. */
  get damaged(): number {
    return this.#damaged.size;
  }

  /** What Baileys wants stored, as rows; null deletes. */
  encode(data: SignalDataSet): readonly KeyValueChange[] {
    const rows: KeyValueChange[] = [];
    for (const [type, values] of Object.entries(data) as [KeyType, SignalDataSet[KeyType]][]) {
      for (const [id, value] of Object.entries(values ?? {})) {
        const key = keyRow(type, id);
        this.#damaged.delete(key);
        rows.push({ key, value: value == null ? undefined : encodeKey(type, id, value) });
      }
    }
    return rows;
  }

  /**
   * The key in a stored row; undefined where it is damaged: a session, sender key, pre-key or device
   * list that is missing is asked for again.
   * @throws ChannelError for damaged app state keys, which only the phone could send again.
   */
  decode<T extends KeyType>(type: T, id: string, stored: string): SignalDataTypeMap[T] | undefined {
    const value = parse(unseal(keyRow(type, id), stored));
    if (value === undefined) {
      this.#noteDamage(type, id);
      return undefined;
    }
    if (type !== 'app-state-sync-key') return value as SignalDataTypeMap[T];
    const key: SignalDataTypeMap[KeyType] = proto.Message.AppStateSyncKeyData.fromObject(value);
    return key as SignalDataTypeMap[T];
  }

  forget(): void {
    this.#damaged.clear();
  }

  #noteDamage(type: KeyType, id: string): void {
    const key = keyRow(type, id);
    if (!this.#damaged.has(key)) {
      this.#damaged.add(key);
      // Some are named after a phone number.
      const shortId = id.replace(/\d+(?=\d{4})/g, '…');
      this.#log.error('a stored WhatsApp key cannot be read', { type, id: shortId });
    }
    if (type !== 'app-state-sync-key') return;
    const problem = 'A stored key of the WhatsApp account cannot be read.';
    throw new ChannelError('whatsapp_key_damaged', problem, { remedy: NEVER });
  }
}

function parse(text: string | undefined): Record<string, unknown> | undefined {
  if (text === undefined) return undefined;
  try {
    // Sessions are text throughout; looking for bytes in them costs more than decrypting.
    return JSON.parse(text, text.includes(BYTES) ? BufferJSON.reviver : undefined);
  } catch {
    return undefined;
  }
}
