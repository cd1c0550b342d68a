// What a configuration file may get wrong, and what its owner is told about it.

import { describe, expect, test } from 'vitest';
import { checkConfig } from '../../../src/kernel/config/check.ts';
import { configKeys } from '../../../src/kernel/config/issues.ts';
import type { JsonObject } from '../../../src/kernel/config/json.ts';
import { withValue } from '../../../src/kernel/config/json-paths.ts';
import { ConfigError } from '../../../src/kernel/message/errors.ts';

function problemsOf(config: unknown, env: Record<string, string> = {}) {
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  try {
    checkConfig(text, env);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems;
  }
}

const ref = (name: string) => `\${${name}}`;

const V1 = { version: 1 };
const EMAIL = {
  enabled: true,
  imapHost: 'imap.example.org',
  smtpHost: 'smtp.example.org',
  username: 'bot@example.org',
  password: 'pw',
};

describe('a wrong key or value is named with its path and the right one', () => {
  test.each([
    ['a misspelt key', { gateway: { prot: 1 } }, 'gateway.prot', 'gateway.port'],
    ['snake case', { channels: { telegram: { allow_from: [] } } }, 'allow_from', 'allowFrom'],
    ['a key at the wrong level', { token: 'x' }, 'token', 'channels.telegram.token'],
    ['an unknown section', { chanels: {} }, 'chanels', 'channels'],
    ['a swapped letter', { agents: { defaults: { mdoel: 'x' } } }, 'mdoel', 'model'],
    [
      'a bucket that is not named',
      { storage: { media: { kind: 's3' } } },
      'storage.media.bucket',
      'the name of a bucket',
    ],
    [
      'a prefix with a slash before it',
      { storage: { media: { kind: 's3', bucket: 'files', prefix: '/media' } } },
      'storage.media.prefix',
      'nanobot/media',
    ],
    [
      'a bucket service without a scheme',
      { storage: { media: { kind: 's3', bucket: 'files', endpoint: 'minio.local' } } },
      'storage.media.endpoint',
      'https://host',
    ],
    ['a text for a number', { gateway: { port: 'x' } }, 'gateway.port', 'a number'],
    ['a number for a text', { channels: { telegram: { apiRoot: 5 } } }, 'apiRoot', 'a text'],
    ['a text for a switch', { memory: { enabled: 'yes' } }, 'memory.enabled', 'true or false'],
    ['a number in a list', { channels: { telegram: { allowFrom: [5] } } }, 'allowFrom.0', 'text'],
    ['too much', { gateway: { port: 70_000 } }, 'gateway.port', '65535 or less'],
    ['too little', { agents: { defaults: { maxTokens: 0 } } }, 'maxTokens', '1 or more'],
    ['half a token', { agents: { defaults: { maxTokens: 1.5 } } }, 'maxTokens', 'whole number'],
    [
      'a wrong choice',
      { channels: { email: { imapSecurity: 'start' } } },
      'imapSecurity',
      'starttls',
    ],
    [
      'a misspelt access',
      { tools: { people: [{ who: 'telegram:1', exec: 'ask' }] } },
      'exec',
      'send, execute, schedule',
    ],
    [
      'a misspelt limit of one person',
      { limits: { exceptions: [{ who: 'telegram:1', perMinut: 3 }] } },
      'exceptions.0.perMinut',
      'exceptions.0.perMinute',
    ],
    ['a section for a list', { tools: { people: { a: {} } } }, 'tools.people', '[{ "who": ... }]'],
    [
      'a permission there is not',
      { tools: { people: [{ who: 'telegram:1', execute: 'deny' }] } },
      'people.0.execute',
      'never',
    ],
    ...(
      [
        ['a name', 'people', 'telegram:@ann', 'telegram:123456789'],
        ['no channel', 'people', '42', 'telegram:123456789'],
        ['an unknown channel', 'people', 'telegramm:42', 'telegram:123456789'],
        ['everybody', 'people', 'whatsapp:*', 'whatsapp:+491511234567'],
        ['capital letters', 'people', 'email:Ann@Example.org', 'email:ann@example.org'],
        ['a person as a group', 'groups', 'telegram:42', 'telegram:-1001234567890'],
        ['groups where there are none', 'groups', 'email:a@b.c', 'telegram:-1001234567890'],
      ] as const
    ).map(([what, list, who, remedy]): [string, object, string, string] => [
      `rights of ${what}`,
      { tools: { [list]: [{ who, write: 'never' }] } },
      `tools.${list}.0.who`,
      remedy,
    ]),
    ['a name for a list of names', { tools: { disabled: 'exec' } }, 'tools.disabled', 'Use a list'],
    [
      'too long a text',
      { limits: { budget: { currency: 'Pound sterling' } } },
      'currency',
      'length of 8',
    ],
    ['no engine', { tools: { web: { search: { addresses: { bing: 'x' } } } } }, 'bing', 'brave'],
    ['an unknown tool', { tools: { disabled: ['readfile'] } }, 'disabled.0', 'read_file'],
  ])('%s', (_name, part, path, remedy) => {
    const [problem, ...more] = problemsOf({ ...V1, ...part });
    expect(more).toEqual([]);
    expect(problem?.path).toContain(path);
    expect(problem?.remedy).toContain(remedy);
  });

  test('the remedy for each setting is in plain words', () => {
    const keys = configKeys().filter(({ type, path }) => type !== 'section' && path !== 'version');
    const remedies = ['?', '', 1.5, [['?']], {}, null, 'x'.repeat(9000)].flatMap((wrong) => {
      const paths = keys.map(({ path }) => path.replaceAll('*', 'a'));
      const config = paths.reduce<JsonObject>((all, path) => withValue(all, path, wrong), V1);
      return problemsOf(config).map(({ remedy }) => remedy);
    });
    expect(remedies.length).toBeGreaterThan(1000);
    expect(remedies.filter((one) => /Invalid|must match|record|undefined/.test(one))).toEqual([]);
  });

  test('all problems are found at once, each with its line', () => {
    const text = '{\n  "version": 1,\n  "gatway": {},\n  "memory": {\n    "enabled": 1\n  }\n}';
    const found = problemsOf(text).map(({ path, line }) => ({ path, line }));
    expect(found).toContainEqual({ path: 'gatway', line: 3 });
    expect(found).toContainEqual({ path: 'memory.enabled', line: 5 });
  });

  test('a secret of the wrong type is not shown', () => {
    const text = JSON.stringify(
      problemsOf({ ...V1, channels: { telegram: { token: 271_828_182 } } }),
    );
    expect(text).not.toContain('271828182');
    expect(text).toContain('invalid value (a number)');
  });
});

describe('settings that cannot both be meant are found at load', () => {
  test.each([
    ['a trio without a router', { agents: { mode: 'trio' } }, 'agents.trio.router.model'],
    ['telegram without a token', { channels: { telegram: { enabled: true } } }, 'telegram.token'],
    [
      'a token that is none',
      { channels: { telegram: { enabled: true, token: 'hello' } } },
      'telegram.token',
    ],
    [
      'a name where an id must stand',
      { channels: { telegram: { allowFrom: ['@ada'] } } },
      'telegram.allowFrom.0',
    ],
    [
      'a name where the id of a group must stand',
      { channels: { telegram: { groups: ['-1001234567890', '@plans'] } } },
      'telegram.groups.1',
    ],
    [
      'a person in whose name nobody else may speak',
      { channels: { telegram: { groupSenderChats: ['5'] } } },
      'telegram.groupSenderChats.0',
    ],
    [
      'a name that every word would be',
      { channels: { telegram: { groupNames: ['nano', '*'] } } },
      'telegram.groupNames.1',
    ],
    [
      'a person where a WhatsApp group must stand',
      { channels: { whatsapp: { groups: ['491511234567@s.whatsapp.net'] } } },
      'whatsapp.groups.0',
    ],
    ['mail without servers', { channels: { email: { enabled: true } } }, 'email.imapHost'],
    [
      'OAuth2 without its client',
      {
        channels: {
          email: { ...EMAIL, imapHost: 'imap.gmail.com', oauth2: { refreshToken: 'r' } },
        },
      },
      'email.oauth2.clientId',
    ],
    [
      'OAuth2 at a provider nobody knows',
      { channels: { email: { ...EMAIL, oauth2: { refreshToken: 'r', clientId: 'c' } } } },
      'email.oauth2.tokenUrl',
    ],
    [
      'a refresh token sent in the clear',
      {
        channels: {
          email: {
            ...EMAIL,
            oauth2: { refreshToken: 'r', clientId: 'c', tokenUrl: 'http://tokens.example.org' },
          },
        },
      },
      'email.oauth2.tokenUrl',
    ],
    [
      'an unencrypted server elsewhere',
      { channels: { email: { ...EMAIL, imapSecurity: 'none' } } },
      'email.imapSecurity',
    ],
    [
      'a display name among the senders',
      { channels: { email: { allowFrom: ['Ada <ada@example.org>'] } } },
      'email.allowFrom',
    ],
    [
      'a user name that is no address',
      { channels: { email: { ...EMAIL, username: 'bot' } } },
      'email.from',
    ],
    [
      'a WhatsApp number without its country code',
      { channels: { whatsapp: { allowFrom: ['+491511234567', '01511234567'] } } },
      'whatsapp.allowFrom.1',
    ],
    [
      'a number with more than digits',
      { channels: { whatsapp: { phoneNumber: '+49 151 1234567' } } },
      'whatsapp.phoneNumber',
    ],
    ['a number too short', { channels: { whatsapp: { phoneNumber: '1234567' } } }, 'phoneNumber'],
    [
      'WhatsApp without TLS elsewhere',
      { channels: { whatsapp: { socketUrl: 'ws://192.168.0.2/ws/chat' } } },
      'whatsapp.socketUrl',
    ],
    [
      'a socket that is none',
      { channels: { whatsapp: { socketUrl: 'https://web.whatsapp.com' } } },
      'whatsapp.socketUrl',
    ],
    [
      'a sign that is a word',
      { channels: { whatsapp: { ackReaction: 'seen' } } },
      'whatsapp.ackReaction',
    ],
    [
      'pauses the wrong way round',
      { channels: { whatsapp: { pacing: { minGapMs: 2000, maxGapMs: 1000 } } } },
      'pacing.minGapMs',
    ],
    ['an open gateway without a token', { gateway: { host: '0.0.0.0' } }, 'gateway.token'],
    [
      'an open gateway with a guessable token',
      { gateway: { host: '::', token: 'abc' } },
      'gateway.token',
    ],
    [
      'an answer as long as the context',
      { agents: { defaults: { maxTokens: 4096, maxContextTokens: 4096 } } },
      'maxTokens',
    ],
    [
      'a model that falls back to itself',
      { agents: { defaults: { model: 'a/b', fallbackModels: ['a/b'] } } },
      'fallbackModels',
    ],
    ['a zone that is nowhere', { sessions: { timeZone: 'Mars/Olympus' } }, 'timeZone'],
    [
      'a hard limit below the soft one',
      { agents: { defaults: { compaction: { lossless: { softPercent: 90 } } } } },
      'lossless.softPercent',
    ],
    ['limits for nobody', { limits: { exceptions: [{ who: 'telegramm:7' }] } }, 'exceptions.0.who'],
    [
      'waits the wrong way round',
      { retry: { providerMinSecs: 40, providerMaxSecs: 30 } },
      'providerMinSecs',
    ],
    ['an address without http', { providers: { vllm: { apiBase: 'box:8000' } } }, 'apiBase'],
    [
      'a login in the address of a provider',
      { providers: { vllm: { apiBase: 'http://me:hidden-pw@box:8000/v1' } } },
      'vllm.apiBase',
    ],
    [
      'a login in the address of a peer',
      { cluster: { peers: { box: { apiBase: 'http://me:hidden-pw@box:8000/v1' } } } },
      'peers.box.apiBase',
    ],
    [
      'a login in an address that is refused anyway',
      { cluster: { peers: { box: { apiBase: 'http://me:hidden-pw@box.example/v1' } } } },
      'peers.box.apiBase',
    ],
    [
      'a mask where the secret was',
      { providers: { openai: { apiKey: 'sk-…abcd' } } },
      'openai.apiKey',
    ],
  ])('%s', (_name, part, path) => {
    const found = problemsOf({ ...V1, ...part });
    expect(found.map((problem) => problem.path).join(' ')).toContain(path);
    expect(found.every((problem) => problem.remedy !== '')).toBe(true);
    expect(JSON.stringify(found)).not.toContain('hidden-pw');
  });

  test('a mailbox by OAuth2 needs no password, and no token address at a known provider', () => {
    const oauth2 = { refreshToken: 'r', clientId: 'c' };
    const { password: _none, ...rest } = EMAIL;
    const email = { ...rest, imapHost: 'outlook.office365.com', oauth2 };
    expect(problemsOf({ ...V1, channels: { email } })).toEqual([]);
  });

  test('loopback needs no token and may go unencrypted', () => {
    const email = { ...EMAIL, imapHost: '127.0.0.1', imapSecurity: 'none' };
    const whatsapp = { socketUrl: 'ws://127.0.0.1:8080/ws/chat', phoneNumber: '491511234567' };
    const channels = { email, whatsapp: { ...whatsapp, allowFrom: ['*', '12345@lid'] } };
    expect(problemsOf({ ...V1, gateway: { host: '::1' }, channels })).toEqual([]);
  });
});

describe('the environment', () => {
  test('fills in texts, numbers and switches', () => {
    const { config, raw } = checkConfig(
      JSON.stringify({
        version: 1,
        gateway: { port: ref('PORT'), token: `pre-${ref('TOKEN')}-post` },
        memory: { enabled: ref('MEMORY') },
      }),
      { PORT: '8080', TOKEN: 'x', MEMORY: 'false' },
    );
    expect(config.gateway).toMatchObject({ port: 8080, token: 'pre-x-post' });
    expect(config.memory.enabled).toBe(false);
    expect(raw['gateway']).toEqual({ port: ref('PORT'), token: `pre-${ref('TOKEN')}-post` });
  });

  test('a missing variable is named, an empty one counts as missing', () => {
    const raw = {
      ...V1,
      providers: { openai: { apiKey: ref('NO_SUCH') }, groq: { apiKey: ref('E') } },
    };
    const found = problemsOf(raw, { E: '' });
    expect(found.map((problem) => problem.problem)).toEqual([
      expect.stringContaining('NO_SUCH'),
      expect.stringContaining('variable E '),
    ]);
  });

  test('a doubled dollar sign is the text itself', () => {
    const raw = { ...V1, providers: { openai: { apiKey: `$${ref('HOME')}` } } };
    expect(checkConfig(JSON.stringify(raw), { HOME: '/x' }).config.providers.openai.apiKey).toBe(
      ref('HOME'),
    );
  });

  test('an expanded value is not expanded again', () => {
    const raw = { ...V1, providers: { openai: { apiKey: ref('A') } } };
    const { config } = checkConfig(JSON.stringify(raw), { A: ref('B'), B: 'deep' });
    expect(config.providers.openai.apiKey).toBe(ref('B'));
  });
});
