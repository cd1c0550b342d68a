// What Baileys uses of whatsapp-rust-bridge, with Node's own functions, for the bundle.

import { createHash, createSecretKey, hkdfSync } from 'node:crypto';

type Expansion = { readonly salt?: Uint8Array; readonly info?: string };

export const md5 = (data: Uint8Array): Uint8Array => createHash('md5').update(data).digest();

export function hkdf(key: Uint8Array, length: number, { salt, info }: Expansion): Uint8Array {
  // With bytes Node catches two exceptions first.
  const given = createSecretKey(key);
  return Buffer.from(hkdfSync('sha256', given, salt ?? Buffer.alloc(0), info ?? '', length));
}

const APP_STATE_KEYS = 'WhatsApp Mutation Keys';
const KEY_BYTES = 32;

/** The keys of the settings that an account's devices share. */
export function expandAppStateKeys(key: Uint8Array) {
  const all = hkdf(key, 5 * KEY_BYTES, { info: APP_STATE_KEYS });
  const nth = (index: number) => all.subarray(index * KEY_BYTES, (index + 1) * KEY_BYTES);
  return {
    indexKey: nth(0),
    valueEncryptionKey: nth(1),
    valueMacKey: nth(2),
    snapshotMacKey: nth(3),
    patchMacKey: nth(4),
  };
}

const HASH_INFO = 'WhatsApp Patch Integrity';

/** A hash of a set: 64 numbers of 16 bits, to which those of each member are added. */
export class LTHashAntiTampering {
  subtractThenAdd(
    base: Uint8Array,
    subtracted: readonly Uint8Array[],
    added: readonly Uint8Array[],
  ): Uint8Array {
    const result = Buffer.from(base);
    const apply = (member: Uint8Array, sign: 1 | -1) => {
      const term = Buffer.from(hkdf(member, result.length, { info: HASH_INFO }));
      for (let at = 0; at < result.length; at += 2) {
        const sum = result.readUInt16LE(at) + sign * term.readUInt16LE(at);
        result.writeUInt16LE(sum & 0xffff, at);
      }
    };
    for (const member of subtracted) apply(member, -1);
    for (const member of added) apply(member, 1);
    return result;
  }
}
