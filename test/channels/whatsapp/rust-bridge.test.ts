// What the bundle has in place of whatsapp-rust-bridge computes the same.

import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import * as vendor from 'whatsapp-rust-bridge';
import * as ours from '../../../scripts/rust-bridge.ts';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const some = (count: number) => Array.from({ length: count }, () => randomBytes(32));

it('hashes and derives keys', () => {
  const key = randomBytes(40);
  for (const how of [{ info: 'WhatsApp Image Keys' }, { salt: randomBytes(32), info: '\xff' }]) {
    expect(hex(ours.hkdf(key, 112, how))).toBe(hex(vendor.hkdf(key, 112, how)));
  }
  expect(hex(ours.md5(key))).toBe(hex(vendor.md5(key)));
});

it('expands the keys of the shared settings', () => {
  const key = randomBytes(32);
  const theirs = vendor.expandAppStateKeys(key);
  const expanded = ours.expandAppStateKeys(key);
  expect(hex(expanded.indexKey)).toBe(hex(theirs.indexKey));
  expect(hex(expanded.valueEncryptionKey)).toBe(hex(theirs.valueEncryptionKey));
  expect(hex(expanded.valueMacKey)).toBe(hex(theirs.valueMacKey));
  expect(hex(expanded.snapshotMacKey)).toBe(hex(theirs.snapshotMacKey));
  expect(hex(expanded.patchMacKey)).toBe(hex(theirs.patchMacKey));
});

it('hashes a set of shared settings', () => {
  const change = [randomBytes(128), some(2), some(3)] as const;
  const changed = new ours.LTHashAntiTampering().subtractThenAdd(...change);
  const [base, subtracted, added] = change;
  const theirs = new vendor.LTHashAntiTampering().subtractThenAdd(base, subtracted, added);
  expect(hex(changed)).toBe(hex(theirs));
});
