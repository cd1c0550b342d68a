// Logins, links and tokens under attack: every try gets a refusal and has no effect, and whoever was
// let in stays in.

import { describe, expect, it } from 'vitest';
import { type Ask, askRaw, type HttpRig, startHttp } from './http-rig.ts';

const TOKEN = 'a-long-and-random-token';
const JSON_TYPE = { 'content-type': 'application/json' };
const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });
const WELL_FORMED = 'A'.repeat(43);

/** What an attack can be built from: a live session, a code, and ones that count no more. */
type Loot = {
  readonly session: string;
  readonly code: string;
  readonly usedCode: string;
  readonly port: number;
};

type Attack = readonly [name: string, path: string, ask: (loot: Loot) => Ask, status: number];

const post = (headers: Ask['headers'], body: unknown): Ask => ({
  method: 'POST',
  headers: { ...JSON_TYPE, ...headers },
  body: typeof body === 'string' ? body : JSON.stringify(body),
});

/** Everything that needs somebody to be known. */
const GUARDED = [
  ['GET', '/api/status'],
  ['GET', '/readyz'],
  ['GET', '/api/v1/setup'],
  ['GET', '/api/web/chats'],
  ['GET', '/api/web/chats/a/events'],
  ['POST', '/api/web/chats/a/messages'],
  ['POST', '/api/web/chats/a/stop'],
  ['POST', '/api/v1/setup/channels/whatsapp/login'],
  ['POST', '/api/v1/setup/channels/whatsapp/restart'],
  ['POST', '/api/links'],
] as const;

/** What somebody shows who has nothing that counts. */
const FALSE_PROOFS: readonly (readonly [string, (loot: Loot) => Ask['headers']])[] = [
  ['nothing', () => ({})],
  ['an unused code as token', ({ code }) => bearer(code)],
  ['a session that never was', () => bearer(`page_${WELL_FORMED}`)],
  ['a session cut short', ({ session }) => bearer(session.slice(0, -1))],
  ['a session in other letters', ({ session }) => bearer(session.toUpperCase())],
  ['a session as Basic', ({ session }) => ({ authorization: `Basic ${session}` })],
  ['a cookie of another port', ({ session }) => ({ cookie: `nanobot.session=${session}` })],
  ['the token as a cookie', () => ({ cookie: `token=${TOKEN}; authorization=Bearer ${TOKEN}` })],
  ['the token in headers of its own', () => ({ 'x-token': TOKEN, 'x-api-key': TOKEN })],
  ['a claimed right', () => ({ 'x-user': 'owner', 'x-role': 'admin', 'x-scope': '*' })],
  ['a claimed address', () => ({ 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '::1' })],
];

const FALSE_PROOF_ATTACKS = GUARDED.flatMap(([method, path]) =>
  FALSE_PROOFS.map(([name, headers]): Attack => {
    const ask = (loot: Loot): Ask =>
      method === 'POST' ? post(headers(loot), {}) : { method, headers: headers(loot) ?? {} };
    return [`${name} for ${method} ${path}`, path, ask, 401];
  }),
);

const foreignHeaders = ({ port }: Loot): readonly (readonly [string, Ask['headers'], number])[] => [
  ['a foreign page', { origin: 'https://evil.example' }, 403],
  ['a page without origin', { origin: 'null' }, 403],
  ['a page on another port', { origin: `http://127.0.0.1:${port + 1}` }, 403],
  ['a page of another name of this machine', { origin: `http://localhost:${port}` }, 403],
  ['a page on a site beside', { 'sec-fetch-site': 'same-site' }, 403],
  ['a page across sites', { 'sec-fetch-site': 'cross-site' }, 403],
  ['a rebound name', { host: 'evil.example' }, 421],
  ['a name that ends like ours', { host: `evil.127.0.0.1:${port}` }, 421],
  ['two names', { host: `127.0.0.1:${port},evil.example` }, 421],
];

const LOGIN_ATTACKS: readonly Attack[] = [
  ['a used code', '/api/login', ({ usedCode }) => post({}, { code: usedCode }), 401],
  ['a code that never was', '/api/login', () => post({}, { code: WELL_FORMED }), 401],
  ['the token as code', '/api/login', () => post({}, { code: TOKEN }), 400],
  ['a session as code', '/api/login', ({ session }) => post({}, { code: session }), 400],
  ['an empty code', '/api/login', () => post({}, { code: '' }), 400],
  ['no code', '/api/login', () => post({}, {}), 400],
  ['a null code', '/api/login', () => post({}, { code: null }), 400],
  ['a list of codes', '/api/login', ({ code }) => post({}, { code: [code] }), 400],
  ['a code with a wish', '/api/login', ({ code }) => post({}, { code, kind: 'token' }), 400],
  ['a code with a blank', '/api/login', ({ code }) => post({}, { code: `${code} ` }), 400],
  ['a pattern for a code', '/api/login', () => post({}, { code: '.*' }), 400],
  ['a prototype', '/api/login', ({ code }) => post({}, `{"code":"${code}","__proto__":{}}`), 400],
  ['half a body', '/api/login', () => post({}, '{"code":"'), 400],
  ['a list', '/api/login', () => post({}, '[]'), 400],
  ['a large body', '/api/login', () => post({}, { code: 'x'.repeat(2000) }), 413],
  [
    'a form',
    '/api/login',
    ({ code }) => ({
      ...post({}, `code=${code}`),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    }),
    415,
  ],
  [
    'plain text',
    '/api/login',
    ({ code }) => ({ ...post({}, { code }), headers: { 'content-type': 'text/plain' } }),
    415,
  ],
  ['a code in the address', '/api/login?code=x', () => post({}, {}), 400],
  ['a look at the login', '/api/login', () => ({}), 401],
  ['a login by PUT', '/api/login', ({ code }) => ({ ...post({}, { code }), method: 'PUT' }), 401],
  ['a login by another path', '/api/login/', ({ code }) => post({}, { code }), 401],
  ['a login in capitals', '/API/login', ({ code }) => post({}, { code }), 401],
  ['a login twice encoded', '/api%2flogin', ({ code }) => post({}, { code }), 401],
  ['a login above the root', '/x/../api/links', () => post({}, {}), 401],
  ['a changed method', '/api/links', () => post({ 'x-http-method-override': 'GET' }, {}), 401],
  ['a link by a session', '/api/links', ({ session }) => post(bearer(session), {}), 403],
  [
    'a revocation by a session',
    '/api/links',
    ({ session }) => post(bearer(session), { revokeAll: true }),
    403,
  ],
  ['a link for a wish', '/api/links', () => post(bearer(TOKEN), { kind: 'token' }), 400],
  ['a revocation in words', '/api/links', () => post(bearer(TOKEN), { revokeAll: 'yes' }), 400],
];

async function withLoot(work: (rig: HttpRig, loot: Loot) => Promise<void>) {
  await using rig = await startHttp({ token: TOKEN });
  const usedCode = (await rig.access.makeCode()).code;
  const session = (await rig.access.redeem(usedCode)) ?? '';
  const loot = { session, usedCode, code: (await rig.access.makeCode()).code, port: rig.port };
  await work(rig, loot);
  expect(rig.host.entries).toEqual([]);
  expect(rig.stops).toEqual([]);
  expect(rig.revocations).toEqual([]);
  expect((await rig.ask('/api/status', { headers: bearer(session) })).status).toBe(200);
  expect((await rig.ask('/api/login', post({}, { code: loot.code }))).status).toBe(200);
}

describe('an attack on the logins', () => {
  it.each([...FALSE_PROOF_ATTACKS, ...LOGIN_ATTACKS])(
    'gets nothing, changes nothing, locks nobody out: %s',
    async (_name, path, ask, status) => {
      await withLoot(async (rig, loot) => {
        const answer = await rig.ask(path, ask(loot));
        expect(answer.status).toBe(status);
        expect(answer.body).not.toContain(TOKEN);
        expect(answer.headers['set-cookie']).toBeUndefined();
      });
    },
  );

  it('from elsewhere gets nothing even with what is right', async () => {
    await withLoot(async (rig, loot) => {
      for (const [name, headers, status] of foreignHeaders(loot)) {
        const answers = [
          await rig.ask('/api/login', post({ ...headers }, { code: loot.code })),
          await rig.ask('/api/links', post({ ...headers, ...bearer(TOKEN) }, { revokeAll: true })),
          await rig.ask('/api/status', { headers: { ...headers, ...bearer(loot.session) } }),
          await rig.ask('/api/web/chats/a/stop', post({ ...headers, ...bearer(loot.session) }, {})),
        ];
        const statuses = answers.map((answer) => answer.status);
        expect([name, ...statuses]).toEqual([name, status, status, status, status]);
      }
    });
  });

  it.each([
    [
      'headers without end',
      `GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`,
      431,
    ],
    [
      'a token without end',
      `GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${'y'.repeat(20_000)}\r\n\r\n`,
      431,
    ],
    [
      'an address without end',
      `GET /${'y'.repeat(20_000)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`,
      431,
    ],
    [
      'two lengths',
      'POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      400,
    ],
    [
      'a length and chunks',
      'POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      400,
    ],
    [
      'a length that is none',
      'POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n',
      400,
    ],
    ['a method that is none', 'LOGIN /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n', 400],
    ['a bare line end', 'GET /api/status HTTP/1.1\nHost: 127.0.0.1\n\n', 400],
    [
      'a folded header',
      'GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer\r\n x\r\n\r\n',
      400,
    ],
    ['a NUL in a header', 'GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\nx: \0\r\n\r\n', 400],
    [
      'a body of a gigabyte',
      'POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n',
      413,
    ],
  ])('with %s ends before anything is read', async (_name, bytes, status) => {
    await withLoot(async (rig) => expect(await askRaw(rig.port, bytes)).toBe(status));
  });

  it('cannot guess: ten wrong tokens close the way for a minute, but not for those inside', async () => {
    await withLoot(async (rig, { session }) => {
      const guesses = Array.from({ length: 1000 }, (_, index) =>
        rig.ask('/api/status', { headers: bearer(`guess-${index}`) }),
      );
      const statuses = (await Promise.all(guesses)).map((answer) => answer.status);
      expect(statuses.filter((status) => status === 401)).toHaveLength(10);
      expect(statuses.filter((status) => status === 429)).toHaveLength(990);
      expect((await rig.ask('/api/status', { headers: bearer(session) })).status).toBe(200);
    });
  });
});
