// The account's phone, asked for a file that the media host does not keep any more: it uploads what it
// still has and says where, or that it has it no longer, sealed under the file's key.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import {
  type BinaryNode,
  getBinaryNodeChild,
  getBinaryNodeChildBuffer,
  normalizeMessageContent,
  proto,
} from '@whiskeysockets/baileys';
import { seconds } from './answers.ts';
import type { MediaHost } from './media-host.ts';
import type { Account, Plumbing, StanzaHandler } from './seams.ts';
import { numberJid, userOf } from './stanzas.ts';

const INFO = 'WhatsApp Media Retry Notification';
const TAG_BYTES = 16;
const { ResultType } = proto.MediaRetryNotification;

export type PhoneMessages = {
  /** What that person wrote under this id. */
  messageOf(user: string, id: string): proto.IMessage | undefined;
};

export function mediaAgainHandler(
  { messageOf }: PhoneMessages,
  media: MediaHost,
  plumbing: Plumbing,
): StanzaHandler {
  return async (stanza, { account }) => {
    if (stanza.tag !== 'receipt' || stanza.attrs['type'] !== 'server-error') return false;
    const { id = '', to } = stanza.attrs;
    const rmr = getBinaryNodeChild(stanza, 'rmr')?.attrs ?? {};
    const file = fileIn(messageOf(userOf(rmr['participant'] ?? rmr['jid']), id));
    if (to !== numberJid(account) || file === undefined) {
      plumbing.violation(`asked for the file of ${id}, which is none`);
      return true;
    }
    const key = Buffer.from(hkdfSync('sha256', file.mediaKey, new Uint8Array(), INFO, 32));
    if (askedFor(stanza, key, id) !== id) plumbing.violation(`a request for ${id} not sealed well`);
    const place = media.again(file.directPath);
    if (place !== 'asleep') await account.deliver(answer(stanza, place, key, account, plumbing));
    return true;
  };
}

type File = { readonly mediaKey: Uint8Array; readonly directPath: string };

function fileIn(message: proto.IMessage | undefined): File | undefined {
  const parts = Object.values(normalizeMessageContent(message) ?? {});
  return parts.find((part): part is File => part?.mediaKey?.length === 32 && part.directPath);
}

function askedFor(stanza: BinaryNode, key: Buffer, id: string): string {
  const encrypt = getBinaryNodeChild(stanza, 'encrypt');
  const sealed = Buffer.from(getBinaryNodeChildBuffer(encrypt, 'enc_p') ?? []);
  const iv = getBinaryNodeChildBuffer(encrypt, 'enc_iv') ?? new Uint8Array();
  const decipher = createDecipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(id));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  const plain = [decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()];
  return proto.ServerErrorReceipt.decode(Buffer.concat(plain)).stanzaId ?? '';
}

function answer(
  request: BinaryNode,
  directPath: string | undefined,
  key: Buffer,
  account: Account,
  plumbing: Plumbing,
): BinaryNode {
  const { id = '' } = request.attrs;
  const rmr = getBinaryNodeChild(request, 'rmr');
  const common = { id, from: numberJid(account), type: 'mediaretry', t: seconds(plumbing.now()) };
  const result =
    directPath === undefined
      ? { tag: 'error', attrs: { code: String(ResultType.NOT_FOUND) } }
      : sealed({ stanzaId: id, directPath, result: ResultType.SUCCESS }, key);
  return {
    tag: 'notification',
    attrs: common,
    content: [result, { tag: 'rmr', attrs: rmr?.attrs ?? {} }],
  };
}

function sealed(notification: proto.IMediaRetryNotification, key: Buffer): BinaryNode {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  cipher.setAAD(Buffer.from(notification.stanzaId ?? ''));
  const plain = proto.MediaRetryNotification.encode(notification).finish();
  const text = Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  const leaf = (tag: string, content: Uint8Array): BinaryNode => ({ tag, attrs: {}, content });
  return { tag: 'encrypt', attrs: {}, content: [leaf('enc_p', text), leaf('enc_iv', iv)] };
}
