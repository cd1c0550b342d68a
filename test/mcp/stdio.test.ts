import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { createMcpRig, goodServer, serversOf } from './mcp-rig.ts';

/** A process that has ended may stay in the list until somebody asks for its exit code. */
const isAlive = (pid: number) => {
  const found = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
  return /^[^Z\s]/.test(found.stdout.trim());
};

test('a server on this machine: its tools are offered, called, bounded and marked as untrusted content', async () => {
  const secrets = { env: { API_KEY: 'k-1234567890' } };
  const rig = await createMcpRig(
    { calc: { ...goodServer, ...secrets, disabledTools: ['hang'], toolAccess: { add: 'read' } } },
    { PATH: process.env['PATH'], NODE_OPTIONS: '--no-warnings', OTHER_TOKEN: 'not-yours' },
  );
  expect(rig.names()).toEqual([]);
  await rig.reaches('calc', 'connected');
  expect(rig.names()).toEqual([
    'mcp_calc_add',
    'mcp_calc_die',
    'mcp_calc_draw',
    'mcp_calc_env',
    'mcp_calc_fail',
    'mcp_calc_family',
    'mcp_calc_grow',
  ]);

  // What is read of it: no hidden characters, and the server's own words said to be so.
  const add = rig.toolbox.offered(rig.context.rights).specs[0];
  expect(add?.description).toBe('Tool of the server "calc", which says of it: Adds two numbers.');
  expect(JSON.stringify(add?.schema)).not.toMatch(/\u2066/);

  // Only the configuration says what a tool does to the world.
  const access = (name: string) => {
    const bound = rig.toolbox.bind(name, '{"a": 1, "b": 2}');
    return bound.kind === 'ready' ? bound.access : bound.outcome.text;
  };
  expect(access('mcp_calc_add')).toBe('read');
  expect(access('mcp_calc_env')).toBe('execute');

  const asked = rig.toolbox.bind('mcp_calc_add', '{"a": 1, "b": 2}');
  expect(asked.kind === 'ready' && asked.request?.({ now: 0, timeZone: 'UTC' })?.sentence).toBe(
    'Use `add` of the tool server `calc`, which calls it read-only?',
  );
  const sum = await rig.call('mcp_calc_add', { a: '2', b: 3 });
  expect(sum).toMatchObject({
    status: 'ok',
    isForeign: true,
    text: expect.stringContaining('> 5'),
  });
  expect(await rig.call('mcp_calc_add', { a: 'two' })).toMatchObject({
    failure: 'invalid_arguments',
    text: expect.stringContaining('"required":["a","b"]'),
  });
  expect(await rig.call('mcp_calc_fail')).toMatchObject({
    status: 'failed',
    failure: 'execution',
    isForeign: true,
    text: expect.stringContaining('no such customer'),
  });
  const { text: env } = await rig.call('mcp_calc_env');
  expect(env).toContain('k-1234567890');
  expect(env).not.toMatch(/NODE_OPTIONS|not-yours/);

  // An image is what its bytes say, not what the server calls it.
  const shown: unknown[] = [];
  const draw = rig.toolbox.bind('mcp_calc_draw', '{}');
  if (draw.kind === 'ready') await draw.run({ ...rig.context, show: (image) => shown.push(image) });
  expect(shown).toMatchObject([{ kind: 'image', mimeType: 'image/png' }]);

  await rig.call('mcp_calc_grow');
  await expect
    .poll(() => rig.names(), { interval: 10, timeout: 45_000 })
    .toContain('mcp_calc_grown');
  expect(rig.toolbox.offered(rig.context.rights).specs[0]).toBe(add);

  // A server that dies fails the call it was at, keeps its tools and comes back.
  await rig.clock.advance(10_000);
  expect(await rig.call('mcp_calc_die')).toMatchObject({
    failure: 'execution',
    text: expect.stringContaining('it may or may not have been done'),
  });
  await rig.reaches('calc', 'lost');
  const waiting = rig.call('mcp_calc_add', { a: 20, b: 22 });
  await rig.clock.advance(2000);
  expect(await waiting).toMatchObject({ status: 'ok', text: expect.stringContaining('42') });

  // Nothing of it is left at the end.
  const family = await rig.call('mcp_calc_family');
  const pids = JSON.parse(/\[\d+,\d+\]/.exec(family.text)?.[0] ?? '[]') as number[];
  expect(pids.filter(isAlive)).toHaveLength(2);
  const ended = rig.end();
  await rig.clock.advance(5000);
  await ended;
  await expect.poll(() => pids.filter(isAlive), { interval: 10, timeout: 45_000 }).toEqual([]);
});

test('a changed configuration connects, ends and leaves alone what it is about', async () => {
  const rig = await createMcpRig({ one: goodServer, two: { ...goodServer, enabled: false } });
  await rig.servers.tried();
  expect(rig.stateOf('one')).toBe('connected');
  const [before] = rig.servers.tools();
  const one = rig.state.servers['one'];
  rig.state.servers = serversOf({ one: goodServer, two: { ...goodServer, enabledTools: ['a*'] } });
  rig.servers.configured();
  await rig.reaches('two', 'connected');
  expect(rig.servers.tools()[0]).toBe(before);
  expect(rig.names().filter((name) => name.startsWith('mcp_two'))).toEqual(['mcp_two_add']);
  rig.state.servers = one === undefined ? {} : { one: { ...one, enabled: false } };
  rig.servers.configured();
  expect(rig.names()).toEqual([]);
  expect(rig.stateOf('one')).toBeUndefined();
});
