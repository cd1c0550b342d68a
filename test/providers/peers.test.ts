// Peers over real HTTP on loopback: who is asked what, with which key, and what a host that was only
// found, redirects or changes never gets to see.

import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import {
  askWhatItHas,
  createPeerFetch,
  findHosts,
  PeerSet,
  type PeerSpec,
} from '../../src/features/cluster/peer-set.ts';
import { discoveryHosts, discoveryPlaces } from '../../src/features/cluster/settings.ts';
import { type ConfigInput, configSchema } from '../../src/kernel/config/config.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { maskSecrets } from '../../src/kernel/config/secrets.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { isHomeAddress, isHomeUrl } from '../../src/lib/net/address-rules.ts';
import { proveConfigured, resolveConfigured } from '../../src/providers/model-setup.ts';
import { createModelRegistry } from '../../src/providers/registry.ts';
import { priceOf, splitPeerName } from '../../src/providers/rules/model-names.ts';
import { closed, portOf } from '../support/listening.ts';
import { say, startLlmServer } from '../support/llm-server.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { ask, collect, finish } from './provider-setup.ts';

const SIGNAL = new AbortController().signal;

/** Notes everything it is asked, and answers as it is told. */
async function rawServer(
  answer: (path: string) => { status: number; headers?: object; body?: object },
) {
  const heard: { call: string; key: string | undefined; body: string }[] = [];
  const server = createServer(async (incoming, outgoing) => {
    let body = '';
    for await (const part of incoming) body += part;
    const { method, url = '', headers } = incoming;
    heard.push({ call: `${method} ${url}`, key: headers.authorization, body });
    const said = answer(url);
    outgoing.writeHead(said.status, { 'content-type': 'application/json', ...said.headers });
    outgoing.end(JSON.stringify(said.body ?? {}));
  });
  const port = await portOf(server);
  return {
    heard,
    place: `127.0.0.1:${port}`,
    apiBase: `http://127.0.0.1:${port}/v1`,
    async [Symbol.asyncDispose]() {
      await closed(server);
    },
  };
}

const list = (...ids: string[]) => ({ object: 'list', data: ids.map((id) => ({ id })) });

function peerSet(prefer: 'peer' | 'local' = 'peer', confirmed = () => true) {
  const changed: string[] = [];
  const peers = new PeerSet({
    ...{ prefer: () => prefer, remembered: new Map([['away', ['maker/kept']]]) },
    isConfirmed: async () => confirmed(),
    changed: async ({ name }) => void changed.push(name),
  });
  return { peers, changed };
}

function registryOf(peers: PeerSet, config: ConfigInput = {}) {
  return createModelRegistry({
    config: configSchema.parse({ retry: { providerAttempts: 0 }, ...config }),
    ...{ env: {}, clock: createMovableClock(), log: silentLogger, random: () => 0.5, peers },
  });
}

const spec = (name: string, apiBase: string, more: Partial<PeerSpec> = {}): PeerSpec => ({
  ...{ name, apiBase, apiKey: '', kind: 'local', plainHttp: false, ...more },
});

describe('a model on a peer', () => {
  it('is asked by its name, or by its own where exactly that is listed', async () => {
    await using studio = await startLlmServer({
      apiKey: 'sk-studio',
      models: ['shared:8b', 'maker/big'],
    });
    await using local = await startLlmServer();
    const { peers } = peerSet();
    await peers.replace([spec('studio', studio.openaiBase, { apiKey: 'sk-studio' })]);
    const registry = registryOf(peers, {
      providers: { ollama: { apiBase: local.openaiBase }, openrouter: { apiKey: 'sk-or' } },
    });
    await registry.ready('maker/big');
    const names = ['peer:studio/shared:8b', 'ollama/shared:8b', 'maker/big', 'shared:8b'];
    expect(names.map((name) => registry.resolve(name).name)).toEqual([
      ...['peer:studio/shared:8b', 'peer:studio/shared:8b'],
      ...['peer:studio/maker/big', 'peer:studio/shared:8b'],
    ]);
    for (const near of ['ollama/shared', 'ollama/shared:8', 'ollama/Shared:8b']) {
      expect(registry.resolve(near).name).toBe(near);
    }
    expect(registry.resolve('maker/bigger').name).toBe('openrouter/maker/bigger');
    studio.script(say('from the studio'));
    const { text } = await finish(registry.resolve('maker/big'), ask('hello'));
    expect(text).toBe('from the studio');
    expect(registry.fast('maker/big')).toBe('maker/big');
    expect(local.requests).toHaveLength(0);
    expect(() => registry.resolve('peer:nobody/x')).toThrow();
    expect(() => registry.resolve('peer:studio/')).toThrow();
  });

  it('is left for one of this machine where those are preferred, and where the peer is away', async () => {
    const { peers } = peerSet('local');
    await using studio = await startLlmServer({ models: ['shared:8b'] });
    await peers.replace([spec('studio', studio.openaiBase), spec('away', 'http://127.0.0.1:9/v1')]);
    await peers.look(SIGNAL);
    const registry = registryOf(peers, { providers: { openrouter: { apiKey: 'sk-or' } } });
    expect(registry.resolve('ollama/shared:8b').name).toBe('ollama/shared:8b');
    expect(registry.resolve('shared:8b').name).toBe('peer:studio/shared:8b');
    // Known from before: it goes to no service because the peer does not answer.
    expect(registry.resolve('maker/kept').name).toBe('peer:away/maker/kept');
    expect(registry.isHome('maker/kept')).toBe(true);
  });

  it('follows no redirect, and gives its key to nobody else', async () => {
    await using other = await rawServer(() => ({ status: 200, body: list('m') }));
    await using turncoat = await rawServer((path) =>
      path === '/v1/models'
        ? { status: 200, body: list('m') }
        : { status: 307, headers: { location: `${other.apiBase}/chat/completions` } },
    );
    const { peers } = peerSet();
    await peers.replace([spec('turncoat', turncoat.apiBase, { apiKey: 'sk-turncoat' })]);
    await peers.look(SIGNAL);
    const handle = registryOf(peers).resolve('peer:turncoat/m');
    await expect(collect(handle.stream(ask('private words'), SIGNAL))).rejects.toThrow();
    expect(turncoat.heard.at(-1)?.body).toContain('private words');
    expect(other.heard).toEqual([]);
  });

  it('costs nothing unless the configuration says so', () => {
    expect(priceOf('peer:studio/gpt-4o', [])).toMatchObject({ input: 0, output: 0 });
    const priced = [{ model: 'gpt-4o', input: 2, output: 3, cached: 1 }];
    expect(priceOf('peer:studio/gpt-4o', priced)).toMatchObject({ input: 2 });
    expect(splitPeerName('peer:a/b/c')).toEqual({ peer: 'a', model: 'b/c' });
  });
});

it('the model that is configured is found on a peer by doctor as well', async () => {
  await using studio = await startLlmServer({ models: ['big'], respond: () => say('here') });
  const config = configSchema.parse({
    agents: { defaults: { model: 'big' } },
    cluster: { enabled: true, peers: { studio: { apiBase: `${studio.openaiBase}/` } } },
  });
  const home = homeOf({ NANOBOT_HOME: '/nonexistent/home' });
  const clock = createMovableClock();
  expect(await resolveConfigured(config, {}, clock, home)).toBe('peer:studio/big');
  expect(await proveConfigured(config, {}, clock, SIGNAL, home)).toMatchObject({ ok: true });
});

describe('a host that was confirmed', () => {
  it('is asked what it has before each call, and gets no word once it says something else', async () => {
    const models = ['tiny'];
    await using host = await startLlmServer({ models, respond: () => say('fine') });
    const said = await askWhatItHas({ apiBase: host.openaiBase, apiKey: '' }, SIGNAL);
    const { peers, changed } = peerSet();
    await peers.replace([spec('host', host.openaiBase, { mark: said?.mark ?? '' })]);
    const handle = registryOf(peers).resolve('peer:host/tiny');
    await finish(handle, ask('first'));
    expect(host.requests).toHaveLength(1);
    models.push('another');
    await expect(collect(handle.stream(ask('second'), SIGNAL))).rejects.toThrow();
    await expect(collect(handle.stream(ask('third'), SIGNAL))).rejects.toThrow();
    expect(host.requests).toHaveLength(1);
    expect(changed).toEqual(['host']);
    expect(peers.named('host')).toBeUndefined();
  });

  it('gets no word where it does not say what it has, or says it is somebody else’s', async () => {
    let body: object = list('tiny');
    await using host = await rawServer((path) => ({
      status: path === '/v1/models' ? 200 : 500,
      body,
    }));
    const said = await askWhatItHas({ ...host, apiKey: '' }, SIGNAL);
    for (const odd of [
      { hello: 'world' },
      { object: 'list', data: [{ id: 'tiny', owned_by: 'x' }] },
    ]) {
      body = list('tiny');
      const { peers } = peerSet();
      await peers.replace([spec('host', host.apiBase, { mark: said?.mark ?? '' })]);
      const handle = registryOf(peers).resolve('peer:host/tiny');
      body = odd;
      await expect(collect(handle.stream(ask('secret'), SIGNAL))).rejects.toThrow();
    }
    expect(new Set(host.heard.map(({ call }) => call))).toEqual(new Set(['GET /v1/models']));
  });

  it('gets no word once it was forgotten, also by a call that began before', async () => {
    let isConfirmed = true;
    await using host = await startLlmServer({ models: ['tiny'], respond: () => say('fine') });
    const said = await askWhatItHas({ apiBase: host.openaiBase, apiKey: '' }, SIGNAL);
    const { peers } = peerSet('peer', () => isConfirmed);
    const one = spec('host', host.openaiBase, { mark: said?.mark ?? '' });
    await peers.replace([one]);
    const handle = registryOf(peers).resolve('peer:host/tiny');
    isConfirmed = false;
    await expect(collect(handle.stream(ask('elsewhere'), SIGNAL))).rejects.toThrow();
    isConfirmed = true;
    await peers.replace([one]);
    const held = registryOf(peers).resolve('peer:host/tiny');
    await peers.replace([]);
    await expect(collect(held.stream(ask('here'), SIGNAL))).rejects.toThrow();
    expect(host.requests).toHaveLength(0);
  });
});

describe('the search for hosts', () => {
  it('sends a question for models and no key, and finds who answers as a model server', async () => {
    await using good = await rawServer(() => ({
      status: 200,
      body: list('b', 'a', 'nomic-embed'),
    }));
    await using page = await rawServer(() => ({ status: 200, body: { hello: 'world' } }));
    await using redirects = await rawServer(() => ({
      status: 302,
      headers: { location: `${good.apiBase}/models` },
    }));
    const places = [good.place, page.place, redirects.place, '127.0.0.1:9'];
    const found = await findHosts(places, SIGNAL);
    await using starting = await rawServer(() => ({ status: 200, body: list() }));
    expect(await askWhatItHas({ ...starting, apiKey: '' }, SIGNAL)).toBeUndefined();
    expect(found.map(({ address, models }) => [address, models])).toEqual([
      [good.place, ['b', 'a']],
    ]);
    for (const { heard } of [good, page, redirects]) {
      expect(heard).toEqual([{ call: 'GET /v1/models', key: undefined, body: '' }]);
    }
  });

  it('looks on this machine and in small nets of one’s own only', () => {
    expect(discoveryPlaces([], [1, 2])).toEqual(['127.0.0.1:1', '127.0.0.1:2']);
    expect(discoveryPlaces(['10.0.0.5:80', '10.0.0.5'], [7])).toEqual([
      ...['127.0.0.1:7', '10.0.0.5:80', '10.0.0.5:7'],
    ]);
    expect(discoveryHosts('192.168.1.77/24')).toHaveLength(254);
    expect(discoveryHosts('192.168.1.77/30')).toEqual([
      { host: '192.168.1.77' },
      { host: '192.168.1.78' },
    ]);
    const refused = ['192.168.1.0/23', '8.8.8.8', '8.8.8.0/24', '169.254.169.254', 'host.lan', ''];
    for (const entry of [...refused, '10.0.0.1:0', '10.0.0.1:70000', '10.0.0.256', '10.0.0.0/33']) {
      expect(discoveryHosts(entry), entry).toBeUndefined();
    }
  });
});

describe('plain http', () => {
  it('stays in one’s own nets, whatever a name turns out to mean', async () => {
    const asked = { apiBase: 'http://studio.lan:1/v1', beforeSending: async () => undefined };
    const at = (address: string, plainHttp = false) =>
      createPeerFetch({ ...asked, plainHttp, resolver: async () => [address] });
    for (const address of ['8.8.8.8', '169.254.169.254', '2001:db8::1', '::ffff:8.8.8.8']) {
      const refused = at(address).fetch('http://studio.lan:1/v1/models');
      await expect(refused, address).rejects.toThrow('outside your own networks');
    }
    const mixed = createPeerFetch({
      ...asked,
      plainHttp: false,
      resolver: async () => ['192.168.1.5', '8.8.8.8'],
    });
    await expect(mixed.fetch('http://studio.lan:1/v1/models')).rejects.toThrow('outside');
    await expect(at('127.0.0.1').fetch('http://studio.lan:1/v1/models')).rejects.not.toThrow(
      'outside',
    );
    await expect(at('127.0.0.1').fetch('http://other.lan:1/v1/models')).rejects.toThrow(
      'another server',
    );
  });

  it('is refused by the configuration for a public address, unless that is said', () => {
    const peer = { apiBase: 'http://llm.example.com/v1' };
    const parsed = (more: object) =>
      configSchema.safeParse({ cluster: { peers: { far: { ...peer, ...more } } } }).success;
    expect(parsed({})).toBe(false);
    expect(parsed({ plainHttp: true })).toBe(true);
    expect(parsed({ apiBase: 'https://llm.example.com/v1' })).toBe(true);
    expect(parsed({ apiBase: 'http://192.168.1.9:1234/v1' })).toBe(true);
    expect(parsed({ apiBase: 'ftp://192.168.1.9/v1' })).toBe(false);
  });

  it('carries keys that are masked wherever the configuration is shown', () => {
    const peers = { far: { apiBase: 'https://llm.example.com/v1', apiKey: 'sk-peer-1234567' } };
    const shown = JSON.stringify(maskSecrets({ cluster: { peers } }));
    expect(shown).not.toContain('sk-peer-1234567');
  });

  it.each([
    ['http://127.0.0.1:1/v1', true],
    ['http://localhost/v1', true],
    ['http://[::1]:8/v1', true],
    ['http://[fd12::1]:8/v1', true],
    ['http://ollama:11434/v1', true],
    ['http://mac.local:1/v1', true],
    ['http://100.100.1.2/v1', true],
    ['http://172.32.0.1/v1', false],
    ['http://2130706433/v1', true],
    ['http://169.254.169.254/v1', false],
    ['https://ollama.com/v1', false],
    ['http://10.example.com/v1', false],
    ['nonsense', false],
  ])('%s is at home: %s', (url, isHome) => {
    expect(isHomeUrl(url)).toBe(isHome);
  });

  it('knows addresses by their numbers only', () => {
    for (const text of ['10.0.0.1', '172.16.0.1', '192.168.0.1', '::1', 'fc00::1']) {
      expect(isHomeAddress(text), text).toBe(true);
    }
    for (const text of ['localhost', '10.0.0', '10.0.0.1.example.com', 'fe80::1', '11.0.0.1', '']) {
      expect(isHomeAddress(text), text).toBe(false);
    }
  });
});
