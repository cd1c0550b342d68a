// Reads the text of a QR code as the camera of a phone does.

const PREFIX = 'https://wa.me/settings/linked_devices#';

export type QrText = {
  readonly reference: string;
  readonly noiseKey: Uint8Array;
  readonly identityKey: Uint8Array;
  readonly advSecret: Uint8Array;
};

/** @throws where the text is not what a client shows to be linked */
export function readQr(text: string): QrText {
  const [reference, noiseKey, identityKey, advSecret] = text.slice(PREFIX.length).split(',');
  if (
    !text.startsWith(PREFIX) ||
    reference === undefined ||
    noiseKey === undefined ||
    identityKey === undefined ||
    advSecret === undefined
  ) {
    throw new Error('this is no QR code for linking a device');
  }
  return {
    reference,
    noiseKey: Buffer.from(noiseKey, 'base64'),
    identityKey: Buffer.from(identityKey, 'base64'),
    advSecret: Buffer.from(advSecret, 'base64'),
  };
}
