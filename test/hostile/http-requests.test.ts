// Requests of somebody who may not be here, against every route, by table: each is refused in words,
// none with a fault of ours, and nothing they ask for happens.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { askRaw, type HttpRig, startHttp } from '../http/http-rig.ts';

const TOKEN = 'a-long-and-random-token-of-this-test';
const ROUTES: readonly (readonly [string, string])[] = [
  ['GET', '/readyz'],
  ['GET', '/api/status'],
  ['GET', '/api/v1/setup'],
  ['POST', '/api/v1/setup/channels/whatsapp/login'],
  ['POST', '/api/v1/setup/channels/telegram/restart'],
  ['POST', '/api/links'],
  ['GET', '/api/v1/people'],
  ['POST', '/api/v1/people/unknown-senders'],
  ['POST', '/api/v1/people/answers'],
  ['POST', '/api/v1/people/approvals'],
  ['GET', '/api/v1/approvals/rules'],
  ['POST', '/api/v1/approvals/rules/x/revoke'],
  ['POST', '/api/selftest'],
  ['GET', '/api/web/chats'],
  ['GET', '/api/web/chats/a/events'],
  ['POST', '/api/web/chats/a/messages'],
  ['POST', '/api/web/chats/a/stop'],
  ['POST', '/api/web/files'],
  ['GET', `/api/web/files/${'a'.repeat(64)}`],
];
const bearer = (value: string) => ({ authorization: `Bearer ${value}` });
/** What shows nothing, or the wrong thing, in a place that counts or in one that does not. */
const PROOFS: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['nothing', {}],
  ['an empty header', { authorization: '' }],
  ['an empty token', bearer('')],
  ['a blank token', bearer(' ')],
  ['the word null', bearer('null')],
  ['the word undefined', bearer('undefined')],
  ['the token behind another scheme', { authorization: `Basic ${TOKEN}` }],
  ['the token without a scheme', { authorization: TOKEN }],
  ['the token and more', bearer(`${TOKEN}, Bearer x`)],
  ['the beginning of the token', bearer(TOKEN.slice(0, -1))],
  ['the token in capitals', bearer(TOKEN.toUpperCase())],
  ['the token as a cookie', { cookie: `token=${TOKEN}` }],
  ['the token as X-Api-Key', { 'x-api-key': TOKEN }],
  ['the token as a proxy’s', { 'proxy-authorization': `Bearer ${TOKEN}` }],
  ['somebody else’s address', { 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '127.0.0.1' }],
  ['rights it claims', { 'x-scope': 'owner', 'x-role': 'owner', 'x-forwarded-user': 'owner' }],
  ['another method it claims', { 'x-http-method-override': 'GET', 'x-method-override': 'GET' }],
  ['another path it claims', { 'x-original-url': '/healthz', 'x-rewrite-url': '/healthz' }],
];
const BODY = JSON.stringify({ clientId: 'c', text: 'done', role: 'owner', scope: ['owner'] });
const JSON_TYPE = { 'content-type': 'application/json' };

let rig: HttpRig;
beforeAll(async () => {
  rig = await startHttp({ token: TOKEN });
});
afterAll(() => rig[Symbol.asyncDispose]());

const send = (
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body = BODY,
) => rig.ask(path, { method, headers, ...(method === 'POST' ? { body } : {}) });

function expectNothingHappened() {
  expect(rig.host.entries).toEqual([]);
  expect(rig.stops).toEqual([]);
  expect(rig.revocations).toEqual([]);
}

describe.each(ROUTES)('%s %s', (method, path) => {
  it.each(PROOFS)('is refused to one who shows %s', async (_what, proof) => {
    const answer = await send(method, path, { ...JSON_TYPE, ...proof });
    // Wrong tokens are looked at only so often; then they are refused unseen.
    expect([401, 429]).toContain(answer.status);
    expect(answer.body).not.toContain(TOKEN);
    expectNothingHappened();
  });

  it.each(['token', 'access_token', 'key', 'auth'])(
    'takes no token from the address (%s=)',
    async (name) => {
      const answer = await send(method, `${path}?${name}=${TOKEN}`, JSON_TYPE);
      expect(answer.status).toBe(401);
      expectNothingHappened();
    },
  );

  it.each(['PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND'])('knows no %s', async (other) => {
    const answer = await rig.ask(path, { method: other, headers: JSON_TYPE });
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.status).toBeLessThan(500);
    expectNothingHappened();
  });

  it('does not become a socket', async () => {
    const status = await askRaw(
      rig.port,
      `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
    );
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
  });
});

const TYPES = [
  'text/plain',
  'application/x-www-form-urlencoded',
  'application/json;',
  'application/json\t',
  'application/json; charset=utf-16',
  'application/json; charset=utf-8; x=1',
  'application/jsonp',
  'application/json/x',
  'application/vnd.api+json',
  'text/json',
  'application/*',
  '*/*',
  'json',
  ',application/json',
  'application/json,text/plain',
  'multipart/form-data; boundary=x',
  'application/xml',
  'Application/Json; Charset=UTF-7',
  'application/json ; charset=utf-8',
  '"application/json"',
  'application/json charset=utf-8',
  'application/octet-stream',
];

describe('a message with the right token', () => {
  it.each(TYPES)('is refused as %j', async (type) => {
    const headers = { 'content-type': type, ...bearer(TOKEN) };
    const fresh = await startHttp({ token: TOKEN });
    const answer = await fresh.ask('/api/web/chats/a/messages', {
      method: 'POST',
      headers,
      body: '{"clientId":"c","text":5}',
    });
    expect([400, 415]).toContain(answer.status);
    expect(fresh.host.entries).toEqual([]);
    await fresh[Symbol.asyncDispose]();
  });
});

const PATHS = [
  '/../../etc/passwd',
  '/..%2f..%2fetc%2fpasswd',
  '/%2e%2e/%2e%2e/etc/passwd',
  '/..%5c..%5cconfig.json',
  '/....//....//config.json',
  '/app.js/../../config.json',
  '/app.js%00.html',
  '/%c0%ae%c0%ae/config.json',
  '//evil.example/app.js',
  '/\\evil.example',
  '/state.db',
  '/config.json',
  '/.env',
  '/logs/nanobot.log',
  '/api/web/files/..%2f..%2fconfig.json',
  '/api/web/files/../../config.json',
  `/api/web/files/${'A'.repeat(64)}`,
  '/api/web/chats/..%2f..%2fsecrets/events',
  `/api/web/chats/${'x'.repeat(5000)}/events`,
  '/api/web/chats/%00/events',
  '/api/terminal/chats/../../status',
  '/API/STATUS',
  '/api//status',
  '/api/status/',
  '/api/status;jsessionid=1',
  '/api/%73tatus%2f',
  '/healthz/../api/status',
  '/healthz%2f..%2fapi%2fstatus',
  '/api/status%23/healthz',
  '/__proto__',
  '/constructor/prototype',
];

describe('a path', () => {
  it.each(PATHS)('that plays tricks gives nothing: %s', async (path) => {
    const status = await askRaw(rig.port, `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    expect(status).toBeGreaterThanOrEqual(300);
    expect(status).toBeLessThan(500);
  });
});

const BYTES = [
  'GARBAGE\r\n\r\n',
  'GET / HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n',
  'POST /api/links HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'POST /api/links HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n',
  'POST /api/links HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n',
  `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`,
  `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`,
  'GET / HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n',
  'GET / HTTP/1.1\r\n Host: 127.0.0.1\r\n\r\n',
  '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003\r\n\r\n',
  'CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n',
];

describe('bytes that are no request of ours', () => {
  it.each(BYTES)('are refused: %j', async (bytes) => {
    const status = await askRaw(rig.port, bytes);
    expect(Number.isNaN(status) || (status >= 400 && status < 500)).toBe(true);
    expect((await rig.ask('/healthz')).status).toBe(200);
    expectNothingHappened();
  });
});
