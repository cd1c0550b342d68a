// The identity of a linked device: the phone signs it, the shared secret seals it, and the device
// signs it back.

import { createHmac } from 'node:crypto';
import { Curve, proto } from '@whiskeysockets/baileys';
import { isSignedBy } from './certificate.ts';
import type { PhoneIdentity } from './code-pairing.ts';
import type { LinkedDevice } from './seams.ts';

const ACCOUNT_PREFIX = Buffer.from([6, 0]);
const DEVICE_PREFIX = Buffer.from([6, 1]);

export class DeviceIdentity {
  readonly #phone: PhoneIdentity;
  readonly #device: LinkedDevice;
  readonly #details: Uint8Array;

  constructor(phone: PhoneIdentity, device: LinkedDevice, now: number) {
    this.#phone = phone;
    this.#device = device;
    this.#details = proto.ADVDeviceIdentity.encode({
      rawId: device.id,
      timestamp: Math.floor(now / 1000),
      keyIndex: device.id,
    }).finish();
  }

  /** @param secret what only this phone and this device know */
  sealed(secret: Uint8Array): Uint8Array {
    const message = Buffer.concat([ACCOUNT_PREFIX, this.#details, this.#device.identityKey]);
    const details = proto.ADVSignedDeviceIdentity.encode({
      details: this.#details,
      accountSignatureKey: this.#phone.public,
      accountSignature: Curve.sign(Buffer.from(this.#phone.private), message),
    }).finish();
    const hmac = createHmac('sha256', secret).update(details).digest();
    return proto.ADVSignedDeviceIdentityHMAC.encode({ details, hmac }).finish();
  }

  /** @param answer the identity as the device sent it back */
  isSignedBack(answer: Uint8Array | undefined): boolean {
    if (answer === undefined) return false;
    const { deviceSignature } = proto.ADVSignedDeviceIdentity.decode(answer);
    const { identityKey } = this.#device;
    const parts = [DEVICE_PREFIX, this.#details, identityKey, this.#phone.public];
    return isSignedBy(identityKey, Buffer.concat(parts), deviceSignature ?? new Uint8Array());
  }
}
