// libsignal's functions for message keys, with keys that Node need not examine: it finds out by two
// exceptions that a key is bytes, which took a tenth of an account's processor time. What they
// compute is the same.

import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
} from 'node:crypto';
import libsignal from 'libsignal/src/crypto.js';

const CIPHER = 'aes-256-cbc';
const SECRET_BYTES = 32;
const MAX_SECRETS = 3;

const calculateMAC = (key: Buffer, data: Buffer): Buffer =>
  createHmac('sha256', createSecretKey(key)).update(data).digest();

const FUNCTIONS: typeof libsignal = {
  calculateMAC,
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

/** For this process; may be called again. */
export function useSecretKeys(): void {
  Object.assign(libsignal, FUNCTIONS);
}
