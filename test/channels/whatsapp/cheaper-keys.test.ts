// Keys of bytes mean the same to Node, in whatever form they reach it.

import crypto, { createHmac } from 'node:crypto';
import { createRequire } from 'node:module';
import { expect, it } from 'vitest';
import { cheaperKeys } from '../../../src/channels/whatsapp/transport.ts';

const curve: {
  calculateAgreement(pubKey: Buffer, privKey: Buffer): Buffer;
  generateKeyPair(): { readonly pubKey: Buffer; readonly privKey: Buffer };
} = createRequire(import.meta.url)('libsignal/src/curve.js');

const key = crypto.randomBytes(32);
const text = Buffer.from('oats');

function results(pubKey: Buffer, privKey: Buffer) {
  const cipher = crypto.createCipheriv('aes-256-cbc', key, Buffer.alloc(16));
  return [
    createHmac('sha256', key).update(text).digest('hex'),
    createHmac('sha256', 'text').update(text).digest('hex'),
    createHmac('sha256', Buffer.alloc(0)).update(text).digest('hex'),
    cipher.update(text, undefined, 'hex') + cipher.final('hex'),
    curve.calculateAgreement(pubKey, privKey).toString('hex'),
  ];
}

it('computes the same, and leaves Node as it was', () => {
  const { pubKey } = curve.generateKeyPair();
  const { privKey } = curve.generateKeyPair();
  const original = crypto.createPrivateKey;
  const expected = results(pubKey, privKey);
  {
    using _keys = cheaperKeys();
    expect(crypto.createPrivateKey).not.toBe(original);
    expect(results(pubKey, privKey)).toEqual(expected);
  }
  expect(crypto.createPrivateKey).toBe(original);
});
