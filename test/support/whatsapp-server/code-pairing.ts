// The phone's side of pairing by an 8-character code: ephemeral keys wrapped under the code, and
// the key bundle that only the holder of the right code can have sealed.

import { createCipheriv, createDecipheriv, hkdfSync, pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { aesDecryptGCM, Curve, type KeyPair } from '@whiskeysockets/baileys';

const SALT_BYTES = 32;
const WRAP_IV_BYTES = 16;
const BUNDLE_IV_BYTES = 12;
const KEY_BYTES = 32;
const ROUNDS = 131_072;
const EMPTY = Buffer.alloc(0);

/** What went wrong as the phone says it to its person. */
export class WrongCode extends Error {
  constructor() {
    super('the phone could not link the device: the code is wrong');
    this.name = 'WrongCode';
  }
}

export type PhoneIdentity = { readonly public: Uint8Array; readonly private: Uint8Array };

export class CodePairing {
  readonly #ephemeral: KeyPair = Curve.generateKeyPair();
  readonly #identity: PhoneIdentity;
  readonly #companionEphemeral: Buffer;
  readonly #code: string;

  private constructor(identity: PhoneIdentity, code: string, companionEphemeral: Buffer) {
    this.#identity = identity;
    this.#code = code;
    this.#companionEphemeral = companionEphemeral;
  }

  /** @param wrapped the companion's ephemeral key: salt, IV and ciphertext. */
  static async begin(
    identity: PhoneIdentity,
    code: string,
    wrapped: Uint8Array,
  ): Promise<CodePairing> {
    const [salt, iv, sealed] = cut(wrapped, SALT_BYTES, WRAP_IV_BYTES);
    const cipher = createDecipheriv('aes-256-ctr', await keyOf(code, salt), iv);
    const ephemeral = Buffer.concat([cipher.update(sealed), cipher.final()]);
    return new CodePairing(identity, code, ephemeral);
  }

  /** The phone's ephemeral key for the companion. */
  async wrapped(): Promise<Uint8Array> {
    const salt = randomBytes(SALT_BYTES);
    const iv = randomBytes(WRAP_IV_BYTES);
    const cipher = createCipheriv('aes-256-ctr', await keyOf(this.#code, salt), iv);
    return Buffer.concat([salt, iv, cipher.update(this.#ephemeral.public), cipher.final()]);
  }

  /** @returns the secret that both sides now have. @throws WrongCode */
  advSecret(bundle: Uint8Array, companionIdentity: Uint8Array): Uint8Array {
    const shared = Curve.sharedKey(this.#ephemeral.private, this.#companionEphemeral);
    const [salt, iv, sealed] = cut(bundle, SALT_BYTES, BUNDLE_IV_BYTES);
    const opened = unseal(sealed, shared, salt, iv);
    const [theirs, ours, random] = cut(opened, KEY_BYTES, KEY_BYTES);
    if (!theirs.equals(companionIdentity)) throw new Error('the bundle names another device');
    if (!ours.equals(this.#identity.public)) throw new Error('the bundle names another phone');
    const identities = Curve.sharedKey(Buffer.from(this.#identity.private), companionIdentity);
    return derive(Buffer.concat([shared, identities, random]), EMPTY, 'adv_secret');
  }
}

function unseal(sealed: Uint8Array, shared: Uint8Array, salt: Uint8Array, iv: Uint8Array): Buffer {
  const key = derive(shared, salt, 'link_code_pairing_key_bundle_encryption_key');
  try {
    return aesDecryptGCM(sealed, key, iv, EMPTY);
  } catch {
    throw new WrongCode();
  }
}

function keyOf(code: string, salt: Uint8Array): Promise<Buffer> {
  return promisify(pbkdf2)(code, salt, ROUNDS, KEY_BYTES, 'sha256');
}

function derive(secret: Uint8Array, salt: Uint8Array, info: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, info, KEY_BYTES));
}

function cut(bytes: Uint8Array, first: number, second: number): readonly [Buffer, Buffer, Buffer] {
  const all = Buffer.from(bytes);
  const end = first + second;
  return [all.subarray(0, first), all.subarray(first, end), all.subarray(end)];
}
