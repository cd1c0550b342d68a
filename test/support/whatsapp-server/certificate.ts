// The server's Noise identity: a static key and a certificate chain under a root of its own, and
// the check of XEdDSA signatures. Who trusts the root is said in trust.ts.

import { createRequire } from 'node:module';
import { Curve, type KeyPair, proto, WA_CERT_DETAILS } from '@whiskeysockets/baileys';

type SignatureCheck = {
  verifySignature(publicKey: Buffer, message: Uint8Array, signature: Uint8Array): boolean;
};

// Baileys' own Curve.verify ignores what libsignal returns and is true for any 64 bytes.
const libsignal: SignatureCheck = createRequire(import.meta.url)('libsignal/src/curve.js');

const SIGNAL_KEY_TYPE = Buffer.from([5]);
const LEAF_SERIAL = 2;
const INTERMEDIATE_SERIAL = 1;

export type NoiseIdentity = {
  readonly rootKey: Uint8Array;
  readonly staticKey: KeyPair;
  /** Encoded `CertChain`. */
  readonly chain: Uint8Array;
};

export function createNoiseIdentity(): NoiseIdentity {
  const root = Curve.generateKeyPair();
  const intermediate = Curve.generateKeyPair();
  const staticKey = Curve.generateKeyPair();
  const chain = proto.CertChain.encode({
    intermediate: certificate(root, {
      serial: INTERMEDIATE_SERIAL,
      issuerSerial: WA_CERT_DETAILS.SERIAL,
      key: intermediate.public,
    }),
    leaf: certificate(intermediate, {
      serial: LEAF_SERIAL,
      issuerSerial: INTERMEDIATE_SERIAL,
      key: staticKey.public,
    }),
  }).finish();
  return { rootKey: root.public, staticKey, chain };
}

function certificate(issuer: KeyPair, content: proto.CertChain.NoiseCertificate.IDetails) {
  const details = proto.CertChain.NoiseCertificate.Details.encode(content).finish();
  return { details, signature: Curve.sign(issuer.private, details) };
}

/** @param publicKey 32 bytes, without the type byte. */
export function isSignedBy(
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  return libsignal.verifySignature(
    Buffer.concat([SIGNAL_KEY_TYPE, publicKey]),
    Buffer.from(message),
    Buffer.from(signature),
  );
}
