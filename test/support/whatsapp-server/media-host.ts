// Where encrypted media go: an https host on loopback that takes uploads under the hash of their
// ciphertext and gives them back. It begins to listen with the first client that asks for it.

import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { getBinaryNodeChild } from '@whiskeysockets/baileys';
import { result } from './answers.ts';
import type { StanzaHandler } from './seams.ts';
import { createSelfSigned, type SelfSigned } from './self-signed.ts';

const HOST = '127.0.0.1';
const TTL_SECONDS = '3600';

export interface MediaHost extends AsyncDisposable {
  readonly certificate: string;
  /** Tells the linked device where to upload to. */
  readonly handler: StanzaHandler;
  /** Keeps a ciphertext that a phone uploaded. */
  keep(ciphertext: Buffer): Promise<{ readonly mediaUrl: string; readonly directPath: string }>;
  /** `phone`: what becomes of them on the account's phone. */
  forget(phone?: PhoneFiles): void;
  /** The phone uploads a forgotten file again: its new path; undefined where it is gone there too. */
  again(path: string): string | 'asleep' | undefined;
  /** Uploads fail while it is true; an address: they are redirected to it. */
  refuses: boolean | URL;
}

/** Whether the phone has the files of its messages, and answers who asks for them. */
export type PhoneFiles = 'keeps' | 'loses' | 'sleeps';

type Reply = {
  readonly status: number;
  readonly body: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
};

export function createMediaHost(): MediaHost {
  const auth = randomBytes(16).toString('base64url');
  const files = new Map<string, Buffer>();
  const forgotten = new Map<string, Buffer>();
  let phone: PhoneFiles = 'loses';
  const shelf: Shelf = { auth, files, refuses: false };
  let identity: SelfSigned | undefined;
  let listening: Promise<Server> | undefined;
  const selfSigned = () => {
    identity ??= createSelfSigned();
    return identity;
  };
  const host = async () => {
    listening ??= listen(selfSigned(), (request) => answer(request, shelf));
    return hostOf(await listening);
  };
  return {
    get certificate() {
      return selfSigned().cert;
    },
    async handler(stanza, from) {
      const asked = stanza.tag === 'iq' && stanza.attrs['xmlns'] === 'w:m';
      if (!asked || getBinaryNodeChild(stanza, 'media_conn') === undefined) return false;
      const content = [{ tag: 'host', attrs: { hostname: await host() } }];
      await from.send(
        result(stanza, [{ tag: 'media_conn', attrs: { auth, ttl: TTL_SECONDS }, content }]),
      );
      return true;
    },
    async keep(ciphertext) {
      const hash = createHash('sha256').update(ciphertext).digest('base64url');
      files.set(hash, ciphertext);
      const directPath = `/v/${hash}`;
      return { mediaUrl: `https://${await host()}${directPath}`, directPath };
    },
    forget(state = 'loses') {
      phone = state;
      for (const [name, file] of files) forgotten.set(name, file);
      files.clear();
    },
    again(path) {
      if (phone === 'sleeps') return 'asleep';
      const file = forgotten.get(path.split('/').at(-1) ?? '');
      if (file === undefined || phone === 'loses') return undefined;
      const name = randomBytes(16).toString('base64url');
      files.set(name, file);
      return `/v/${name}`;
    },
    get refuses() {
      return shelf.refuses;
    },
    set refuses(value) {
      shelf.refuses = value;
    },
    async [Symbol.asyncDispose]() {
      const server = await listening;
      if (server === undefined) return;
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

const hostOf = (server: Server) => `${HOST}:${(server.address() as AddressInfo).port}`;

async function listen(
  identity: SelfSigned,
  reply: (request: IncomingMessage) => Promise<Reply>,
): Promise<Server> {
  const server = createServer(identity, (request, response) => {
    reply(request).then(
      ({ status, body, headers }) => response.writeHead(status, headers).end(body),
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, HOST, resolve);
  });
  return server;
}

type Shelf = {
  readonly auth: string;
  readonly files: Map<string, Buffer>;
  refuses: boolean | URL;
};

async function answer(request: IncomingMessage, shelf: Shelf): Promise<Reply> {
  const { auth, files } = shelf;
  const url = new URL(request.url ?? '/', `https://${request.headers.host}`);
  const name = url.pathname.split('/').at(-1) ?? '';
  if (request.method === 'GET') {
    const body = files.get(name);
    return body === undefined ? NOT_FOUND : { status: 200, body };
  }
  const body = await buffer(request);
  if (shelf.refuses instanceof URL) {
    return { ...refusal(307, 'elsewhere'), headers: { location: shelf.refuses.href } };
  }
  if (shelf.refuses) return refusal(500, 'refused');
  if (url.searchParams.get('auth') !== auth) return refusal(401, 'auth');
  const hash = createHash('sha256').update(body).digest('base64url');
  if (name.replace(/=+$/, '') !== hash) return refusal(400, 'hash');
  files.set(hash, body);
  const path = `/v/${hash}`;
  const told = { url: `https://${url.host}${path}`, direct_path: path };
  return { status: 200, body: Buffer.from(JSON.stringify(told)) };
}

const refusal = (status: number, error: string): Reply => ({
  status,
  body: Buffer.from(JSON.stringify({ error })),
});

const NOT_FOUND = refusal(404, 'not found');
