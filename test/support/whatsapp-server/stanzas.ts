// The message and receipt stanzas between persons and the linked device: building those to it,
// taking those from it apart. Pure; encryption and routing are left to others.

import {
  type BinaryNode,
  getBinaryNodeChild,
  getBinaryNodeChildren,
  jidDecode,
  jidNormalizedUser,
  KEY_BUNDLE_TYPE,
} from '@whiskeysockets/baileys';
import { seconds } from './answers.ts';
import type { Addressing } from './contract.ts';
import type { KeyBundle } from './seams.ts';
import type { Sealed } from './signal-device.ts';

/** A person's two names on the wire. */
export type Identity = { readonly number: string; readonly lid: string; readonly name: string };

export const lidJid = ({ lid }: Pick<Identity, 'lid'>) => `${lid}@lid`;
export const numberJid = ({ number }: Pick<Identity, 'number'>) => `${number}@s.whatsapp.net`;
export const userOf = (jid: string | undefined) => jidDecode(jid)?.user ?? '';
export const isGroup = (jid: string) => jid.endsWith('@g.us');

export const BY_LID: Addressing = { by: 'lid', withAlt: true };

type MessageAttributes = { readonly id: string; readonly at: number; readonly from: Identity };

/** Of a contact, in the chat of the two. */
export function directMessage(
  { from, addressing, ...message }: MessageAttributes & { readonly addressing: Addressing },
  content: BinaryNode[],
): BinaryNode {
  const { jid, mode, alt } = addressed(from, addressing, 'sender');
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
  { from, group, ...message }: MessageAttributes & { readonly group: string },
  content: BinaryNode[],
): BinaryNode {
  const { jid, mode, alt } = addressed(from, BY_LID, 'participant');
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

function addressed(who: Identity, { by, withAlt }: Addressing, role: string) {
  const byLid = by === 'lid';
  const alt: Record<string, string> = withAlt
    ? { [`${role}_${byLid ? 'pn' : 'lid'}`]: byLid ? numberJid(who) : lidJid(who) }
    : {};
  return { jid: byLid ? lidJid(who) : numberJid(who), mode: byLid ? 'lid' : 'pn', alt };
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

/** What the linked device sends in one message stanza, by recipient. */
export type OutgoingMessage = {
  readonly id: string;
  /** Jid without a device. */
  readonly chat: string;
  readonly isPeer: boolean;
  /** Meant for one person only: the answer to a retry receipt. */
  readonly only: string | undefined;
  /** By user, number or LID; several where the client encrypted twice for one device. */
  readonly sealed: ReadonlyMap<string, readonly Sealed[]>;
  readonly groupCiphertext: Uint8Array | undefined;
};

const KNOWN_PARTS = new Set([
  'participants',
  'enc',
  'device-identity',
  'reporting',
  'tctoken',
  'meta',
]);

/** @returns undefined where a part is none that a server of today knows */
export function parseMessage(stanza: BinaryNode): OutgoingMessage | undefined {
  const { id, to, category, participant } = stanza.attrs;
  const parts = Array.isArray(stanza.content) ? stanza.content : [];
  if (id === undefined || to === undefined) return undefined;
  if (!parts.every(({ tag }) => KNOWN_PARTS.has(tag))) return undefined;
  const direct = getBinaryNodeChildren(stanza, 'enc');
  const only = participant ?? (direct.some(isPairwise) && !isGroup(to) ? to : undefined);
  const sealed = new Map<string, Sealed[]>();
  const add = (jid: string | undefined, encs: readonly BinaryNode[]) =>
    void sealed.set(userOf(jid), [...(sealed.get(userOf(jid)) ?? []), ...encs.flatMap(toSealed)]);
  for (const recipient of getBinaryNodeChildren(participantsOf(stanza), 'to')) {
    add(recipient.attrs['jid'], getBinaryNodeChildren(recipient, 'enc'));
  }
  if (only !== undefined) add(only, direct);
  return {
    id,
    chat: jidNormalizedUser(to),
    isPeer: category === 'peer',
    only: only === undefined ? undefined : userOf(only),
    sealed,
    groupCiphertext: direct.filter((enc) => !isPairwise(enc)).flatMap(bytes)[0],
  };
}

const participantsOf = (stanza: BinaryNode) => getBinaryNodeChild(stanza, 'participants');
const isPairwise = ({ attrs }: BinaryNode) => attrs['type'] !== 'skmsg';
const bytes = ({ content }: BinaryNode) => (content instanceof Uint8Array ? [content] : []);

function toSealed(enc: BinaryNode): Sealed[] {
  const { type } = enc.attrs;
  if (type !== 'pkmsg' && type !== 'msg') return [];
  return bytes(enc).map((ciphertext) => ({ type, ciphertext }));
}

/** Says why a server would refuse it, apart from its recipients; undefined: it is in order. */
export function flawOf(stanza: BinaryNode): string | undefined {
  const direct = getBinaryNodeChildren(stanza, 'enc');
  const all = getBinaryNodeChildren(participantsOf(stanza), 'to').flatMap((to) =>
    getBinaryNodeChildren(to, 'enc'),
  );
  const opensSession = [...direct, ...all].some(({ attrs }) => attrs['type'] === 'pkmsg');
  const hasIdentity = getBinaryNodeChild(stanza, 'device-identity') !== undefined;
  return opensSession && !hasIdentity ? 'pkmsg without device-identity' : undefined;
}

/** Ids that a receipt is about: its own and those of its list. */
export function receiptIds(receipt: BinaryNode): readonly string[] {
  const items = getBinaryNodeChildren(getBinaryNodeChild(receipt, 'list'), 'item');
  return [receipt, ...items].flatMap(({ attrs }) => (attrs['id'] === undefined ? [] : attrs['id']));
}

/** What the linked device says about itself in a retry receipt from its second attempt on. */
export function bundleOfRetry(receipt: BinaryNode): KeyBundle | undefined {
  const keys = getBinaryNodeChild(receipt, 'keys');
  const registration = child(receipt, 'registration');
  const identityKey = child(keys, 'identity');
  const skey = getBinaryNodeChild(keys, 'skey');
  const [key, signature] = [child(skey, 'value'), child(skey, 'signature')];
  if (!registration || !identityKey || !key || !signature) return undefined;
  const preKey = getBinaryNodeChild(keys, 'key');
  const value = child(preKey, 'value');
  return {
    registrationId: uint(registration),
    identityKey,
    signedPreKey: { id: uint(child(skey, 'id')), key, signature },
    preKey: value === undefined ? undefined : { id: uint(child(preKey, 'id')), key: value },
  };
}

const child = (node: BinaryNode | undefined, tag: string) => {
  const content = getBinaryNodeChild(node, tag)?.content;
  return content instanceof Uint8Array ? content : undefined;
};

const uint = (value: Uint8Array | undefined) =>
  value === undefined ? 0 : Buffer.from(value).readUIntBE(0, value.length);
