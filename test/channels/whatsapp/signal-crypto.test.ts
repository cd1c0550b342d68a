// Our functions for libsignal's message keys against its own.

import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import libsignal from 'libsignal/src/crypto.js';
import { expect, it } from 'vitest';
import { useSecretKeys } from '../../../src/channels/whatsapp/signal-crypto.ts';

/** A second copy: files of tests share their modules. */
function ownFunctions(): typeof libsignal {
  const require = createRequire(import.meta.url);
  const path = require.resolve('libsignal/src/crypto.js');
  const { [path]: shared } = require.cache;
  delete require.cache[path];
  const own = require(path);
  require.cache[path] = shared;
  return own;
}

/** What each function makes of the same random bytes, also of none. */
function results(functions: typeof libsignal, sample: (bytes: number) => Buffer) {
  const [key, iv] = [sample(32), sample(16)];
  return [0, 1, 32, 500].map((length) => {
    const data = sample(length);
    const sealed = functions.encrypt(key, data, iv);
    return {
      sealed,
      opened: functions.decrypt(key, sealed, iv).equals(data),
      mac: functions.calculateMAC(key, data),
      secrets: [undefined, 1, 2].map((chunks) =>
        functions.deriveSecrets(key, sample(32), data, chunks),
      ),
    };
  });
}

it('computes what libsignal computes, and refuses what was changed on the way', () => {
  const bytes = randomBytes(5000);
  const from = () => {
    let at = 0;
    return (length: number) => {
      at += length;
      return bytes.subarray(at - length, at);
    };
  };
  const own = ownFunctions();
  const expected = results(own, from());
  useSecretKeys();
  expect(libsignal.calculateMAC).not.toBe(own.calculateMAC);
  expect(results(libsignal, from())).toEqual(expected);
  expect(() =>
    libsignal.decrypt(bytes.subarray(0, 32), bytes.subarray(0, 15), bytes.subarray(0, 16)),
  ).toThrow();
});
