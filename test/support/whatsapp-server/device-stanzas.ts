// The message and receipt stanzas of the linked device, taken apart: what is in them for whom.

import {
  type BinaryNode,
  getBinaryNodeChild,
  getBinaryNodeChildren,
  jidNormalizedUser,
} from '@whiskeysockets/baileys';
import type { KeyBundle } from './seams.ts';
import type { Sealed } from './signal-device.ts';
import { type Identity, isGroup, lidJid, numberJid, userOf } from './stanzas.ts';

/** What the linked device sends in one message stanza, by recipient. */
export type OutgoingMessage = {
  readonly id: string;
  /** Jid without a device. */
  readonly chat: string;
  readonly isPeer: boolean;
  /** Meant for one person only: the answer to a retry receipt. */
  readonly only: string | undefined;
  /** By jid; several where the client encrypted twice for one device. */
  readonly sealed: ReadonlyMap<string, readonly Sealed[]>;
  readonly groupCiphertext: Uint8Array | undefined;
};

/** What is in a message for one device of a person, who may be named by number or LID. */
export const sealedFor = (
  { sealed }: OutgoingMessage,
  who: Pick<Identity, 'number' | 'lid'>,
  device = 0,
): readonly Sealed[] => sealed.get(lidJid(who, device)) ?? sealed.get(numberJid(who, device)) ?? [];

/** Whether any device of the person is among the recipients. */
export const isFor = ({ sealed }: OutgoingMessage, who: Pick<Identity, 'number' | 'lid'>) =>
  [...sealed.keys()].some((jid) => isNamed(who, userOf(jid)));

export const isNamed = ({ number, lid }: Pick<Identity, 'number' | 'lid'>, user: string) =>
  user === number || user === lid;

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
  const add = (jid = '', encs: readonly BinaryNode[]) =>
    void sealed.set(jid, [...(sealed.get(jid) ?? []), ...encs.flatMap(toSealed)]);
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
