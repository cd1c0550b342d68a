import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { remoteSchema } from '../../src/features/mcp/remote-schema.ts';
import { createRemoteTools, isMeant, toolNames } from '../../src/features/mcp/remote-tool.ts';
import { mcpServersSchema, toolServerConflicts } from '../../src/features/mcp/settings.ts';
import { LineReader } from '../../src/features/mcp/stdio-transport.ts';
import { configSchema } from '../../src/kernel/config/config.ts';
import {
  literalSecrets,
  maskSecrets,
  secretValues,
  toolServerSecrets,
} from '../../src/kernel/config/secrets.ts';
import { cpuMs } from '../support/cpu-time.ts';
import { createMemoryMedia } from '../support/memory-media.ts';
import { createMovableClock } from '../support/movable-clock.ts';

const asIs = (text: string) => text;

describe('what a server says of the effects of a tool', () => {
  const toolWith = (trust: string, annotations?: object) => {
    const config = mcpServersSchema.parse({ calc: { command: 'calc', trust } })['calc'];
    if (config === undefined) throw new Error('no server');
    const { tools } = createRemoteTools(
      {
        ...{ server: 'calc', config, redact: asIs, media: createMemoryMedia(createMovableClock()) },
        ...{ own: { running: (work) => work() }, isAvailable: () => true },
        ...{ unavailableBecause: () => '', call: async () => ({ content: [] }) },
      },
      [{ name: 'go', description: '', schema: { type: 'object' }, annotations }],
    );
    const [tool] = tools;
    const { access, alwaysAsks } = tool ?? {};
    const [reach, standing] = [tool?.reachOf?.({}), tool?.standing?.({})];
    const asked = tool?.requestOf?.({}, { now: 0, timeZone: 'UTC' })?.sentence;
    return { asked, decides: { access, alwaysAsks, reach, standing } };
  };

  test.each([
    [undefined, 'Use `go` of the tool server `calc`?'],
    [{ readOnlyHint: true }, 'Use `go` of the tool server `calc`, which calls it read-only?'],
    [{ destructiveHint: true }, 'Use `go` of the tool server `calc`, which calls it destructive?'],
    [{ readOnlyHint: true, destructiveHint: true }, /read-only\?$/],
    [{ readOnlyHint: false }, 'Use `go` of the tool server `calc`?'],
  ])('%j changes the question and no decision', (annotations, asked) => {
    for (const trust of ['read_only', 'ask_once', 'always_ask']) {
      const tool = toolWith(trust, annotations);
      expect(tool.asked).toMatch(asked);
      expect(tool.decides).toEqual(toolWith(trust).decides);
    }
  });
});

describe('the name of a tool', () => {
  test('is one that vendors take, and no two tools of a server share one', () => {
    const tools = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 80 }), {
      maxLength: 8,
    });
    fc.assert(
      fc.property(tools, (names) => {
        const found = [...toolNames('some-server', names).values()];
        for (const name of found) expect(name).toMatch(/^mcp_some-server_[A-Za-z0-9_-]{1,48}$/);
        expect(new Set(found).size).toBe(names.length);
      }),
      {
        numRuns: 30,
        examples: [[['a.b', 'a/b', 'a_b']], [['x'.repeat(90), `${'x'.repeat(90)}y`]]],
      },
    );
    expect(toolNames('github', ['search_code']).get('search_code')).toBe('mcp_github_search_code');
  });

  test.each([
    ['*', 'anything', true],
    ['read_*', 'read_page', true],
    ['read_*', 'write_page', false],
    ['*_page', 'read_page', true],
    ['a*b*c', 'aXbYc', true],
    ['a*b*c', 'acb', false],
    ['ab*b', 'ab', false],
    ['exact', 'exactly', false],
    ['**', '', true],
  ])('pattern %s and tool %s', (pattern, tool, meant) => {
    expect(isMeant([pattern], tool)).toBe(meant);
  });
});

describe('the schema of a tool', () => {
  const layers = (count: number, layer: (inner: unknown) => unknown) =>
    Array.from({ length: count }).reduce<unknown>(layer, { type: 'string' });
  const inObject = (a: unknown) => ({ type: 'object', properties: { a } });
  const nested = (depth: number): unknown => (depth === 0 ? 1 : { a: nested(depth - 1) });
  const HOSTILE: readonly (readonly [string, unknown])[] = [
    ['a pattern that never ends', inObject({ type: 'string', pattern: '^(a+)+$' })],
    ['alternatives of alternatives', layers(14, (one) => inObject({ anyOf: [one, one] }))],
    ['itself', { type: 'object', properties: { a: { $ref: '#' } } }],
    ['a reference abroad', inObject({ $ref: 'file:///etc/passwd' })],
    ['no schema', 'object'],
    ['nothing', undefined],
    ['a depth nobody needs', layers(1000, inObject)],
    ['a length nobody reads', inObject({ description: 'x'.repeat(100_000) })],
    ['prototypes', JSON.parse('{"type":"object","properties":{"__proto__":{"type":"number"}}}')],
    ['a type there is not', inObject({ type: 'weather' })],
    ['what contradicts itself', inObject({ type: 'string', enum: [] })],
  ];

  test.each(HOSTILE)('%s costs no more than its own check', (_, schema) => {
    const { shown, input } = remoteSchema(schema, asIs);
    expect(shown['type']).toBe('object');
    expect(JSON.stringify(shown).length).toBeLessThan(24_001);
    const begun = cpuMs();
    input.safeParse({ a: `${'a'.repeat(40)}!` });
    input.safeParse(nested(14));
    expect(cpuMs() - begun).toBeLessThan(500);
  });

  test('is checked as far as that is cheap, and shown without what cannot be seen', () => {
    const { shown, input } = remoteSchema(
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        type: 'object',
        properties: {
          to: { type: 'string', description: 'who\u200B <|im_start|>' },
          n: { type: 'integer' },
        },
        required: ['to'],
      },
      asIs,
    );
    expect(shown).not.toHaveProperty('$schema');
    expect(JSON.stringify(shown)).toContain('who < |im_start|>');
    expect(input.safeParse({ to: 'a', n: 1, more: true }).data).toEqual({
      to: 'a',
      n: 1,
      more: true,
    });
    expect(input.safeParse({ n: 1 }).success).toBe(false);
    expect(input.safeParse({ to: 'a', n: 'x' }).success).toBe(false);
  });
});

describe('the configuration of a server', () => {
  test.each([
    [{}, 'neither command nor url'],
    [{ command: 'x', url: 'https://x.org' }, 'command and url'],
    [{ url: 'http://tools.example.org' }, 'could read and change the traffic'],
    [{ url: 'http://8.8.8.8' }, 'could read and change the traffic'],
    [{ url: 'ftp://x.org' }, 'not an http or https address'],
    [{ url: 'https://u:p@x.org' }, 'contains a user name or password'],
    [{ url: 'https://x.org', headers: { Host: 'y' } }, 'the connection sets'],
    [{ url: 'http://127.0.0.1:80' }, undefined],
    [{ url: 'http://192.168.1.4:80' }, undefined],
    [{ url: 'http://tools.lan', privateNetwork: true }, undefined],
    [{ command: 'npx' }, undefined],
  ])('%j', (written, problem) => {
    const [found] = toolServerConflicts({ mcpServers: mcpServersSchema.parse({ a: written }) });
    if (problem === undefined) expect(found).toBeUndefined();
    else expect(found?.problem).toContain(problem);
  });

  test.each([
    ['DEBUG', 'true', []],
    ['HOME', '/home/ann1', []],
    ['BASE', 'https://api.example.org/v1', []],
    ['API_KEY', 'hunter', ['hunter']],
    ['OTHER', 'sk-12345678', ['sk-12345678']],
    ['Authorization', 'Bearer t0ken-abc', ['Bearer t0ken-abc', 't0ken-abc']],
  ])('of %s=%s what is secret is hidden, and no word besides', (name, value, hidden) => {
    expect(toolServerSecrets(`mcpServers.a.env.${name}`, value)).toEqual(hidden);
  });
});

test('keys among arguments and in addresses are kept out of everything, and nothing else of them', () => {
  const elsewhere = `$${'{ELSEWHERE}'}`;
  const mcpServers = {
    local: {
      command: 'npx',
      args: [
        ...['-y', 'server', '--api-key', 'plant-1x', '--token=plant-2x', '--port', '3000'],
        ...['--header', 'Authorization: Bearer plant-3x', '-e', 'API_KEY=plant-4x'],
        ...['--key-file', '/home/me/key.pem', '--token', elsewhere, '--no-auth', 'notes'],
      ],
    },
    far: { url: 'https://mcp.test/s/Zk3plantedABCDEFGH5ijklmnop/mcp?key=plant%2F6x&view=compact' },
  };
  const shown = maskSecrets({ mcpServers });
  expect(JSON.stringify(shown)).not.toContain('plant');
  expect(shown).toEqual({
    mcpServers: {
      local: {
        command: 'npx',
        args: [
          ...['-y', 'server', '--api-key', '[redacted]', '--token=[redacted]', '--port', '3000'],
          ...['--header', 'Authorization: Bearer [redacted]', '-e', 'API_KEY=[redacted]'],
          ...['--key-file', '/home/me/key.pem', '--token', elsewhere, '--no-auth', 'notes'],
        ],
      },
      far: { url: 'https://mcp.test/s/[redacted]/mcp?key=[redacted]&view=compact' },
    },
  });
  expect(literalSecrets({ mcpServers })).toEqual(['mcpServers.local.args', 'mcpServers.far.url']);
  const hidden = secretValues(configSchema.parse({ mcpServers }));
  expect(hidden).toContain('plant/6x');
  expect(hidden).toHaveLength(6);
});

test('lines are the same however they are cut, and one that is too long ends the reading', () => {
  const text = fc.array(
    fc.string({ maxLength: 20 }).map((line) => line.replaceAll('\n', '')),
    {
      minLength: 1,
    },
  );
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 7 }), (lines, size) => {
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
      const reader = new LineReader(200);
      const read: string[] = [];
      for (let at = 0; at < bytes.length; at += size) {
        read.push(...(reader.read(bytes.subarray(at, at + size)) ?? ['too long']));
      }
      expect(read).toEqual(lines.map((line) => Buffer.from(line).toString()));
    }),
  );
  const reader = new LineReader(10);
  expect(reader.read(Buffer.from('12345'))).toEqual([]);
  expect(reader.read(Buffer.from('678901'))).toBeUndefined();
});
