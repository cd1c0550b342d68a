// A strict S3 service: it verifies each signature, knows one bucket, and lists in small pages.
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html

import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { closed } from './listening.ts';

const PAGE = 3;
const MAX_SKEW_MS = 15 * 60_000;

export interface S3Server extends AsyncDisposable {
  readonly endpoint: string;
  /** For a program that uses it. */
  readonly env: Readonly<Record<string, string>>;
  readonly objects: Map<string, { readonly content: Buffer; readonly at: Date }>;
  /** Answers that it gave, by status. */
  readonly statuses: number[];
  /** Fails so many of the next requests with 503. */
  failNext(count: number): void;
  /** Accepts no connection until the result is called. */
  vanish(): Promise<() => Promise<void>>;
}

export const S3_KEY = 'AKIATEST';
export const S3_SECRET = 'a-secret-of-the-test-service';
export const S3_BUCKET = 'backups';
export const S3_REGION = 'eu-test-1';

/** @param now the time of objects */
export async function startS3(now = () => Date.now()): Promise<S3Server> {
  const objects: S3Server['objects'] = new Map();
  const statuses: number[] = [];
  let failures = 0;
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    const [status, text] = answer(request, body);
    statuses.push(status);
    if (Buffer.isBuffer(text)) response.writeHead(status).end(text);
    else end(response, status, text);
  });

  function answer(request: IncomingMessage, body: Buffer): readonly [number, string | Buffer] {
    const problem = signatureProblem(request, body);
    if (problem !== undefined) return [403, `<Error><Code>${problem}</Code></Error>`];
    if (failures > 0) {
      failures -= 1;
      return [503, '<Error><Code>SlowDown</Code></Error>'];
    }
    const url = new URL(request.url ?? '/', 'http://s3');
    const [, bucket, ...rest] = url.pathname.split('/').map(decodeURIComponent);
    const key = rest.join('/');
    if (bucket !== S3_BUCKET) return [404, '<Error><Code>NoSuchBucket</Code></Error>'];
    if (request.method === 'PUT') {
      objects.set(key, { content: body, at: new Date(now()) });
      return [200, ''];
    }
    if (request.method === 'DELETE') {
      objects.delete(key);
      return [204, ''];
    }
    if (key === '') return [200, list(url.searchParams)];
    const object = objects.get(key);
    return object === undefined
      ? [404, '<Error><Code>NoSuchKey</Code></Error>']
      : [200, object.content];
  }

  function list(query: URLSearchParams): string {
    const prefix = query.get('prefix') ?? '';
    const after = query.get('continuation-token') ?? '';
    const keys = [...objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
    const page = keys.slice(0, PAGE);
    const more = keys.length > PAGE;
    const items = page.map(
      (key) =>
        `<Contents><Key>${key}</Key><LastModified>${objects.get(key)?.at.toISOString()}</LastModified><Size>${objects.get(key)?.content.length}</Size></Contents>`,
    );
    const next = more ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : '';
    return `<ListBucketResult><IsTruncated>${more}</IsTruncated>${next}${items.join('')}</ListBucketResult>`;
  }

  const listen = (at: number) =>
    new Promise<void>((done) => {
      server.listen(at, '127.0.0.1', done);
    });
  const stop = async () => {
    if (!server.listening) return;
    await closed(server);
  };
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const endpoint = `http://127.0.0.1:${port}`;
  return {
    endpoint,
    env: {
      ...{ AWS_ENDPOINT_URL: endpoint, AWS_REGION: S3_REGION },
      ...{ AWS_ACCESS_KEY_ID: S3_KEY, AWS_SECRET_ACCESS_KEY: S3_SECRET },
    },
    objects,
    statuses,
    failNext: (count) => {
      failures = count;
    },
    async vanish() {
      await stop();
      return () => listen(port);
    },
    [Symbol.asyncDispose]: stop,
  };
}

function end(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'application/xml' }).end(status === 204 ? '' : text);
}

const sha256 = (content: Buffer | string) => createHash('sha256').update(content).digest('hex');
const hmac = (key: Buffer | string, text: string) =>
  createHmac('sha256', key).update(text).digest();

function signatureProblem(request: IncomingMessage, body: Buffer): string | undefined {
  const pattern = /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=(\w+)$/;
  const found = pattern.exec(request.headers.authorization ?? '');
  if (found === null) return 'AccessDenied';
  const [, credential = '', names = '', signature = ''] = found;
  const signed = names.split(';');
  const own = Object.keys(request.headers).filter((name) => name.startsWith('x-amz-'));
  if (!own.every((name) => signed.includes(name))) return 'AccessDenied';
  const [id, day = '', region = '', service = '', last] = credential.split('/');
  if (id !== S3_KEY || region !== S3_REGION || service !== 's3' || last !== 'aws4_request') {
    return 'InvalidAccessKeyId';
  }
  const at = String(request.headers['x-amz-date']);
  const time = Date.parse(
    at.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'),
  );
  if (!(Math.abs(Date.now() - time) < MAX_SKEW_MS)) return 'RequestTimeTooSkewed';
  const hash = String(request.headers['x-amz-content-sha256']);
  if (hash !== 'UNSIGNED-PAYLOAD' && hash !== sha256(body)) return 'XAmzContentSHA256Mismatch';
  const url = new URL(request.url ?? '/', 'http://s3');
  const query = [...url.searchParams]
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .sort()
    .join('&');
  const headers = signed.map((name) => `${name}:${request.headers[name]}\n`);
  const canonical = [request.method, url.pathname, query, headers.join(''), names, hash].join('\n');
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', at, scope, sha256(canonical)].join('\n');
  const key = [region, 's3', 'aws4_request'].reduce<Buffer>(
    (made, part) => hmac(made, part),
    hmac(`AWS4${S3_SECRET}`, day),
  );
  return hmac(key, text).toString('hex') === signature ? undefined : 'SignatureDoesNotMatch';
}
