// The message and receipt stanzas of persons to the linked device, built from what they say. Those
// from it are taken apart in device-stanzas.ts.

import { type BinaryNode, jidDecode, jidEncode, KEY_BUNDLE_TYPE } from '@whiskeysockets/baileys';
import { seconds } from './answers.ts';
import type { Addressing } from './contract.ts';
import type { KeyBundle } from './seams.ts';

/** A person's two names on the wire. */
export type Identity = { readonly number: string; readonly lid: string; readonly name: string };

/** `device` 0 is the phone, and has no part in the jid. */
export const lidJid = ({ lid }: Pick<Identity, 'lid'>, device = 0) => jidEncode(lid, 'lid', device);
export const numberJid = ({ number }: Pick<Identity, 'number'>, device = 0) =>
  jidEncode(number, 's.whatsapp.net', device);
export const userOf = (jid: string | undefined) => jidDecode(jid)?.user ?? '';
export const isGroup = (jid: string) => jid.endsWith('@g.us');

export const BY_LID: Addressing = { by: 'lid', withAlt: true };

type MessageAttributes = { readonly id: string; readonly at: number; readonly from: Identity };
type Sender = MessageAttributes & { readonly device: number; readonly addressing: Addressing };

/** Of a contact, in the chat of the two. */
export function directMessage(
  { from, device, addressing, ...message }: Sender,
  content: BinaryNode[],
): BinaryNode {
  const { jid, mode, alt } = addressed(from, addressing, 'sender', device);
  const attrs = { from: jid, ...common(from, message), addressing_mode: mode, ...alt };
  return { tag: 'message', attrs, content };
}

/** Of the account's own phone, in the chat with `to`. */
export function ownMessage(
  {
    from,
    to,
    addressing,
    ...message
  }: MessageAttributes & { readonly to: Identity; readonly addressing: Addressing },
  content: BinaryNode[],
): BinaryNode {
  const own = addressed(from, addressing, 'sender');
  const { jid, mode, alt } = addressed(to, addressing, 'peer_recipient');
  const attrs = { from: own.jid, recipient: jid, ...common(from, message), addressing_mode: mode };
  return { tag: 'message', attrs: { ...attrs, ...alt }, content };
}

export function groupMessage(
  { from, device, addressing, group, ...message }: Sender & { readonly group: string },
  content: BinaryNode[],
): BinaryNode {
  const { jid, mode, alt } = addressed(from, addressing, 'participant', device);
  const attrs = { from: group, participant: jid, ...common(from, message), addressing_mode: mode };
  return { tag: 'message', attrs: { ...attrs, ...alt }, content };
}

/** From the account's phone to its linked device alone, such as the first sync. */
export function peerMessage(
  { from, id, at }: MessageAttributes,
  content: BinaryNode[],
): BinaryNode {
  const attrs = { from: numberJid(from), id, t: seconds(at), type: 'text', category: 'peer' };
  return { tag: 'message', attrs, content };
}

function addressed(who: Identity, { by, withAlt }: Addressing, role: string, device = 0) {
  const byLid = by === 'lid';
  const alt: Record<string, string> = withAlt
    ? { [`${role}_${byLid ? 'pn' : 'lid'}`]: byLid ? numberJid(who) : lidJid(who) }
    : {};
  const jid = byLid ? lidJid(who, device) : numberJid(who, device);
  return { jid, mode: byLid ? 'lid' : 'pn', alt };
}

const common = (from: Identity, { id, at }: { readonly id: string; readonly at: number }) => ({
  id,
  t: seconds(at),
  type: 'text',
  notify: from.name,
});

/** Where a receipt of a person comes from: the chat as the linked device wrote to it. */
export type ReceiptSource = {
  readonly from: string;
  /** Group member who sends it. */
  readonly participant?: string;
  /** Chat of a message that the account's own phone got a copy of. */
  readonly recipient?: string;
};

export const deliveryReceipt = (source: ReceiptSource, id: string, at: number): BinaryNode => ({
  tag: 'receipt',
  attrs: { ...source, id, t: seconds(at) },
});

/** Asks for a message again; `bundle` lets the other side open a session at once. */
export function retryReceipt(
  source: ReceiptSource,
  ask: { readonly id: string; readonly at: number; readonly count: number },
  device: { readonly registrationId: number; readonly bundle?: KeyBundle },
): BinaryNode {
  const { id, at, count } = ask;
  const retry = { count: String(count), id, t: seconds(at), v: '1' };
  const content: BinaryNode[] = [
    { tag: 'retry', attrs: retry },
    leaf('registration', bigEndian(device.registrationId, 4)),
  ];
  if (device.bundle !== undefined) content.push(keysNode(device.bundle));
  return { tag: 'receipt', attrs: { ...source, id, type: 'retry', t: seconds(at) }, content };
}

function keysNode({ identityKey, preKey, signedPreKey }: KeyBundle): BinaryNode {
  const content = [leaf('type', KEY_BUNDLE_TYPE), leaf('identity', identityKey)];
  if (preKey !== undefined) content.push(keyNode('key', preKey));
  content.push(keyNode('skey', signedPreKey));
  return { tag: 'keys', attrs: {}, content };
}

function keyNode(
  tag: string,
  key: { readonly id: number; readonly key: Uint8Array; readonly signature?: Uint8Array },
): BinaryNode {
  const content = [leaf('id', bigEndian(key.id, 3)), leaf('value', key.key)];
  if (key.signature !== undefined) content.push(leaf('signature', key.signature));
  return { tag, attrs: {}, content };
}

const leaf = (tag: string, content: Uint8Array): BinaryNode => ({ tag, attrs: {}, content });

function bigEndian(value: number, bytes: number): Uint8Array {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntBE(value, 0, bytes);
  return buffer;
}
