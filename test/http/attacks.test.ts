import { describe, expect, it } from 'vitest';
import { clientKey, isHostAllowed } from '../../src/http/authentication.ts';
import { assertSafeBinding } from '../../src/http/server.ts';
import { ConfigError } from '../../src/kernel/message/errors.ts';
import { askRaw, startHttp } from './http-rig.ts';

const MESSAGES = '/api/web/chats/a/messages';
const TOKEN = 'a-long-and-random-token';
const hello = { clientId: 'c1', text: 'hello' };

describe('a name that is not ours (DNS rebinding)', () => {
  it.each([
    'evil.example',
    'evil.example:18790',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    'evil.example@127.0.0.1',
    'evil.example#127.0.0.1',
    '192.0.2.7',
    '[::2]',
    '0.0.0.0',
    '127.1.evil',
    '127.0.0.1:99999999',
    '127.0.0.1:80:80',
  ])('gets nothing as Host "%s"', async (host) => {
    await using rig = await startHttp();
    for (const path of [
      '/',
      '/healthz',
      '/diagrams/',
      '/api/web/chats',
      '/api/web/chats/a/events',
    ]) {
      const answer = await rig.ask(path, { headers: { host } });
      expect([path, answer.status]).toEqual([path, 421]);
    }
    expect((await rig.post(MESSAGES, hello, { host })).status).toBe(421);
    expect(rig.host.entries).toEqual([]);
  });

  it.each(['localhost', 'LOCALHOST:1', '127.0.0.1', '[::1]:18790', 'bot.example', 'BOT.example:8'])(
    'is not "%s"',
    async (host) => {
      await using rig = await startHttp({ allowedHosts: ['bot.example:443'] });
      expect((await rig.ask('/healthz', { headers: { host } })).status).toBe(200);
    },
  );

  it.each([
    ['GET / HTTP/1.1\r\nHost:\r\n\r\n', 421],
    ['GET / HTTP/1.1\r\n\r\n', 400],
    ['GET / HTTP/1.0\r\n\r\n', 421],
    ['GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n', 421],
    ['GET / HTTP/1.1\r\nHost: evil.example\r\nHost: 127.0.0.1\r\n\r\n', 421],
    ['GET / HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: 127.0.0.1\r\n\r\n', 421],
  ])('cannot be smuggled in by %j', async (bytes, status) => {
    await using rig = await startHttp();
    expect(await askRaw(rig.port, bytes)).toBe(status);
  });

  it.each([
    ['192.168.1.5:18790', '192.168.1.5', true],
    ['192.168.1.5:18790', '::ffff:192.168.1.5', true],
    ['192.168.1.6', '192.168.1.5', false],
    ['[FD00::1]:8', 'fd00::1', true],
    ['bot.lan', '192.168.1.5', false],
  ])('Host %s over a connection to %s: %s', (host, local, allowed) => {
    expect(isHostAllowed(host, local, { host: '0.0.0.0', allowedHosts: [] })).toBe(allowed);
  });
});

describe('another web page', () => {
  const foreign = (port: number) => [
    { origin: 'null' },
    { origin: 'https://evil.example' },
    { origin: `http://evil.example:${port}` },
    { origin: `http://127.0.0.1.evil.example:${port}` },
    { origin: `http://evil-127.0.0.1:${port}` },
    { origin: `http://127.0.0.1:${port}.evil.example` },
    { origin: `HTTP://127.0.0.1:${port}` },
    { origin: `http://127.0.0.1:${port}/` },
    { origin: `http://localhost:${port}` },
    { origin: 'http://127.0.0.1' },
    { origin: `http://127.0.0.1:${port + 1}` },
    { origin: `chrome-extension://127.0.0.1:${port}` },
    { origin: '' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: `http://127.0.0.1:${port}`, 'sec-fetch-site': 'cross-site' },
  ];

  it('can neither write, stop, read along nor look', async () => {
    await using rig = await startHttp();
    for (const headers of foreign(rig.port)) {
      const answers = [
        await rig.post(MESSAGES, hello, headers),
        await rig.post('/api/web/chats/a/stop', {}, headers),
        await rig.ask('/api/web/chats/a/events', { headers }),
        await rig.ask('/api/status', { headers }),
      ];
      expect([headers, ...answers.map(({ status }) => status)]).toEqual([
        headers,
        403,
        403,
        403,
        403,
      ]);
      expect(answers[0]?.headers['access-control-allow-origin']).toBeUndefined();
    }
    expect(rig.host.entries).toEqual([]);
    expect(rig.stops).toEqual([]);
  });

  it('gets no permission by asking first', async () => {
    await using rig = await startHttp();
    const answer = await rig.ask(MESSAGES, {
      method: 'OPTIONS',
      headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
    });
    expect(answer.status).toBe(403);
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  });

  it('is not our own, nor a program without any', async () => {
    await using rig = await startHttp();
    const own = { origin: `http://127.0.0.1:${rig.port}`, 'sec-fetch-site': 'same-origin' };
    expect((await rig.post(MESSAGES, hello, own)).status).toBe(202);
    expect((await rig.post(MESSAGES, { ...hello, clientId: 'c2' })).status).toBe(202);
  });
});

describe('a body that is not our JSON', () => {
  it.each([
    'text/plain',
    'text/plain; application/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/json2',
    'application/json+x',
    'xapplication/json',
    'application/json;',
    'application/json,text/plain',
    'application/json text/plain',
    'application/json; charset=utf-16',
    'application/json;charset=utf-8;x=y',
    'application/json\tx',
    'application /json',
    'application/*',
    '*/*',
    'json',
    '',
  ])('is refused unread as "%s"', async (type) => {
    await using rig = await startHttp();
    const answer = await rig.post(MESSAGES, hello, { 'content-type': type });
    expect(answer.status).toBe(415);
    expect(rig.host.entries).toEqual([]);
  });

  it.each([
    'application/json',
    'APPLICATION/JSON',
    'application/json; charset=UTF-8',
    ' application/json ',
  ])('is none as "%s"', async (type) => {
    await using rig = await startHttp();
    expect((await rig.post(MESSAGES, hello, { 'content-type': type })).status).toBe(202);
  });

  it.each([
    '',
    'null',
    '[]',
    '"text"',
    '{}',
    '{"clientId":"c1"}',
    '{"clientId":"c1","text":""}',
    '{"clientId":"c1","text":"  \\n "}',
    '{"clientId":"c1","text":7}',
    '{"clientId":"","text":"x"}',
    '{"clientId":"a/b","text":"x"}',
    '{"clientId":"c1","text":"x","sender":"admin"}',
    '{"clientId":"c1","text":"x","__proto__":{"a":1}}',
    '{"clientId":"c1","text":"x"',
  ])('is refused in words as %j', async (body) => {
    await using rig = await startHttp();
    const headers = { 'content-type': 'application/json' };
    const answer = await rig.ask(MESSAGES, { method: 'POST', headers, body });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body).error).toMatchObject({ code: 'invalid_request' });
    expect(answer.body).not.toMatch(/ at |node_modules|\.ts/);
    expect(rig.host.entries).toEqual([]);
  });

  it('is refused when it is larger than 1 MB', async () => {
    await using rig = await startHttp();
    const answer = await rig.post(MESSAGES, { ...hello, text: 'x'.repeat(1_100_000) });
    expect(answer.status).toBe(413);
    expect((await rig.post(MESSAGES, { ...hello, text: 'x'.repeat(900_000) })).status).toBe(202);
  });

  it.each([
    '/api/web/chats/..%2fb/messages',
    '/api/web/chats/%00/messages',
    '/api/web/chats/a%20b/messages',
  ])('never names a chat like %s', async (path) => {
    await using rig = await startHttp();
    expect((await rig.post(path, hello)).status).toBe(400);
  });
});

describe('the token', () => {
  const everything = [
    ['GET', '/api/web/chats'],
    ['GET', '/api/web/chats/a/events'],
    ['POST', MESSAGES],
    ['POST', '/api/web/chats/a/stop'],
    ['GET', '/api/status'],
    ['GET', '/readyz'],
    ['GET', '/nothing'],
    ['PUT', '/api/web/chats/a'],
    ['DELETE', '/'],
  ] as const;

  it.each(everything)('guards %s %s', async (method, path) => {
    await using rig = await startHttp({ token: TOKEN });
    const headers = { 'content-type': 'application/json' };
    const answer = await rig.ask(path, { method, headers, body: method === 'POST' ? '{}' : '' });
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toBe('Bearer');
    expect(answer.body).not.toContain(TOKEN);
  });

  it.each([
    '',
    'Bearer',
    'Bearer ',
    `bearer${TOKEN}`,
    `Basic ${TOKEN}`,
    `Bearer ${TOKEN} x`,
    `Bearer ${TOKEN.toUpperCase()}`,
    `Bearer ${TOKEN.slice(0, -1)}`,
    `Bearer ${TOKEN}x`,
    'Bearer undefined',
    'Bearer null',
    TOKEN,
  ])('is not "%s"', async (authorization) => {
    await using rig = await startHttp({ token: TOKEN });
    expect((await rig.ask('/api/status', { headers: { authorization } })).status).toBe(401);
  });

  it('opens everything when it is right, and is not needed for the page and /healthz', async () => {
    await using rig = await startHttp({ token: TOKEN });
    const authorization = `Bearer ${TOKEN}`;
    expect((await rig.post(MESSAGES, hello, { authorization })).status).toBe(202);
    const script = /\/built\/[\w-]+\/app\.js/.exec((await rig.ask('/')).body)?.[0] ?? '';
    for (const path of ['/', '/healthz', '/diagrams/', '/logo.svg', script]) {
      expect([path, (await rig.ask(path)).status]).toEqual([path, 200]);
    }
  });

  it('cannot be taken from the address', async () => {
    await using rig = await startHttp({ token: TOKEN });
    expect((await rig.ask(`/api/status?token=${TOKEN}`)).status).toBe(401);
  });

  it('cannot be guessed: after 10 wrong ones five minutes pass, on loopback too', async () => {
    await using rig = await startHttp({ token: TOKEN });
    const guess = (token: string) =>
      rig.ask('/api/status', { headers: { authorization: `Bearer ${token}` } });
    const statuses = new Map<number, number>();
    for (let index = 0; index < 200; index += 1) {
      const { status } = await guess(`guess-${index}`);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    expect([...statuses]).toEqual([
      [401, 10],
      [429, 190],
    ]);
    const right = await guess(TOKEN);
    expect(right.status).toBe(429);
    expect(Number(right.headers['retry-after'])).toBeGreaterThan(0);
    await rig.clock.advance(299_000);
    expect((await guess(TOKEN)).status).toBe(429);
    await rig.clock.advance(1000);
    expect((await guess(TOKEN)).status).toBe(200);
  });

  it('is not counted as wrong when it is missing or comes from a foreign page', async () => {
    await using rig = await startHttp({ token: TOKEN });
    for (let index = 0; index < 12; index += 1) {
      await rig.ask('/api/status');
      const headers = { authorization: 'Bearer wrong', origin: 'https://evil.example' };
      await rig.ask('/api/status', { headers });
    }
    const headers = { authorization: `Bearer ${TOKEN}` };
    expect((await rig.ask('/api/status', { headers })).status).toBe(200);
  });

  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['::ffff:127.0.0.1', '127.0.0.1'],
    ['::FFFF:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2::9', '2001:db8:1:2'],
    ['::1', '0:0:0:0'],
    ['2001:db8::', '2001:db8:0:0'],
  ])('is limited per client: %s counts as %s', (address, key) => {
    expect(clientKey(address)).toBe(key);
  });

  it.each([
    ['127.0.0.1', '', false],
    ['localhost', '', false],
    ['::1', '', false],
    ['127.0.0.1', TOKEN, true],
    ['0.0.0.0', TOKEN, true],
    ['0.0.0.0', '', false],
    ['::', '', false],
    ['192.168.1.5', '', false],
    ['bot.example', '', false],
    ['', '', false],
    ['0.0.0.0', ' ', false],
    ['0.0.0.0', '\t\n', false],
    ['127.0.0.1', '   ', false],
    ['127.0.0.1', 'two words', false],
    ['127.0.0.1', 'schlüssel', false],
  ])('on %s as %j may start: %s', (host, token, isSafe) => {
    const start = () => assertSafeBinding(host, token);
    if (isSafe) expect(start).not.toThrow();
    else expect(start).toThrow(ConfigError);
  });
});

describe('a proxy nobody told us about', () => {
  it.each(['x-forwarded-for', 'x-real-ip', 'forwarded', 'via', 'x-forwarded-proto'])(
    'gets nothing without a token (%s), and no say in who asks with one',
    async (name) => {
      await using guarded = await startHttp({ token: TOKEN });
      const headers = { [name]: '127.0.0.1' };
      expect((await guarded.ask('/api/status', { headers })).status).toBe(401);
      const authorized = { ...headers, authorization: `Bearer ${TOKEN}` };
      expect((await guarded.ask('/api/status', { headers: authorized })).status).toBe(200);
    },
  );
});

describe('every answer', () => {
  it.each(['/', '/healthz', '/api/status', '/nothing', '/api/web/chats/%2e%2e/events'])(
    'has the security headers: %s',
    async (path) => {
      await using rig = await startHttp();
      const { headers } = await rig.ask(path);
      const policy = String(headers['content-security-policy']);
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain('unsafe');
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['referrer-policy']).toBe('no-referrer');
      expect(headers['x-powered-by']).toBeUndefined();
    },
  );

  it.each([
    '/../package.json',
    '/%2e%2e/server.ts',
    '/..%2fserver.ts',
    '/server.ts',
    '/built/../app.js/../../server.ts',
    '/built/app.js',
    '/built/another/app.js',
    '/diagrams/..%2f..%2fserver.ts',
    '/diagrams/frame.ts',
    '/page/app.js',
    '//etc/passwd',
    '/vendor/',
    '/index.html/x',
  ])('holds no file but the page’s own: %s', async (path) => {
    await using rig = await startHttp();
    const answer = await rig.ask(path);
    expect(answer.status).toBe(404);
    expect(answer.body).toContain('not_found');
  });
});
