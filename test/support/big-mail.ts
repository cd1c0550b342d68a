// A mail with one large file, read in a process of its own so that the memory it takes can be told.

import { fork } from 'node:child_process';
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dkimSign } from 'mailauth/lib/dkim/sign.js';
import type { MediaId } from '../../src/kernel/message/ids.ts';
import type { Verification } from '../../src/kernel/message/message.ts';
import { startScriptedImap } from './mail-servers-scripted.ts';

export type BigMailReading = {
  readonly text: string;
  readonly proof: Verification | undefined;
  /** Of its file, where it came along. */
  readonly media: MediaId | undefined;
  /** Highest memory of the whole process above that at its start, MB. */
  readonly grownMb: number;
};

export type BigMail = {
  readonly raw: string;
  /** SHA-256 of its file. */
  readonly sha256: string;
  readonly publicKey: string;
};

const LINE_CHARS = 76;

/** Signed by its sender; `fileBytes` before it is encoded. */
export async function bigMail(fileBytes: number): Promise<BigMail> {
  const file = randomBytes(fileBytes);
  const { publicKey, privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const encoded = file.toString('base64').match(new RegExp(`.{1,${LINE_CHARS}}`, 'g')) ?? [];
  const mail = [
    'From: anna@person.test',
    'To: agent@nanobot.test',
    'Subject: The film',
    'Date: Thu, 15 Jan 2026 12:00:00 +0000',
    'Message-ID: <big@person.test>',
    'MIME-Version: 1.0',
    'Content-Type: multipart/mixed; boundary=b',
    '',
    '--b\r\nContent-Type: text/plain\r\n\r\nHere is the film.',
    '--b\r\nContent-Type: video/mp4; name=film.mp4\r\nContent-Transfer-Encoding: base64\r\n',
    ...encoded,
    '--b--\r\n',
  ].join('\r\n');
  const key = { signingDomain: 'person.test', selector: 'k1', privateKey };
  const { signatures } = await dkimSign(mail, { ...key, signatureData: [key] });
  return {
    raw: signatures + mail,
    sha256: createHash('sha256').update(file).digest('hex'),
    publicKey: publicKey.toString('base64'),
  };
}

export async function readBigMail({ raw, publicKey }: BigMail): Promise<BigMailReading> {
  await using imap = await startScriptedImap({ mail: raw, body: 'whole' });
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-big-mail-'));
  const env = { IMAP_PORT: `${imap.port}`, MEDIA_FOLDER: folder, PUBLIC_KEY: publicKey };
  const child = fork(join(import.meta.dirname, 'big-mail-child.ts'), { env });
  const exited = once(child, 'exit');
  try {
    const failed = exited.then(() => Promise.reject(new Error('the reading process failed')));
    const [reading] = await Promise.race([once(child, 'message'), failed]);
    return reading;
  } finally {
    child.kill();
    await exited;
    await rm(folder, { recursive: true, force: true });
  }
}
