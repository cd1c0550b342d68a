// Connections through real proxy programs: what they are asked for, who is reached without them, and
// what a person reads when they refuse.

import { once } from 'node:events';
import { createServer, get, Agent as HttpAgent } from 'node:http';
import { createServer as createTlsServer, get as getByTls, Agent as HttpsAgent } from 'node:https';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/kernel/config/check.ts';
import { configChange } from '../../src/kernel/config/diff.ts';
import { maskSecrets, secretValues } from '../../src/kernel/config/secrets.ts';
import { ConfigError } from '../../src/kernel/message/errors.ts';
import { isDirect, proxySecrets, readProxy } from '../../src/lib/net/address-rules.ts';
import { fetchThrough, proxyErrorIn, reachThrough, routed } from '../../src/lib/net/proxies.ts';
import { createSafeFetch } from '../../src/lib/net/safe-fetch.ts';
import { freePorts } from '../support/free-ports.ts';
import { portOf } from '../support/listening.ts';
import { startHttpProxy, startSocksProxy } from '../support/proxy-programs.ts';
import { createSelfSigned } from '../support/whatsapp-server/self-signed.ts';

const LOGIN = { username: 'ada', password: 'p@ss/wo:rd %' };
const PROGRAMS = [
  ['http', startHttpProxy],
  ['socks5h', startSocksProxy],
] as const;
const signal = AbortSignal.timeout(60_000);

async function startSite() {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.socket.remoteAddress} ${request.headers.host}${request.url}`);
    response.end('hello');
  });
  const port = await portOf(server);
  return { port, seen, [Symbol.dispose]: () => void server.close() };
}

async function textBy(agent: HttpAgent, url: string, ca?: string): Promise<string> {
  const call = url.startsWith('https:') ? getByTls(url, { agent, ca }) : get(url, { agent });
  const [answer] = await once(call, 'response');
  let text = '';
  for await (const piece of answer) text += piece;
  agent.destroy();
  return text;
}

describe.each(PROGRAMS)('through a proxy by %s', (_kind, start) => {
  it('an agent reaches a server by the name that only the proxy knows, with a login', async () => {
    await using proxy = await start(LOGIN);
    using site = await startSite();
    const agent = routed(new HttpAgent({ keepAlive: true }), proxy.url);
    expect(await textBy(agent, `http://site.test:${site.port}/a`)).toBe('hello');
    expect(proxy.targets).toEqual([`site.test:${site.port}`]);
    expect(proxy.refused.count).toBe(0);
  });

  it('TLS is between us and the server, whose certificate is checked by its name', async () => {
    await using proxy = await start();
    const { key, cert } = createSelfSigned();
    const server = createTlsServer({ key, cert }, (_request, response) => response.end('sealed'));
    const port = await portOf(server);
    const by = (ca?: string) =>
      textBy(
        routed(new HttpsAgent(), `${proxy.url} channels.x.proxy`),
        `https://127.0.0.1:${port}/`,
        ca,
      );
    expect(await by(cert)).toBe('sealed');
    await expect(by()).rejects.toMatchObject({ code: expect.stringMatching(/SELF_SIGNED/) });
    expect(proxy.targets).toEqual([`127.0.0.1:${port}`, `127.0.0.1:${port}`]);
    server.close();
  });

  it('a server that speaks first is heard', async () => {
    await using proxy = await start();
    const { createServer: listen } = await import('node:net');
    const server = listen((socket) => void socket.end('220 ready'));
    const port = await portOf(server);
    const reach = await reachThrough(proxy.url, 'mail.test', port);
    const socket = connect(reach.port, reach.host);
    const [greeting] = await once(socket, 'data');
    expect({ said: String(greeting), name: reach.servername }).toEqual({
      ...{ said: '220 ready', name: 'mail.test' },
    });
    expect(proxy.targets).toEqual([`mail.test:${port}`]);
    socket.destroy();
    reach[Symbol.dispose]();
    server.close();
  });

  it('`fetch` goes through it', async () => {
    await using proxy = await start(LOGIN);
    using site = await startSite();
    const answer = await fetchThrough(proxy.url)(`http://site.test:${site.port}/b`, { signal });
    expect(await answer.text()).toBe('hello');
    expect(proxy.targets).toEqual([`site.test:${site.port}`]);
  });

  it.each([
    [
      'a wrong password',
      { ...LOGIN, password: 'another' },
      'proxy_login',
      'Correct them in network.proxy',
    ],
    ['no login', undefined, 'proxy_login', 'Correct them in network.proxy'],
  ])('%s is refused in words without the login', async (_case, login, code, words) => {
    await using proxy = await start(LOGIN);
    const given = login && `${login.username}:${login.password}@`;
    const url = proxy.url.replace(/\/\/.*@/, `//${given ?? ''}`);
    const failed = textBy(routed(new HttpAgent(), url), 'http://site.test:80/');
    const error = proxyErrorIn(await failed.catch((thrown: unknown) => thrown));
    expect(error).toMatchObject({ code, message: expect.stringContaining(words) });
    expect(error?.message).toContain(`127.0.0.1:${proxy.port} (network.proxy)`);
    expect(error?.message).not.toMatch(/ada|another|p@ss/);
    expect(proxy.targets).toEqual([]);
  });

  it('a server that it does not reach is named with the remedy', async () => {
    await using proxy = await start();
    const failed = textBy(routed(new HttpAgent(), proxy.url), 'http://nowhere.invalid:443/');
    const error = proxyErrorIn(await failed.catch((thrown: unknown) => thrown));
    expect(error).toMatchObject({
      code: 'proxy_refused',
      message: expect.stringMatching(/does not connect to nowhere\.invalid:443 .*network\.noProxy/),
    });
  });
});

it('a proxy that is not there is named with its setting', async () => {
  const [port] = await freePorts(1);
  const url = `socks5h://ada:secret@127.0.0.1:${port} channels.x.proxy`;
  const failed = textBy(routed(new HttpAgent(), url), 'http://site.test:80/');
  const error = proxyErrorIn(await failed.catch((thrown: unknown) => thrown));
  expect(error?.message).toBe(
    `the proxy 127.0.0.1:${port} (channels.x.proxy) is not reachable (ECONNREFUSED). Check its address, and that it runs.`,
  );
});

it('pages are asked of it by their checked address, and private ones not at all', async () => {
  await using proxy = await startSocksProxy();
  using site = await startSite();
  const places: Readonly<Record<string, string>> = {
    'page.test': '93.184.216.34',
    'inside.test': '10.0.0.7',
    'allowed.test': '127.0.0.1',
  };
  const fetch = createSafeFetch({
    rules: () => ({ ports: [site.port], allowPrivateHosts: ['allowed.test'] }),
    proxy: () => proxy.url,
    resolver: async (host) => [places[host] ?? ''],
  });
  const page = await fetch(`http://page.test:${site.port}/p`, { signal });
  expect(Buffer.from(page.body).toString()).toBe('hello');
  expect(site.seen).toEqual([`127.0.0.1 page.test:${site.port}/p`]);
  await expect(fetch(`http://inside.test:${site.port}/`, { signal })).rejects.toMatchObject({
    reason: 'private_address',
  });
  // In the home network, where the owner allowed it: without the proxy.
  expect((await fetch(`http://allowed.test:${site.port}/q`, { signal })).status).toBe(200);
  expect(proxy.targets).toEqual([`93.184.216.34:${site.port}`]);
});

it('socks5 is told an address', async () => {
  await using proxy = await startSocksProxy();
  using site = await startSite();
  const url = `${proxy.url.replace('socks5h', 'socks5')} channels.x.proxy`;
  await textBy(routed(new HttpAgent(), url), `http://localhost:${site.port}/`);
  expect(proxy.targets.every((target) => /^(?:127\.0\.0\.1|[0:]+1):\d+$/.test(target))).toBe(true);
});

it.each([
  ['http://proxy.example:3128', 'http', 'proxy.example', 3128, '', ''],
  ['SOCKS5H://[::1]:1080/', 'socks5h', '::1', 1080, '', ''],
  ['socks5://ada:p@ss@proxy:1', 'socks5', 'proxy', 1, 'ada', 'p@ss'],
  ['https://ada:p%40ss%zz@proxy:1', 'https', 'proxy', 1, 'ada', 'p%40ss%zz'],
  ['https://a%40b:p%2Fq@proxy:1', 'https', 'proxy', 1, 'a@b', 'p/q'],
])('reads %s', (text, kind, host, port, username, password) => {
  expect(readProxy(text)).toMatchObject({ kind, host, port, username, password });
});

it.each([
  '',
  'direct',
  'proxy:1080',
  'ftp://proxy:1',
  'http://proxy',
  'http://proxy:70000',
  'http://proxy:1/path',
])('takes %j for no proxy', (text) => expect(readProxy(text)).toBeUndefined());

it.each([
  ['network.proxy', '', 'localhost', 80, true],
  ['network.proxy', '', '192.168.1.9', 80, true],
  ['network.proxy', '', 'nas.lan', 80, true],
  ['network.proxy', '', 'api.telegram.org', 443, false],
  ['channels.x.proxy', '', '192.168.1.9', 80, false],
  ['channels.x.proxy', '192.168.0.0/16', '192.168.1.9', 80, true],
  ['channels.x.proxy', '.example.org', 'mail.example.org', 993, true],
  ['channels.x.proxy', 'example.org', 'EXAMPLE.org', 993, true],
  ['channels.x.proxy', 'example.org', 'badexample.org', 993, false],
  ['channels.x.proxy', '*.example.org', 'a.example.org', 993, true],
  ['channels.x.proxy', 'example.org:25', 'example.org', 993, false],
  ['channels.x.proxy', 'example.org:993', 'example.org', 993, true],
  ['channels.x.proxy', '[::1]:993', '::1', 993, true],
  ['channels.x.proxy', '2001:db8::/32', '[2001:db8::1]', 993, true],
  ['channels.x.proxy', '*', 'anything', 1, true],
])(
  'with %s and the exceptions %j, %s:%d is reached directly: %s',
  (setting, except, host, port, is) => {
    const proxy = readProxy(`http://proxy:1 ${setting} ${except}`);
    expect(proxy && isDirect(proxy, host, port)).toBe(is);
  },
);

it('hides every spelling of a login', () => {
  expect(proxySecrets('http://ada:p%40ss@proxy:1 network.proxy ')).toEqual([
    'ada:p%40ss',
    Buffer.from('ada:p@ss').toString('base64'),
    'p@ss',
  ]);
  expect(proxySecrets('http://proxy:1')).toEqual([]);
});

describe('the settings', () => {
  const TELEGRAM = { enabled: true, token: '1:abc' };
  const loaded = (network: object, telegram: object = {}, env: Record<string, string> = {}) =>
    checkConfig(
      JSON.stringify({ version: 1, network, channels: { telegram: { ...TELEGRAM, ...telegram } } }),
      env,
    );

  it.each(['proxy.example:1080', 'http://proxy.example', 'socks4://proxy:1', 'http://proxy:1 x'])(
    'refuse %j without showing it',
    (proxy) => {
      const refused = () => loaded({ proxy: proxy.replace('proxy', 'planted-word') });
      expect(refused).toThrow(ConfigError);
      try {
        refused();
      } catch (error) {
        expect(JSON.stringify(error)).not.toContain('planted-word');
      }
    },
  );

  it('give a channel its own proxy, none, or the general one with its exceptions', () => {
    const network = { proxy: 'http://proxy:1', noProxy: ['a.example'] };
    const env = { NO_PROXY: 'b.example, 10.0.0.0/8' };
    const of = (telegram: object) => loaded(network, telegram, env).config.channels.telegram.proxy;
    const except = ['a.example', 'b.example', '10.0.0.0/8'];
    expect(readProxy(of({}))).toMatchObject({ host: 'proxy', setting: 'network.proxy', except });
    expect(readProxy(of({ proxy: 'socks5h://own:2' }))).toMatchObject({
      ...{ host: 'own', setting: 'channels.telegram.proxy', except },
    });
    expect(readProxy(of({ proxy: 'direct' }))).toBeUndefined();
  });

  it('restart a channel when the general proxy changes, and only one that uses it', () => {
    const before = loaded({}).config;
    const after = loaded({ proxy: 'http://proxy:1' }).config;
    expect(configChange(before, after).channels).toContain('telegram');
    const own = { proxy: 'direct' };
    expect(
      configChange(loaded({}, own).config, loaded({ proxy: 'http://proxy:1' }, own).config)
        .channels,
    ).not.toContain('telegram');
  });

  it('are shown without a login, and whole where there is none', () => {
    const raw = loaded({ proxy: 'http://ada:planted@proxy:1' }, { proxy: 'http://open:1' }).raw;
    expect(JSON.stringify(maskSecrets(raw))).not.toMatch(/planted|ada/);
    expect(JSON.stringify(maskSecrets(raw))).toContain('http://open:1');
    expect(secretValues(loaded({ proxy: 'http://ada:planted@proxy:1' }).config)).toContain(
      'planted',
    );
  });
});
