// libsignal's functions for message keys and key agreement, with keys that Node need not examine: it
// finds out by two exceptions that a key is bytes, and reads one written as bytes three times as
// slowly as one written as text. What they compute is the same.

import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import libsignal from 'libsignal/src/crypto.js';
import curve from 'libsignal/src/curve.js';
import { RecentMap } from '../../lib/async.ts';

const CIPHER = 'aes-256-cbc';
const SECRET_BYTES = 32;
const MAX_SECRETS = 3;

const calculateMAC = (key: Buffer, data: Buffer): Buffer =>
  createHmac('sha256', createSecretKey(key)).update(data).digest();

const FUNCTIONS: typeof libsignal = {
  calculateMAC,
  verifyMAC(data, key, mac, length) {
    const expected = calculateMAC(key, data).subarray(0, length);
    if (mac.length !== length) throw new Error('Bad MAC length');
    if (!mac.equals(expected)) throw new Error('Bad MAC');
  },
  deriveSecrets(input, salt, info, chunks = MAX_SECRETS) {
    const all = hkdfSync('sha256', createSecretKey(input), salt, info, chunks * SECRET_BYTES);
    return Array.from({ length: chunks }, (_, nth) =>
      Buffer.from(all, nth * SECRET_BYTES, SECRET_BYTES),
    );
  },
  encrypt(key, data, iv) {
    const cipher = createCipheriv(CIPHER, createSecretKey(key), iv);
    return Buffer.concat([cipher.update(data), cipher.final()]);
  },
  decrypt(key, data, iv) {
    const decipher = createDecipheriv(CIPHER, createSecretKey(key), iv);
    return Buffer.concat([decipher.update(data), decipher.final()]);
  },
};

/** What comes before the 32 bytes of an X25519 key. */
const PRIVATE_KEY = Buffer.from('302e020100300506032b656e04220420', 'hex');
const PUBLIC_KEY = Buffer.from('302a300506032b656e032100', 'hex');
/** In Signal's form of a public key. */
const KEY_TYPE = 5;
const KEY_BYTES = 32;
/** Own keys that were made last: each is used for the next message to and the next from a person. */
const MAX_KEPT = 200;

/** Keeps the key objects of own keys it made; other own keys are read from their bytes. */
function createAgreement(): typeof curve {
  const made = new RecentMap<string, KeyObject>(MAX_KEPT);
  return {
    generateKeyPair() {
      const { privateKey } = generateKeyPairSync('x25519');
      const { d = '', x = '' } = privateKey.export({ format: 'jwk' });
      const privKey = Buffer.from(d, 'base64url');
      made.set(nameOf(privKey), privateKey);
      return { privKey, pubKey: Buffer.concat([Buffer.of(KEY_TYPE), Buffer.from(x, 'base64url')]) };
    },
    calculateAgreement(pubKey, privKey) {
      const isTyped = pubKey.byteLength === KEY_BYTES + 1 && pubKey[0] === KEY_TYPE;
      const bytes = isTyped ? pubKey.subarray(1) : pubKey;
      if (bytes.byteLength !== KEY_BYTES) throw new Error('Invalid public key');
      return diffieHellman({
        privateKey:
          made.get(nameOf(privKey)) ?? createPrivateKey(pem('PRIVATE', PRIVATE_KEY, privKey)),
        publicKey: createPublicKey(pem('PUBLIC', PUBLIC_KEY, bytes)),
      });
    },
  };
}

const nameOf = (privateKey: Buffer) => privateKey.toString('latin1');

const pem = (kind: string, before: Buffer, key: Buffer) =>
  `-----BEGIN ${kind} KEY-----\n${Buffer.concat([before, key]).toString('base64')}\n-----END ${kind} KEY-----`;

/** Replaces libsignal's functions in this process; may be called again. */
export function useKeyObjects(): void {
  Object.assign(libsignal, FUNCTIONS);
  Object.assign(curve, createAgreement());
}
