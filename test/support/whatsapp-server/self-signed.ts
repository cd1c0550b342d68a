// A certificate for 127.0.0.1 and a host name, signed by its own key: enough for TLS on loopback.

import { createSign, generateKeyPairSync, randomBytes } from 'node:crypto';

export type SelfSigned = { readonly key: string; readonly cert: string };

const LIFETIME_MS = 2 * 24 * 3600 * 1000;
const ECDSA_SHA256 = '1.2.840.10045.4.3.2';
const COMMON_NAME = '2.5.4.3';
const BASIC_CONSTRAINTS = '2.5.29.19';
const ALTERNATIVE_NAME = '2.5.29.17';
const IP_ADDRESS = 0x87;
const DNS_NAME = 0x82;

export function createSelfSigned(host = 'loopback.test'): SelfSigned {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(oid(ECDSA_SHA256));
  const name = sequence(tlv(0x31, sequence(oid(COMMON_NAME), tlv(0x0c, Buffer.from('loopback')))));
  const now = Date.now();
  const toBeSigned = sequence(
    tlv(0xa0, integer(Buffer.of(2))),
    integer(Buffer.concat([Buffer.of(1), randomBytes(8)])),
    algorithm,
    name,
    sequence(time(now - LIFETIME_MS), time(now + LIFETIME_MS)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, sequence(...extensions(host))),
  );
  const signature = createSign('sha256').update(toBeSigned).sign(privateKey);
  const cert = sequence(toBeSigned, algorithm, bits(signature));
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: pem(cert),
  };
}

function extensions(host: string): Buffer[] {
  const isAuthority = sequence(tlv(0x01, Buffer.of(0xff)));
  const names = sequence(
    tlv(IP_ADDRESS, Buffer.of(127, 0, 0, 1)),
    tlv(DNS_NAME, Buffer.from(host)),
  );
  return [
    sequence(oid(BASIC_CONSTRAINTS), tlv(0x04, isAuthority)),
    sequence(oid(ALTERNATIVE_NAME), tlv(0x04, names)),
  ];
}

function tlv(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...size), content]);
}

const sequence = (...parts: Buffer[]) => tlv(0x30, Buffer.concat(parts));
const integer = (value: Buffer) => tlv(0x02, value);
const bits = (value: Buffer) => tlv(0x03, Buffer.concat([Buffer.of(0), value]));

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const groups = rest.flatMap((value) => {
    const septets = [value & 0x7f];
    for (let left = value >> 7; left > 0; left >>= 7) septets.unshift((left & 0x7f) | 0x80);
    return septets;
  });
  return tlv(0x06, Buffer.of(first * 40 + second, ...groups));
}

function time(atMs: number): Buffer {
  const text = new Date(atMs).toISOString().replace(/\.\d+|[-:T]/g, '');
  return tlv(0x17, Buffer.from(text.slice(2)));
}

const pem = (der: Buffer) =>
  `-----BEGIN CERTIFICATE-----\n${der.toString('base64').replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
