// The server's side of Noise_XX_25519_AESGCM_SHA256 as WhatsApp uses it: the three handshake
// messages, then one cipher per direction. Frames and stanzas are the caller's.

import { createHash, hkdfSync } from 'node:crypto';
import {
  aesDecryptGCM,
  aesEncryptGCM,
  Curve,
  NOISE_MODE,
  NOISE_WA_HEADER,
  proto,
} from '@whiskeysockets/baileys';
import type { NoiseIdentity } from './certificate.ts';

const EMPTY = Buffer.alloc(0);
const KEY_BYTES = 32;
const IV_BYTES = 12;
const COUNTER_OFFSET = 8;

export type ClientHello = {
  /** What the client says of itself: a registration or a login. */
  readonly payload: proto.ClientPayload;
  /** The client's static key: the one the device was registered with, or is now. */
  readonly noiseKey: Uint8Array;
};

export class NoiseResponder {
  readonly #identity: NoiseIdentity;
  readonly #ephemeral = Curve.generateKeyPair();
  #hash: Buffer = Buffer.from(NOISE_MODE);
  #chainingKey: Buffer = this.#hash;
  #key: Buffer = this.#hash;
  #counter = 0;
  #outgoing: Cipher | undefined;
  #incoming: Cipher | undefined;

  constructor(identity: NoiseIdentity) {
    this.#identity = identity;
    this.#mixHash(NOISE_WA_HEADER);
  }

  /** Answers `clientHello` with `serverHello`. @throws where it is none */
  hello(frame: Uint8Array): Uint8Array {
    const { clientHello } = proto.HandshakeMessage.decode(frame);
    const theirs = required(clientHello?.ephemeral, 'clientHello.ephemeral');
    this.#mixHash(theirs);
    this.#mixHash(this.#ephemeral.public);
    this.#mixKey(Curve.sharedKey(this.#ephemeral.private, theirs));
    const sealedStatic = this.#encrypt(this.#identity.staticKey.public);
    this.#mixKey(Curve.sharedKey(this.#identity.staticKey.private, theirs));
    const payload = this.#encrypt(this.#identity.chain);
    return proto.HandshakeMessage.encode({
      serverHello: { ephemeral: this.#ephemeral.public, static: sealedStatic, payload },
    }).finish();
  }

  /** Takes `clientFinish`; transport keys hold from here on. @throws where it does not decrypt */
  finish(frame: Uint8Array): ClientHello {
    const { clientFinish } = proto.HandshakeMessage.decode(frame);
    const noiseKey = this.#decrypt(required(clientFinish?.static, 'clientFinish.static'));
    this.#mixKey(Curve.sharedKey(this.#ephemeral.private, noiseKey));
    const payload = this.#decrypt(required(clientFinish?.payload, 'clientFinish.payload'));
    const [fromClient, toClient] = expand(this.#chainingKey, EMPTY);
    this.#incoming = new Cipher(fromClient);
    this.#outgoing = new Cipher(toClient);
    return { payload: proto.ClientPayload.decode(payload), noiseKey };
  }

  seal(plaintext: Uint8Array): Buffer {
    if (this.#outgoing === undefined) throw new Error('the Noise handshake is not finished');
    return this.#outgoing.encrypt(plaintext);
  }

  open(ciphertext: Uint8Array): Buffer {
    if (this.#incoming === undefined) throw new Error('the Noise handshake is not finished');
    return this.#incoming.decrypt(ciphertext);
  }

  #encrypt(plaintext: Uint8Array): Buffer {
    const sealed = aesEncryptGCM(plaintext, this.#key, iv(this.#counter++), this.#hash);
    this.#mixHash(sealed);
    return sealed;
  }

  #decrypt(ciphertext: Uint8Array): Buffer {
    const opened = aesDecryptGCM(ciphertext, this.#key, iv(this.#counter++), this.#hash);
    this.#mixHash(ciphertext);
    return opened;
  }

  #mixHash(data: Uint8Array): void {
    this.#hash = createHash('sha256').update(this.#hash).update(data).digest();
  }

  #mixKey(secret: Uint8Array): void {
    const [chainingKey, key] = expand(this.#chainingKey, secret);
    this.#chainingKey = chainingKey;
    this.#key = key;
    this.#counter = 0;
  }
}

class Cipher {
  readonly #key: Buffer;
  #counter = 0;

  constructor(key: Buffer) {
    this.#key = key;
  }

  encrypt(plaintext: Uint8Array): Buffer {
    return aesEncryptGCM(plaintext, this.#key, iv(this.#counter++), EMPTY);
  }

  decrypt(ciphertext: Uint8Array): Buffer {
    return aesDecryptGCM(ciphertext, this.#key, iv(this.#counter++), EMPTY);
  }
}

function expand(salt: Buffer, secret: Uint8Array): readonly [Buffer, Buffer] {
  const bytes = Buffer.from(hkdfSync('sha256', secret, salt, EMPTY, 2 * KEY_BYTES));
  return [bytes.subarray(0, KEY_BYTES), bytes.subarray(KEY_BYTES)];
}

function iv(counter: number): Buffer {
  const bytes = Buffer.alloc(IV_BYTES);
  bytes.writeUInt32BE(counter, COUNTER_OFFSET);
  return bytes;
}

function required(bytes: Uint8Array | null | undefined, name: string): Uint8Array {
  if (bytes === undefined || bytes === null || bytes.length === 0) {
    throw new Error(`the handshake lacks ${name}`);
  }
  return bytes;
}
