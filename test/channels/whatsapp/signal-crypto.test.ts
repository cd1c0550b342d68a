// Our functions for libsignal's message keys and key agreement against its own.

import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import libsignal from 'libsignal/src/crypto.js';
import curve from 'libsignal/src/curve.js';
import { expect, it } from 'vitest';
import { useKeyObjects } from '../../../src/channels/whatsapp/signal-crypto.ts';

/** A second copy: files of tests share their modules. */
function ownFunctions<T>(module: string): T {
  const require = createRequire(import.meta.url);
  const path = require.resolve(module);
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
  const own = ownFunctions<typeof libsignal>('libsignal/src/crypto.js');
  const expected = results(own, from());
  useKeyObjects();
  expect(libsignal.calculateMAC).not.toBe(own.calculateMAC);
  expect(results(libsignal, from())).toEqual(expected);
  const [key, data] = [bytes.subarray(0, 32), bytes.subarray(32, 100)];
  const mac = own.calculateMAC(key, data).subarray(0, 8);
  libsignal.verifyMAC(data, key, mac, 8);
  for (const functions of [own, libsignal]) {
    expect(() => functions.verifyMAC(key, key, mac, 8)).toThrow('Bad MAC');
    expect(() => functions.verifyMAC(data, key, mac.subarray(1), 8)).toThrow('Bad MAC length');
  }
  expect(() =>
    libsignal.decrypt(bytes.subarray(0, 32), bytes.subarray(0, 15), bytes.subarray(0, 16)),
  ).toThrow();
});

it('agrees with libsignal, with keys of both and with keys it made before a restart', () => {
  const own = ownFunctions<typeof curve>('libsignal/src/curve.js');
  useKeyObjects();
  expect(curve.calculateAgreement).not.toBe(own.calculateAgreement);
  const [ours, theirs] = [curve.generateKeyPair(), own.generateKeyPair()];
  const secret = own.calculateAgreement(ours.pubKey, theirs.privKey);
  expect(curve.calculateAgreement(theirs.pubKey, ours.privKey)).toEqual(secret);
  expect(own.calculateAgreement(theirs.pubKey, ours.privKey)).toEqual(secret);
  useKeyObjects();
  expect(curve.calculateAgreement(theirs.pubKey, ours.privKey)).toEqual(secret);
  expect(curve.calculateAgreement(ours.pubKey.subarray(1), theirs.privKey)).toEqual(secret);
  const wrong = [
    Buffer.alloc(0),
    Buffer.alloc(31),
    Buffer.concat([Buffer.of(6), Buffer.alloc(32)]),
  ];
  for (const key of wrong) expect(() => curve.calculateAgreement(key, ours.privKey)).toThrow();
  expect(() => curve.calculateAgreement(theirs.pubKey, Buffer.alloc(31))).toThrow();
});
