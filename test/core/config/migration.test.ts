// An original program's file becomes ours without losing what still has a meaning.

import { describe, expect, test } from 'vitest';
import { checkConfig } from '../../../src/kernel/config/check.ts';
import { configSchema } from '../../../src/kernel/config/config.ts';
import { migrateConfig } from '../../../src/kernel/config/migration.ts';

test('a setting that is gone is accepted, and counts where another one says the same', () => {
  const env = { NANOBOT__storage__kind: 'files' };
  const search = { braveUrl: 'https://brave', addresses: { searxng: 'https://searx' } };
  const text = { version: 1, channels: { web: { enabled: true } }, tools: { web: { search } } };
  expect(checkConfig(JSON.stringify(text), env).config.tools.web.search).toMatchObject({
    searxngUrl: 'https://searx',
    addresses: { brave: 'https://brave' },
  });
});

test('values of earlier versions are accepted: a list of peers, an hour between looks at a mailbox', () => {
  const peer = { apiBase: 'http://studio.lan:1234/v1', kind: 'lmstudio' };
  const { config } = checkConfig(
    JSON.stringify({
      version: 1,
      cluster: { peers: [{ name: 'studio', ...peer }] },
      channels: { email: { pollSecs: 3600 } },
    }),
    {},
  );
  expect(config.cluster.peers).toMatchObject({ studio: peer });
  expect(config.channels.email.pollSecs).toBe(3600);
});

describe('the original file', () => {
  test.each([
    [
      'the poll interval of mail',
      { channels: { email: { pollIntervalSecs: 45, imapHost: 'h' } } },
      { channels: { email: { pollSecs: 45, smtpPort: 587, smtpSecurity: 'starttls' } } },
    ],
    [
      'mail over the TLS port',
      { channels: { email: { smtpPort: 465, imapPort: 143 } } },
      { channels: { email: { smtpSecurity: 'tls', imapSecurity: 'starttls' } } },
    ],
    [
      'numeric ids',
      { channels: { telegram: { allowFrom: [7, '8'] } } },
      {
        channels: { telegram: { allowFrom: ['7', '8'] } },
      },
    ],
    [
      'WhatsApp numbers, each with its plus',
      {
        channels: {
          whatsapp: { enabled: true, allowFrom: [491511234567, '15551234567@c.us', '+4366012345'] },
        },
      },
      {
        channels: {
          whatsapp: { enabled: true, allowFrom: ['+491511234567', '+15551234567', '+4366012345'] },
        },
      },
    ],
    [
      'Feishu',
      { channels: { feishu: { enabled: true, appId: 'cli_1', appSecret: 's', encryptKey: '' } } },
      { channels: { lark: { enabled: true, appId: 'cli_1', appSecret: 's' } } },
    ],
    [
      'lossless compaction',
      { lcm: { enabled: true, tauSoft: 0.4, tauHard: 0.8, deterministicTarget: 512 } },
      {
        agents: {
          defaults: {
            compaction: { engine: 'lossless', lossless: { softPercent: 40, hardPercent: 80 } },
          },
        },
      },
    ],
    [
      'what keeps models on their course, switched off',
      {
        trio: { antiDrift: { enabled: true, anchorInterval: 5, babbleMaxTokens: 500 } },
        proprioception: { enabled: true, gradientMemory: true, rawWindow: 7 },
      },
      {
        agents: {
          antiDrift: { anchorInterval: 5 },
          proprioception: { gradientMemory: true, rawWindow: 7 },
        },
      },
    ],
    [
      'the models of a trio',
      {
        toolDelegation: { mode: 'delegated', model: 'small' },
        trio: { enabled: true, routerModel: 'r', circuitBreaker: { threshold: 5 } },
      },
      {
        agents: {
          delegation: { model: 'small' },
          trio: { router: { model: 'r' } },
          circuit: { failures: 5 },
        },
      },
    ],
    [
      'session limits',
      { memory: { session: { rotationSizeBytes: 50_000 } } },
      {
        sessions: { rotationSizeBytes: 50_000 },
      },
    ],
    [
      'the tool timeout',
      { tools: { exec: { timeout: 90, restrictToWorkspace: true } } },
      {
        tools: { timeoutSecs: 90 },
      },
    ],
    [
      'where the web is searched',
      {
        tools: {
          web: { search: { apiKey: 'BSA1', searxngUrl: 'http://x:8888', autoStart: true } },
        },
      },
      { tools: { web: { search: { braveApiKey: 'BSA1', searxngUrl: 'http://x:8888' } } } },
    ],
    [
      'a local server',
      { agents: { defaults: { localApiBase: 'http://127.0.0.1:1234/v1' } } },
      {
        providers: { local: { apiBase: 'http://127.0.0.1:1234/v1' } },
      },
    ],
  ])('keeps %s', (_name, before, after) => {
    expect(migrateConfig(before).raw).toMatchObject({ ...after, version: 1 });
  });

  test.each([
    ['an address with a token', { gateway: { host: '0.0.0.0', token: 'a-long-enough-token' } }],
    ['named encryption', { channels: { email: { smtpHost: 'h', smtpSecurity: 'tls' } } }],
  ])('a file of ours that only lacks its version keeps %s', (_name, written) => {
    expect(migrateConfig(written).raw).toEqual({ ...written, version: 1 });
  });

  test.each([
    ['trio', { trio: { enabled: true } }],
    ['agents.defaultLane', { agents: { defaultLane: 'action' } }],
    [
      'channels.whatsapp.bridgeUrl',
      { channels: { whatsapp: { enabled: true, bridgeUrl: 'ws://127.0.0.1:3001' } } },
    ],
    ['channels.whatsapp.bridgePort', { channels: { whatsapp: { bridgePort: 3001 } } }],
    ['channels.telegram.proxy', { channels: { telegram: { proxy: 'x' } } }],
    ['gateway.host', { gateway: { host: '0.0.0.0', port: 18790 } }],
    ['toolDelegation', { toolDelegation: { mode: 'trio' } }],
  ])('drops %s with a note', (path, before) => {
    const { raw, notes } = migrateConfig(before);
    expect(notes.join('\n')).toContain(path);
    expect(JSON.stringify(raw)).not.toContain(path.split('.').at(-1));
  });

  test('keeps a proxy of Telegram that can be one', () => {
    const before = { channels: { telegram: { proxy: 'socks5://127.0.0.1:1080' } } };
    expect(migrateConfig(before).raw).toEqual({ ...before, version: 1 });
  });

  test('as its own program wrote it, with every default, loads', () => {
    const { config, notes } = checkConfig(JSON.stringify(ORIGINAL_DEFAULTS), {});
    expect(config.gateway.host).toBe('127.0.0.1');
    expect(config.agents.defaults.maxConcurrentChats).toBe(4);
    expect(notes.length).toBeGreaterThan(5);
  });

  test('an empty allow list that used to mean everybody is pointed out', () => {
    const { notes } = migrateConfig({ channels: { telegram: { enabled: true, allowFrom: [] } } });
    expect(notes.join()).toContain('nobody may write');
  });

  test('a group among the people of WhatsApp goes with a note, and linking anew is asked for', () => {
    const allowFrom = ['491511234567', '120363041234567890@g.us'];
    const { raw, notes } = migrateConfig({ channels: { whatsapp: { enabled: true, allowFrom } } });
    expect(raw).toMatchObject({ channels: { whatsapp: { allowFrom: ['+491511234567'] } } });
    expect(notes.join('\n')).toContain('120363041234567890@g.us');
    expect(notes.join('\n')).toContain('nanobot channels login whatsapp');
  });

  test('a key that neither program knows is still reported', () => {
    expect(() => checkConfig('{"agents":{"defaults":{"temprature":1}}}', {})).toThrow('1 problem');
  });
});

test('migrating twice changes nothing more', () => {
  const once = migrateConfig(ORIGINAL_DEFAULTS);
  expect(migrateConfig(once.raw)).toEqual({ raw: once.raw, from: undefined, notes: [] });
});

test('what models can do is taken over from the original, as far as it means something here', () => {
  const modelCapabilities = {
    'my-model': { sizeClass: 'Small', toolCalling: false, scratchPadRounds: 3 },
    other: { maxReliableOutput: 900, thinking: true, sizeClass: 'huge' },
    empty: { parser: 'qwen' },
  };
  const { raw, notes } = migrateConfig({ modelCapabilities });
  expect(raw['modelCapabilities']).toEqual([
    { models: 'my-model', sizeClass: 'small', toolCalling: 'text' },
    { models: 'other', thinking: true, maxReliableOutput: 900 },
  ]);
  expect(notes).toContain('modelCapabilities is now a list');
  expect(migrateConfig({ modelCapabilities: {} }).raw).not.toHaveProperty('modelCapabilities');
});

test('a cluster of the original is taken over, and what it would find by itself has to be confirmed', () => {
  const on = { enabled: true, endpoints: ['http://10.0.0.5:52415/'], scanPorts: [52_415] };
  const { raw, notes } = migrateConfig({ cluster: { ...on, scanIntervalSecs: 60 } });
  expect(configSchema.parse(raw).cluster).toMatchObject({
    ...{ enabled: true, prefer: 'peer' },
    peers: { 'peer-1': { apiBase: 'http://10.0.0.5:52415/v1', apiKey: '' } },
    discovery: { enabled: true, addresses: [], mdns: ['_exo._tcp'], ports: [52_415] },
  });
  expect(notes.join()).toContain('confirm discovered hosts');
  const off = migrateConfig({ cluster: { enabled: false, autoDiscover: true } });
  expect(off.raw).not.toHaveProperty('cluster');
  const ours = { enabled: true, peers: { a: { apiBase: 'http://10.0.0.5/v1' } } };
  expect(migrateConfig({ cluster: ours }).raw).toMatchObject({ cluster: ours });
});

test('a file of a newer nanobot is not guessed at', () => {
  expect(() => migrateConfig({ version: 99 })).toThrow('newer');
  expect(() => migrateConfig({ version: 'x' })).toThrow('not a version');
  expect(() => migrateConfig([])).toThrow('one JSON object');
});

const ORIGINAL_DEFAULTS = {
  agents: {
    defaults: {
      workspace: '~/.nanobot/workspace',
      model: 'anthropic/claude-opus-4-5',
      localModel: 'gemma-3n-e4b-it-Q4_K_M.gguf',
      localApiBase: '',
      maxTokens: 4096,
      temperature: 0.7,
      maxToolIterations: 20,
      maxContextTokens: 128_000,
      maxConcurrentChats: 4,
      maxToolResultChars: 10_000,
      mlxModelDir: null,
      maxContinuations: 6,
    },
    defaultLane: null,
  },
  channels: {
    whatsapp: { enabled: false, bridgeUrl: '', bridgePort: 3001, allowFrom: [] },
    telegram: { enabled: false, token: '', allowFrom: [], proxy: null },
    feishu: { enabled: false, appId: '', appSecret: '' },
    email: {
      enabled: false,
      imapHost: '',
      imapPort: 993,
      smtpHost: '',
      smtpPort: 587,
      pollIntervalSecs: 30,
    },
  },
  providers: {
    anthropic: { apiKey: '', apiBase: null },
    zhipuCoding: { apiKey: '', apiBase: null },
  },
  gateway: { host: '0.0.0.0', port: 18_790 },
  tools: { web: { search: { apiKey: '' } }, exec: { timeout: 60 }, toolsets: {} },
  memory: { enabled: true, reflectionThreshold: 5000, session: { rotationCarryMessages: 10 } },
  timeouts: { providerHttpSecs: 120, lmsLoadSecs: 120 },
  retry: { providerMinSecs: 1, providerMaxSecs: 30, jitMinSecs: 2, jitMaxSecs: 8 },
  trio: { enabled: false },
  provenance: { enabled: true },
};
