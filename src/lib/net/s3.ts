// A bucket of an S3 service: objects are read, written, listed and deleted, signed by aws4fetch
// (Signature Version 4, path-style addresses). What may pass is tried again.

import { t } from '../texts.ts';
import { fetchThrough } from './proxies.ts';

export type S3Settings = {
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
};

type BucketOptions = {
  readonly bucket: string;
  /** Before every key, without slashes at its ends; may be empty. */
  readonly prefix: string;
  readonly s3: S3Settings;
  /** Where the settings are: `backup.s3`. */
  readonly field: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The proxy setting for connections to other machines. */
  readonly proxy: string;
};

type S3Object = {
  readonly key: string;
  /** When it was written, epoch milliseconds, by the clock of the service. */
  readonly at: number;
  readonly sizeBytes: number;
};

/** A request failed; the text is for people and contains no secret. */
export class S3Error extends Error {
  override readonly name = 'S3Error';
}

/** What is written under a key is there completely or not at all. */
export interface Bucket {
  /** `s3://bucket/prefix` */
  readonly name: string;
  /** Undefined if it is not there. @throws S3Error */
  get(key: string): Promise<AsyncIterable<Uint8Array> | undefined>;
  /** @param sha256 of the body: the service refuses what differs. @throws S3Error */
  put(key: string, body: Uint8Array | Blob, sha256?: string): Promise<void>;
  /** Undefined if it is not there. @throws S3Error */
  stat(key: string): Promise<S3Object | undefined>;
  /** All whose key begins so. @throws S3Error */
  list(beginning: string): AsyncIterable<S3Object>;
  /** Also if it is not there. @throws S3Error */
  remove(key: string): Promise<void>;
  /** By the clock of the service. @throws S3Error */
  now(): Promise<number>;
}

const TIMEOUT_MS = 120_000;
const TRIES = 4;
const RETRY_MS = 500;
const TOO_MANY = 429;
const SERVER_ERROR = 500;
const NOT_FOUND = 404;

type Body = {
  readonly body?: Uint8Array | Blob;
  readonly headers?: Readonly<Record<string, string>>;
};

/** @throws S3Error where credentials are missing */
export async function openBucket(options: BucketOptions): Promise<Bucket> {
  const { bucket, prefix, proxy } = options;
  const name = `s3://${[bucket, prefix].filter(Boolean).join('/')}`;
  const { endpoint, sign } = await signerOf(options, name);
  const base = `${endpoint.replace(/\/+$/, '')}/${bucket}`;
  const send = fetchThrough(proxy);
  const full = (key: string) => (prefix === '' ? key : `${prefix}/${key}`);
  const urlOf = (key: string) =>
    `${base}/${full(key).split('/').map(encodeURIComponent).join('/')}`;

  async function once(method: string, url: string, { body, headers }: Body): Promise<Response> {
    const content = body === undefined ? {} : { body: body as BodyInit };
    const signed = await sign({ method, url, ...content, ...(headers ? { headers } : {}) });
    const request = { method: signed.method, headers: signed.headers, redirect: 'error' as const };
    return send(signed.url, {
      ...request,
      ...content,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  }

  /** Undefined where an object is not there. */
  async function ask(method: string, url: string, body: Body = {}): Promise<Response | undefined> {
    for (let tries = 1; ; tries += 1) {
      const outcome = await once(method, url, body).catch((error: unknown) => ({ error }));
      const isLast = tries === TRIES;
      if ('error' in outcome) {
        if (isLast) throw new S3Error(t`${name} cannot be reached`, { cause: outcome.error });
      } else {
        const { status } = outcome;
        if (outcome.ok) return outcome;
        const said = /<Code>([\w.]+)<\/Code>/.exec(await outcome.text())?.[1] ?? '';
        if (status === NOT_FOUND && method !== 'PUT' && said !== 'NoSuchBucket') return undefined;
        if (said === 'NoSuchBucket') throw new S3Error(t`${name}: there is no bucket ${bucket}`);
        const mayPass = status === TOO_MANY || status >= SERVER_ERROR;
        if (isLast || !mayPass) throw new S3Error(t`${name} refuses: ${status} ${said}`.trim());
      }
      await new Promise((done) => setTimeout(done, RETRY_MS * 2 ** tries));
    }
  }

  async function* list(beginning: string): AsyncGenerator<S3Object, void, void> {
    for (let after = ''; ; ) {
      const query = new URLSearchParams({ 'list-type': '2', prefix: full(beginning) });
      if (after !== '') query.set('continuation-token', after);
      const response = await ask('GET', `${base}?${query}`);
      const { items, more, next } = readListing((await response?.text()) ?? '');
      for (const { key, ...item } of items) {
        yield { ...item, key: prefix === '' ? key : key.slice(prefix.length + 1) };
      }
      if (!more) return;
      after = next;
    }
  }

  return {
    name,
    async get(key) {
      const response = await ask('GET', urlOf(key));
      return response === undefined ? undefined : (response.body ?? noBytes());
    },
    async put(key, body, sha256) {
      const headers = sha256 === undefined ? {} : { 'x-amz-content-sha256': sha256 };
      await ask('PUT', urlOf(key), { body, headers });
    },
    async stat(key) {
      for await (const found of list(key)) if (found.key === key) return found;
      return undefined;
    },
    list,
    async remove(key) {
      await ask('DELETE', urlOf(key));
    },
    async now() {
      const response = await ask('GET', `${base}?list-type=2&max-keys=1`);
      await response?.arrayBuffer();
      return Date.parse(response?.headers.get('date') ?? '') || Date.now();
    },
  };
}

async function* noBytes(): AsyncGenerator<Uint8Array> {}

async function signerOf({ s3, env, field }: BucketOptions, name: string) {
  const { AwsV4Signer } = await import('aws4fetch');
  const isFromEnv = s3.accessKeyId === '';
  const region = s3.region || env['AWS_REGION'] || env['AWS_DEFAULT_REGION'] || 'us-east-1';
  const endpoint = s3.endpoint || env['AWS_ENDPOINT_URL'] || `https://s3.${region}.amazonaws.com`;
  const accessKeyId = s3.accessKeyId || env['AWS_ACCESS_KEY_ID'] || '';
  const secretAccessKey = s3.secretAccessKey || env['AWS_SECRET_ACCESS_KEY'] || '';
  const sessionToken = isFromEnv ? env['AWS_SESSION_TOKEN'] : undefined;
  if (accessKeyId === '' || secretAccessKey === '') {
    throw new S3Error(
      t`${name} needs credentials: set ${field}.accessKeyId and ${field}.secretAccessKey, or ` +
        t`AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.`,
    );
  }
  const keys = { accessKeyId, secretAccessKey, region, service: 's3' };
  const session = sessionToken === undefined ? {} : { sessionToken };
  const sign = (request: {
    readonly method: string;
    readonly url: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: BodyInit;
  }) => new AwsV4Signer({ ...request, ...keys, ...session }).sign();
  return { endpoint, sign };
}

const ENTITIES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
};

const unescaped = (text: string) =>
  text.replace(/&(amp|lt|gt|quot|apos);/g, (_, name: string) => ENTITIES[name] ?? '');

const valueIn = (xml: string, pattern: RegExp) => unescaped(pattern.exec(xml)?.[1] ?? '');

/** The names that this program writes need no other escapes. */
function readListing(xml: string) {
  return {
    more: valueIn(xml, /<IsTruncated>([^<]*)</) === 'true',
    next: valueIn(xml, /<NextContinuationToken>([^<]*)</),
    items: [...xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, item = '']) => ({
      key: valueIn(item, /<Key>([^<]*)</),
      at: Date.parse(valueIn(item, /<LastModified>([^<]*)</)),
      sizeBytes: Number(valueIn(item, /<Size>([^<]*)</)),
    })),
  };
}
