// The linked device's keys on the server: count, upload, rotation and digest. Who uses them up is
// in account.ts.

import {
  type BinaryNode,
  getAllBinaryNodeChildren,
  getBinaryNodeChild,
  getBinaryNodeChildBuffer,
  getBinaryNodeChildren,
  getBinaryNodeChildUInt,
} from '@whiskeysockets/baileys';
import { result } from './answers.ts';
import { isSignedBy } from './certificate.ts';
import type { LinkedDevice, StanzaHandler } from './seams.ts';

const KEY_TYPE_SIGNAL = Buffer.from([5]);
const ID_BYTES = 3;
const REGISTRATION_BYTES = 4;

/** For none a client uploads 812, for one only five: enough for a test. */
const FEWEST_REPORTED = 1;

/** @param violation told of keys that are not signed, or not by the device's identity */
export function preKeyHandler(violation: (text: string) => void): StanzaHandler {
  return async (stanza, from) => {
    const { device } = from.account;
    if (stanza.tag !== 'iq' || stanza.attrs['xmlns'] !== 'encrypt' || device === undefined) {
      return false;
    }
    if (stanza.attrs['type'] === 'get') {
      const fewest = from.account.wantsAllPreKeys ? 0 : FEWEST_REPORTED;
      const answer = answerTo(getAllBinaryNodeChildren(stanza)[0]?.tag, device, fewest);
      if (answer === undefined) return false;
      await from.send(result(stanza, [answer]));
      return true;
    }
    const wrong = store(stanza, device);
    if (wrong !== undefined) violation(wrong);
    await from.send(result(stanza));
    return true;
  };
}

function answerTo(
  question: string | undefined,
  device: LinkedDevice,
  fewest: number,
): BinaryNode | undefined {
  if (question === 'digest') return { tag: 'digest', attrs: {} };
  if (question !== 'count') return undefined;
  const value = String(Math.max(fewest, device.preKeys.size));
  return { tag: 'count', attrs: { value } };
}

/** @returns what is wrong with it */
function store(iq: BinaryNode, device: LinkedDevice): string | undefined {
  const rotation = getBinaryNodeChild(iq, 'rotate');
  const signed = signedPreKeyOf(getBinaryNodeChild(rotation ?? iq, 'skey'), device.identityKey);
  if (signed === undefined) return 'a signed pre-key without a good signature';
  if (rotation === undefined) {
    const identity = getBinaryNodeChildBuffer(iq, 'identity');
    if (identity === undefined || Buffer.compare(identity, device.identityKey) !== 0) {
      return 'pre-keys under another identity';
    }
    const registrationId = getBinaryNodeChildUInt(iq, 'registration', REGISTRATION_BYTES);
    if (registrationId === undefined) return 'pre-keys without a registration id';
    device.registrationId = registrationId;
    for (const key of getBinaryNodeChildren(getBinaryNodeChild(iq, 'list'), 'key')) {
      const id = getBinaryNodeChildUInt(key, 'id', ID_BYTES);
      const value = getBinaryNodeChildBuffer(key, 'value');
      if (id === undefined || value?.length !== 32) return 'a broken pre-key';
      device.preKeys.set(id, value);
    }
  }
  device.signedPreKey = signed;
  return undefined;
}

function signedPreKeyOf(node: BinaryNode | undefined, identity: Uint8Array) {
  if (node === undefined) return undefined;
  const id = getBinaryNodeChildUInt(node, 'id', ID_BYTES);
  const key = getBinaryNodeChildBuffer(node, 'value');
  const signature = getBinaryNodeChildBuffer(node, 'signature');
  if (id === undefined || key === undefined || signature === undefined) return undefined;
  if (!isSignedPreKey(identity, key, signature)) return undefined;
  return { id, key, signature };
}

export function isSignedPreKey(
  identity: Uint8Array,
  key: Uint8Array,
  signature: Uint8Array,
): boolean {
  return isSignedBy(identity, Buffer.concat([KEY_TYPE_SIGNAL, key]), signature);
}
