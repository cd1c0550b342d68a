import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Health, readinessOf } from '../../src/http/routes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type GatewayStatus, startHttp } from './http-rig.ts';

const NOW = 1_000_000_000;
type Status = Health['channels'][number]['status'];

describe('readiness', () => {
  it.each<[string, Status, boolean]>([
    ['off', { kind: 'off', remedy: 'turn it on' }, true],
    ['running, polled just now', { kind: 'running', activeAt: NOW }, true],
    ['running, polled 150 s ago', { kind: 'running', activeAt: NOW - 150_000 }, true],
    ['said to run, but silent for longer', { kind: 'running', activeAt: NOW - 150_001 }, false],
    ['running by a clock ahead of ours', { kind: 'running', activeAt: NOW + 5000 }, true],
    ['starting', { kind: 'starting' }, false],
    ['trying again', { kind: 'degraded', reason: 'no network' }, false],
    ['stopped', { kind: 'stopped', reason: 'token refused', remedy: 'log in' }, false],
  ])('of a channel that is %s', (_name, status, ready) => {
    const channels = [{ name: 'telegram', status }];
    expect(readinessOf({ channels, storeWaitMs: 0 }, NOW)).toMatchObject({
      ready,
      channels: [{ name: 'telegram', ready, status }],
    });
  });

  it('turns red for the silent channel alone, and the gateway stays alive', async () => {
    let activeAt = 0;
    const status = (): GatewayStatus => ({
      model: 'demo/demo',
      channels: [
        { name: 'telegram', status: { kind: 'running', activeAt: activeAt } },
        { name: 'email', status: { kind: 'running', activeAt: rig.clock.now() } },
      ],
      storeWaitMs: 0,
    });
    await using rig = await startHttp({ status });
    activeAt = rig.clock.now();
    const before = await rig.ask('/readyz');
    expect(before.status).toBe(200);
    await rig.clock.advance(151_000);
    const after = await rig.ask('/readyz');
    expect(after.status).toBe(503);
    expect(JSON.parse(after.body)).toMatchObject({
      ready: false,
      channels: [
        { name: 'telegram', ready: false, idleMs: 151_000 },
        { name: 'email', ready: true, idleMs: 0 },
      ],
    });
    expect((await rig.ask('/healthz')).status).toBe(200);
  });

  it.each([
    [5000, true],
    [5001, false],
  ])('of a store that waited %i ms for the disk', (waitMs, ready) => {
    expect(readinessOf({ channels: [], storeWaitMs: waitMs }, NOW)).toEqual({
      ready,
      store: { ready, waitMs },
      channels: [],
    });
  });

  it('comes with the model that answers', async () => {
    await using rig = await startHttp();
    expect(JSON.parse((await rig.ask('/api/status')).body)).toMatchObject({ model: 'demo/demo' });
  });
});

it('health and readiness are answered while files hold every thread of the pool', async () => {
  await using rig = await startHttp();
  const folder = await temporaryFolder();
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  // Opening a pipe for reading waits for a writer; more of them than the pool has threads.
  const held = Array.from({ length: 64 }, () => open(pipe, 'r'));
  let isPoolFree = false;
  const behind = stat(folder).then(() => {
    isPoolFree = true;
  });
  const statuses = [(await rig.ask('/healthz')).status, (await rig.ask('/readyz')).status];
  expect([statuses, isPoolFree]).toEqual([[200, 200], false]);
  // Both ends at once: nobody is waited for, and the readers go on.
  const writer = openSync(pipe, 'r+');
  for (const file of await Promise.all(held)) await file.close();
  await behind;
  closeSync(writer);
});
