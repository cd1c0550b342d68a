import { createServer, type RequestListener, type Server } from 'node:http';
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { isPublicAddress } from '../../src/lib/net/address-rules.ts';
import { SafeFetchError } from '../../src/lib/net/checked-address.ts';
import { createSafeFetch, type SafeFetchOptions } from '../../src/lib/net/safe-fetch.ts';
import { closed, portOf } from '../support/listening.ts';

const running: Server[] = [];

afterEach(async () => {
  for (const server of running.splice(0)) {
    await closed(server);
  }
});

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  running.push(server);
  return await portOf(server);
}

type Setup = {
  readonly names?: Readonly<Record<string, readonly string[]>>;
  readonly allow?: readonly string[];
  readonly ports?: readonly number[];
};

function fetcher({ names = {}, allow = [], ports = [80, 443] }: Setup = {}) {
  const asked: string[] = [];
  const fetch = createSafeFetch({
    rules: () => ({ ports, allowPrivateHosts: allow }),
    resolver: async (host) => {
      asked.push(host);
      return names[host] ?? [];
    },
  });
  const get = (url: string, options: Partial<SafeFetchOptions> = {}) =>
    fetch(url, { signal: new AbortController().signal, timeoutMs: 45_000, ...options });
  return { get, asked };
}

async function reasonOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    if (error instanceof SafeFetchError) return error.reason;
    throw error;
  }
  return 'fetched';
}

const INSIDE = [
  // Loopback in every spelling of IPv4 that the URL standard knows.
  ...[
    '127.0.0.1',
    '127.0.0.1.',
    '127.1',
    '127.0.1',
    '127.255.255.254',
    '2130706433',
    '017700000001',
  ],
  ...['0x7f000001', '0x7f.0.0.1', '0177.0.0.1', '0x7F.1', '0x7f.0x0.0x0.0x1', '127.0.0.0x1'],
  ...['0177.1', '00000177.0.0.1', '0x000000007f.1', '１２７.０.０.１', '127。0。0。1', '①②⑦.⓪.⓪.①'],
  ...['%31%32%37.0.0.1', '127.0.0.%31', '127%2e0%2e0%2e1', '0x7f%2e1'],
  // This network, private networks, shared address space, link-local.
  ...['0', '0.0.0.0', '0x0', '00', '0.1.2.3', '0.0.0.1', '10.0.0.1', '10.255.255.255', '0xa000001'],
  ...['167772161', '012.0.0.1', '172.16.0.1', '172.31.255.255', '2886729729', '192.168.0.1'],
  ...['192.168.1.1', '3232235777', '0xc0a80101', '192.168.257', '100.64.0.1', '100.127.255.255'],
  ...['100.100.100.200', '169.254.169.254', '169.254.169.254.', '2852039166', '0xa9fea9fe'],
  ...['0251.0376.0251.0376', '169.254.43518', '169.16689662', '169.254.0.1', '169.254.170.2'],
  // Services of clouds, and blocks kept for special use.
  ...['168.63.129.16', '192.0.0.192', '192.0.0.1', '192.0.2.1', '198.51.100.7', '203.0.113.9'],
  ...['198.18.0.1', '198.19.255.255', '192.88.99.1', '224.0.0.1', '239.255.255.250', '240.0.0.1'],
  ...[
    '255.255.255.255',
    '0xffffffff',
    '4294967295',
    '192.31.196.1',
    '192.52.193.1',
    '192.175.48.1',
  ],
  // IPv6.
  ...['[::1]', '[0:0:0:0:0:0:0:1]', '[0000:0000::0001]', '[::]', '[::0.0.0.1]', '[0::0]'],
  ...['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[0:0:0:0:0:ffff:7f00:0001]', '[::ffff:10.0.0.1]'],
  ...['[::ffff:a9fe:a9fe]', '[::ffff:0:127.0.0.1]', '[::ffff:0:7f00:1]', '[::ffff:0.0.0.0]'],
  ...['[::ffff:8.8.8.8]', '[::127.0.0.1]', '[::7f00:1]', '[::8.8.8.8]', '[::a9fe:a9fe]'],
  ...['[64:ff9b::127.0.0.1]', '[64:ff9b::7f00:1]', '[64:ff9b::10.0.0.1]', '[64:ff9b::a9fe:a9fe]'],
  ...['[64:ff9b:1::127.0.0.1]', '[64:ff9b:1::1]', '[64:ff9b:1:abcd::8.8.8.8]'],
  ...['[2002:7f00:1::]', '[2002:0a00:1::1]', '[2002:a9fe:a9fe::]', '[2002:808:808::1]'],
  ...['[2001::1]', '[2001:0:53aa:64c:0:0:80ff:fffe]', '[2001:db8::1]', '[3fff::1]', '[5f00::1]'],
  ...[
    '[fe80::1]',
    '[febf::1]',
    '[fec0::1]',
    '[feff::1]',
    '[fc00::1]',
    '[fd00::1]',
    '[fd00:ec2::254]',
  ],
  ...[
    '[ff02::1]',
    '[ff0e::1]',
    '[100::1]',
    '[100:0:0:1::1]',
    '[4000::1]',
    '[e000::1]',
    '[2001:2::1]',
  ],
  ...['[2001:10::1]', '[2001:20::1]', '[2620:4f:8000::1]', '[2001:200::5efe:127.0.0.1]'],
  ...['[2001:200::200:5efe:10.0.0.1]', '[::ffff:100.64.0.1]', '[::FFFF:C0A8:0101]'],
  // Names that point inside.
  ...['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'ⓛocalhost', 'inside.test'],
  ...['metadata.google.internal', 'both.test', 'mapped.test', 'six.test', '127.0.0.1.inside.test'],
];

const NAMES = {
  localhost: ['127.0.0.1', '::1'],
  'localhost.': ['127.0.0.1'],
  'a.localhost': ['::1'],
  'inside.test': ['10.1.2.3'],
  '127.0.0.1.inside.test': ['127.0.0.1'],
  'metadata.google.internal': ['169.254.169.254'],
  'both.test': ['93.184.216.34', '192.168.0.9'],
  'mapped.test': ['::ffff:127.0.0.1'],
  'six.test': ['2606:2800:220:1::1', 'fd12::1'],
};

describe('an address that points inside', () => {
  it('has more than 120 spellings here', () => {
    expect(new Set(INSIDE).size).toBeGreaterThanOrEqual(120);
  });

  it.each(INSIDE)('is refused as http://%s/', async (host) => {
    const { get } = fetcher({ names: NAMES });
    expect(['private_address', 'bad_url']).toContain(await reasonOf(get(`http://${host}/`)));
    expect(['private_address', 'bad_url']).toContain(await reasonOf(get(`https://${host}:80/x?y`)));
  });

  it('is told from a public one', () => {
    const open = ['8.8.8.8', '1.1.1.1', '93.184.216.34', '172.32.0.1', '100.128.0.1', '11.0.0.1'];
    const openSix = ['2606:4700:4700::1111', '2a00:1450::1', '64:ff9b::8.8.8.8', '2001:4860::8888'];
    expect([...open, ...openSix].filter((address) => !isPublicAddress(address))).toEqual([]);
    expect(['', 'host', '1.2.3', '::1%eth0', '300.1.1.1'].filter(isPublicAddress)).toEqual([]);
  });
});

describe('the form of an address', () => {
  const FORMS = {
    scheme: [
      ...[
        'file:///etc/passwd',
        'ftp://example.com/',
        'gopher://example.com:70/_x',
        'data:text/html,x',
      ],
      ...[
        'javascript:alert(1)',
        'blob:https://example.com/1',
        'ws://example.com/',
        'mailto:a@b.example',
      ],
      ...[
        'view-source:http://example.com/',
        'jar:http://example.com/!/',
        'unix:/var/run/docker.sock',
      ],
    ],
    bad_url: [
      ...[
        '',
        'example.com',
        '//example.com/',
        '/etc/passwd',
        'http://',
        'http:///',
        'https://[::1',
        'x',
      ],
      ...[
        'http://[fe80::1%25eth0]/',
        'http://exa mple.com/',
        'http://256.1.1.1/',
        'http://1.2.3.4.5/',
      ],
      ...[
        'http://0x100000000/',
        'http://a:b:c/',
        'http://example.com:99999/',
        `http://e.example/${'x'.repeat(9000)}`,
      ],
    ],
    credentials: [
      ...[
        'http://user@example.com/',
        'https://user:pass@example.com/',
        'http://:pass@example.com/',
      ],
      ...[
        'http://example.com@127.0.0.1/',
        'http://127.0.0.1:80@example.com/',
        'http://a%40b:c@d.example/',
      ],
    ],
    port: [
      ...['http://example.com:22/', 'http://example.com:25/', 'https://example.com:8443/'],
      ...['http://example.com:6379/', 'http://example.com:11434/', 'http://example.com:0/'],
    ],
    not_found: ['http://nowhere.test/', 'http://127.0.0.1.nip.test/'],
  };

  it.each(Object.entries(FORMS))('is refused: %s', async (reason, urls) => {
    const { get } = fetcher();
    for (const url of urls) expect([url, await reasonOf(get(url))]).toEqual([url, reason]);
  });

  it('is said without its path, which may hold a secret', async () => {
    const { get } = fetcher();
    const failure = get('http://10.0.0.1/reset?token=abcdef').catch((error) => error.message);
    expect(await failure).not.toContain('abcdef');
  });
});

describe('a name that changes its mind', () => {
  it('is asked once per connection, and the connection gets what was checked', async () => {
    let hits = 0;
    const port = await serve((_request, response) => {
      hits += 1;
      response.end('inside');
    });
    const answers = [['192.0.2.1', '203.0.113.1'], ['127.0.0.1']];
    let asked = 0;
    const fetch = createSafeFetch({
      rules: () => ({ ports: [port], allowPrivateHosts: [] }),
      resolver: async () => answers[asked++] ?? ['127.0.0.1'],
    });
    const once = () =>
      fetch(`http://rebind.test:${port}/`, { signal: AbortSignal.timeout(45_000) });
    expect(await reasonOf(once())).toBe('private_address');
    expect(await reasonOf(once())).toBe('private_address');
    expect([asked, hits]).toEqual([2, 0]);
  });

  it('cannot turn inward between the check and the connection', async () => {
    let hits = 0;
    const port = await serve((_request, response) => {
      hits += 1;
      response.end('inside');
    });
    let asked = 0;
    const fetch = createSafeFetch({
      rules: () => ({ ports: [port], allowPrivateHosts: [] }),
      resolver: async () => {
        asked += 1;
        return asked === 1 ? ['93.184.216.34'] : ['127.0.0.1'];
      },
    });
    const options = { signal: new AbortController().signal, timeoutMs: 700 };
    const reason = await reasonOf(fetch(`http://rebind.test:${port}/`, options));
    expect(['timeout', 'unreachable']).toContain(reason);
    expect([asked, hits]).toEqual([1, 0]);
  });

  it('is checked anew when a redirect comes back to it', async () => {
    let hits = 0;
    const port = await serve((_request, response) => {
      hits += 1;
      response.writeHead(302, { location: `http://rebind.test:${port}/` }).end();
    });
    const { get, asked } = fetcher({
      names: { 'start.test': ['127.0.0.1'], 'rebind.test': ['127.0.0.1'] },
      allow: [`start.test:${port}`],
      ports: [port],
    });
    expect(await reasonOf(get(`http://start.test:${port}/`))).toBe('private_address');
    expect(hits).toBe(1);
    expect(asked).toEqual(['start.test', 'rebind.test']);
  });
});

describe('a redirect', () => {
  const TARGETS = [
    'http://127.0.0.1/',
    'http://localhost/',
    'http://169.254.169.254/latest/meta-data/',
    'http://[::1]/',
    'http://0x7f.1/',
    '//127.0.0.1/',
    'http://2130706433/',
  ];

  it.each(TARGETS)('to %s is refused', async (target) => {
    const port = await serve((_request, response) => {
      response.writeHead(302, { location: target }).end();
    });
    const { get } = fetcher({ names: NAMES, allow: [`127.0.0.1:${port}`] });
    expect(await reasonOf(get(`http://127.0.0.1:${port}/`))).toBe('private_address');
  });

  it.each(['file:///etc/passwd', 'data:text/plain,x', 'javascript:1'])(
    'to %s is refused',
    async (target) => {
      const port = await serve((_request, response) => {
        response.writeHead(301, { location: target }).end();
      });
      const { get } = fetcher({ allow: [`127.0.0.1:${port}`] });
      expect(await reasonOf(get(`http://127.0.0.1:${port}/`))).toBe('scheme');
    },
  );

  it('is followed three times and not twenty', async () => {
    let hits = 0;
    const port = await serve((request, response) => {
      hits += 1;
      const left = Number(request.url?.slice(1));
      if (left === 0) response.end('there');
      else response.writeHead(307, { location: `/${left - 1}` }).end();
    });
    const { get } = fetcher({ allow: [`127.0.0.1:${port}`] });
    const answer = await get(`http://127.0.0.1:${port}/3`);
    expect(answer.url).toBe(`http://127.0.0.1:${port}/0`);
    hits = 0;
    expect(await reasonOf(get(`http://127.0.0.1:${port}/20`))).toBe('redirects');
    expect(hits).toBe(4);
  });

  it('takes no credentials to another origin, and no cookies anywhere', async () => {
    const seen: (string | undefined)[][] = [];
    const port = await serve((request, response) => {
      const { authorization, cookie } = request.headers;
      seen.push([request.headers.host, authorization, cookie, request.headers['x-key'] as string]);
      const isLast = request.url === '/end';
      if (isLast) response.end('there');
      else {
        const location = request.url === '/' ? '/again' : `http://other.test:${port}/end`;
        response.writeHead(302, { location, 'set-cookie': 'session=1' }).end();
      }
    });
    const { get } = fetcher({
      names: { 'one.test': ['127.0.0.1'], 'other.test': ['127.0.0.1'] },
      allow: [`one.test:${port}`, `other.test:${port}`],
    });
    const headers = { authorization: 'Bearer t', 'x-key': 'k', cookie: 'a=b' };
    const answer = await get(`http://one.test:${port}/`, { headers });
    expect(seen).toEqual([
      [`one.test:${port}`, 'Bearer t', undefined, 'k'],
      [`one.test:${port}`, 'Bearer t', undefined, 'k'],
      [`other.test:${port}`, undefined, undefined, undefined],
    ]);
    expect(answer.headers.has('set-cookie')).toBe(false);
  });
});

describe('an answer that wants too much', () => {
  const ZEROS = Buffer.alloc(20_000_000);
  const BOMBS = {
    gzip: gzipSync(ZEROS),
    deflate: deflateSync(ZEROS),
    br: brotliCompressSync(ZEROS),
    zstd: zstdCompressSync(ZEROS),
  };

  it.each(Object.entries(BOMBS))('is stopped while it unpacks: %s', async (encoding, bomb) => {
    expect(bomb.length).toBeLessThan(100_000);
    const port = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': encoding }).end(bomb);
    });
    const { get } = fetcher({ allow: [`127.0.0.1:${port}`] });
    expect(await reasonOf(get(`http://127.0.0.1:${port}/`))).toBe('too_large');
  });

  it('is stopped at 2 MB however it is sent', async () => {
    const port = await serve((_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536)));
      };
      response.on('drain', more);
      more();
    });
    const { get } = fetcher({ allow: [`127.0.0.1:${port}`] });
    expect(await reasonOf(get(`http://127.0.0.1:${port}/`))).toBe('too_large');
  });

  it('is given its time and no more, drop by drop too', async () => {
    const port = await serve((_request, response) => {
      const drip = setInterval(() => response.write('x'), 20);
      response.on('close', () => clearInterval(drip));
    });
    const { get } = fetcher({ allow: [`127.0.0.1:${port}`] });
    expect(await reasonOf(get(`http://127.0.0.1:${port}/`, { timeoutMs: 300 }))).toBe('timeout');
  });

  it('is given its time and no more where nothing comes at all', async () => {
    const port = await serve(() => undefined);
    const { get } = fetcher({ allow: [`127.0.0.1:${port}`] });
    expect(await reasonOf(get(`http://127.0.0.1:${port}/`, { timeoutMs: 300 }))).toBe('timeout');
  });

  it('has small headers', async () => {
    const port = await serve((_request, response) => {
      response.writeHead(200, { 'x-large': 'x'.repeat(40_000) }).end('x');
    });
    const { get } = fetcher({ allow: [`127.0.0.1:${port}`] });
    expect(await reasonOf(get(`http://127.0.0.1:${port}/`))).toBe('too_large');
  });

  it('is unpacked once: a bomb in a bomb is not opened', async () => {
    const port = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip, gzip' }).end(gzipSync(BOMBS.gzip));
    });
    const { get } = fetcher({ allow: [`127.0.0.1:${port}`] });
    expect(await reasonOf(get(`http://127.0.0.1:${port}/`))).toBe('unreadable');
  });

  it('says so where it is not what it claims', async () => {
    const port = await serve((request, response) => {
      const body = request.url === '/cut' ? gzipSync('a'.repeat(9000)).subarray(0, 30) : 'plain';
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(body);
    });
    const { get } = fetcher({ allow: [`127.0.0.1:${port}`] });
    expect(await reasonOf(get(`http://127.0.0.1:${port}/`))).toBe('unreadable');
    expect(await reasonOf(get(`http://127.0.0.1:${port}/cut`))).toBe('unreadable');
  });

  it('leaves when the caller does', async () => {
    const port = await serve(() => undefined);
    const { get } = fetcher({ allow: [`127.0.0.1:${port}`] });
    const stop = new AbortController();
    const work = get(`http://127.0.0.1:${port}/`, { signal: stop.signal });
    stop.abort(new Error('the turn was stopped'));
    await expect(work).rejects.toThrow('the turn was stopped');
  });
});

describe('an ordinary answer', () => {
  const BODIES = {
    gzip: gzipSync('hello'),
    deflate: deflateSync('hello'),
    'deflate without a header': deflateRawSync('hello'),
    br: brotliCompressSync('hello'),
    zstd: zstdCompressSync('hello'),
    identity: Buffer.from('hello'),
  };

  it.each(Object.entries(BODIES))('is read: %s', async (encoding, body) => {
    const port = await serve((_request, response) => {
      const name = encoding.split(' ')[0];
      response.writeHead(200, { 'content-encoding': name, 'content-type': 'text/plain' }).end(body);
    });
    const { get } = fetcher({ allow: [`127.0.0.1:${port}`] });
    const answer = await get(`http://127.0.0.1:${port}/a?b=c#d`);
    expect(Buffer.from(answer.body).toString()).toBe('hello');
    expect(answer).toMatchObject({
      status: 200,
      contentType: 'text/plain',
      url: `http://127.0.0.1:${port}/a?b=c`,
    });
  });

  it('may come from a listed host at its listed port only', async () => {
    const port = await serve((_request, response) => response.end('inside'));
    const { get } = fetcher({ allow: ['127.0.0.1:1'] });
    expect(await reasonOf(get(`http://127.0.0.1:${port}/`))).toBe('port');
    const wide = fetcher({ allow: ['127.0.0.1'], ports: [port] });
    expect((await wide.get(`http://127.0.0.1:${port}/`)).status).toBe(200);
  });

  it('to HEAD has no body', async () => {
    const port = await serve((request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'x-method': request.method }).end();
    });
    const { get } = fetcher({ allow: [`127.0.0.1:${port}`] });
    const answer = await get(`http://127.0.0.1:${port}/`, { method: 'HEAD' });
    expect([answer.body.length, answer.headers.get('x-method')]).toEqual([0, 'HEAD']);
  });
});
