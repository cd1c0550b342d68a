// Updates of an installed package, from a registry to the version that starts: killed at every step, with a full disk, and
// to versions that do not start or do not stay healthy.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { operationsState } from '../../src/features/health/rules/views.ts';
import { outcomeText } from '../../src/features/update/record.ts';
import type { GatewayService } from '../../src/features/update/update.ts';
import { readMadeToken } from '../../src/kernel/config/files/home.ts';
import { findRunningGateway } from '../../src/kernel/home-state.ts';
import { campaignOf, isFullCampaign } from '../support/campaign.ts';
import { startUserSystemd } from '../support/systemd.ts';
import {
  DEAF,
  FROM,
  type Installed,
  makeUpdateWorld,
  recorded,
  runs,
  SICK,
  TO,
  type UpdateWorld,
  versionOf,
} from '../support/update-world.ts';

const execute = promisify(execFile);
let world: UpdateWorld;

/** The owner knows how it ended: behind several starts of the gateway. */
const told = (at: Installed) =>
  expect.poll(async () => (await recorded(at)).told, { timeout: 120_000 }).toBe(true);

beforeAll(async () => {
  world = await makeUpdateWorld();
});

afterAll(() => world[Symbol.asyncDispose]());

it('asks for the newest version only, and installs it once', async () => {
  const { registry, nanobot } = world;
  const at = await world.installed([FROM]);
  const before = registry.asked.length;
  const checked = await nanobot(at, ['update', '--check']);
  expect(checked.said).toContain(`${TO} is available; this is ${FROM}`);
  expect(checked.said).toContain(`What changed: ${registry.url}changes`);
  expect(registry.asked.slice(before)).toEqual([`/${registry.name}/latest`]);
  const { code, said } = await nanobot(at, ['update']);
  expect([code, said]).toEqual([0, expect.stringContaining(`updated from ${FROM} to ${TO}`)]);
  expect((await nanobot(at, ['--version'])).said.trim()).toBe(TO);
  expect(await recorded(at)).toMatchObject({ step: 'done', from: FROM, to: TO });
  expect((await nanobot(at, ['update'])).said).toContain('There is nothing to do');
});

const STEPS = ['preparing', 'stopping', 'switched', 'watching', 'done'] as const;
const BREAKS = [
  ...STEPS.slice(0, 4).map((step) => `full at ${step}`),
  'full at switched, kill after rolling-back',
  'full at switched, kill before rolling-back',
  'full at switched, kill before rolled-back',
  ...STEPS.flatMap((step) => [`kill before ${step}`, `kill after ${step}`]),
];

/** Where the way back was recorded it is taken to its end, else the way on. */
const endOf = (how: string) =>
  /rolling-back|rolled-back/.test(how) && !how.endsWith('kill before rolling-back')
    ? { version: FROM, step: 'rolled-back', code: 1 }
    : { version: TO, step: 'done', code: 0 };

describe('an update that is killed or fills the disk', () => {
  it.each(campaignOf(BREAKS, 1))(
    '%s: what stands there starts, and the next update ends it',
    async (how) => {
      const { nanobot } = world;
      const at = await world.installed();
      const { code: broken, said } = await nanobot(at, ['update'], how);
      expect(broken).not.toBe(0);
      const isKilled = how.includes('kill');
      if (!isKilled) expect(said).toMatch(/no space left|the disk .* is full/);
      const standing = isKilled ? [FROM, TO] : [FROM];
      expect(standing).toContain((await nanobot(at, ['--version'])).said.trim());
      const isBetween = isKilled && !/preparing|before stopping|after done/.test(how);
      const warning = (await nanobot(at, ['doctor'])).said.includes(
        `update to ${TO} was interrupted`,
      );
      expect(warning).toBe(isBetween);
      const { code } = await nanobot(at, ['update']);
      const { step } = await recorded(at);
      expect({ version: await versionOf(at), step, code }).toEqual(endOf(how));
      expect(existsSync(at.home.beforeUpdate)).toBe(false);
      expect((await nanobot(at, ['doctor'])).said).not.toContain('was interrupted');
    },
  );
});

it('is started from the page, outlives the gateway that it stops, and its steps are shown after that', async () => {
  const at = await world.installed([FROM, TO]);
  await using systemd = await startUserSystemd(world.folder);
  if (systemd === undefined) return console.log('skipped: systemd cannot run here');
  const run = (...args: readonly string[]) => world.nanobot(at, args, '', systemd.env);
  expect(await run('service', 'install')).toMatchObject({ code: 0 });
  const token = await readMadeToken(at.home);
  const call = async (path: string) => {
    const gateway = await findRunningGateway(at.home);
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    return fetch(`${gateway?.address}${path}`, { method: 'POST', body: '{}', headers });
  };
  const shown = async () => {
    const gateway = await findRunningGateway(at.home);
    const headers = { authorization: `Bearer ${token}` };
    const url = `${gateway?.address}/api/v1/operations/events`;
    const { body } = await fetch(url, { headers });
    let text = '';
    for await (const part of body ?? []) {
      text += Buffer.from(part).toString();
      const [, data] = /^data: (.*)\n\n/m.exec(text) ?? [];
      if (data !== undefined) return operationsState.parse(JSON.parse(data));
    }
    throw new Error(`no state: ${text}`);
  };
  await runs(at);
  expect(await (await call('/api/v1/update/check')).json()).toEqual({ version: TO, isNewer: true });
  const before = await shown();
  expect([before.version, before.update]).toMatchObject([FROM, { newer: { version: TO } }]);
  expect(before.update).not.toHaveProperty('remedy');
  const started = await call('/api/v1/update');
  expect([started.status, await started.text()]).toEqual([202, '{"result":"started"}']);
  expect((await call('/api/v1/update')).status).toBe(409);
  await expect
    .poll(() => shown().catch(() => undefined), { timeout: 120_000 })
    .toMatchObject({ version: TO, update: { isRunning: true, run: { step: 'watching', to: TO } } });
  const { update } = await shown();
  expect(update.said.join('\n')).toMatch(/Back-up .*started on a copy.*it is watched/s);
});

describe('an update whose updater was killed while it watched', () => {
  it('goes back by itself from a version that does not stay healthy, and the owner is told the reason', async () => {
    const { nanobot } = world;
    const at = await world.installed();
    await nanobot(at, ['update', '--to', SICK], 'kill after watching');
    expect((await recorded(at)).step).toBe('watching');
    expect((await nanobot(at, ['doctor'])).said).toContain(`update to ${SICK} was interrupted`);
    await using _service = world.restarted(at);
    await told(at);
    const run = await recorded(at);
    expect([run.step, await versionOf(at)]).toEqual(['rolled-back', FROM]);
    expect(outcomeText(run)).toContain('the gateway ended and was started again');
    expect(existsSync(at.home.beforeUpdate)).toBe(false);
    await runs(at);
  });

  it.runIf(isFullCampaign())('is finished by the next one', async () => {
    const at = await world.installed();
    await world.nanobot(at, ['update', '--to', SICK], 'kill after watching');
    await using service = world.gatewayService(at);
    expect((await world.updateWatched(at, service, SICK)).step).toBe('rolled-back');
    expect(await versionOf(at)).toBe(FROM);
  });

  it.runIf(isFullCampaign())(
    'ends when the gateway was healthy for as long as the updater would have watched',
    async () => {
      const at = await world.installed();
      await world.nanobot(at, ['update', '--watch', '1'], 'kill after watching');
      await using _service = world.restarted(at);
      await expect.poll(async () => (await recorded(at)).step).toBe('done');
      await expect.poll(() => existsSync(at.home.beforeUpdate)).toBe(false);
      expect(await versionOf(at)).toBe(TO);
    },
  );

  it.runIf(isFullCampaign())('goes back where a channel does not run any more', async () => {
    const at = await world.installed();
    await world.nanobot(at, ['update', '--watch', '1'], 'kill after watching');
    const channels = ['telegram'];
    await writeFile(at.home.update, JSON.stringify({ ...(await recorded(at)), channels }));
    await using _service = world.restarted(at);
    await told(at);
    expect(outcomeText(await recorded(at))).toContain('not running any more: telegram');
    expect(await versionOf(at)).toBe(FROM);
  });
});

it.runIf(isFullCampaign())(
  'an installation by npm install --global is updated in its place, and back',
  async () => {
    const { name, url } = world.registry;
    const at = await world.installed();
    const prefix = await mkdtemp(join(world.folder, 'global-'));
    const options = ['--global', '--prefix', prefix, '--registry', url, '--ignore-scripts'];
    await execute('npm', ['install', ...options, '--no-audit', '--no-fund', `${name}@${FROM}`]);
    const command = (...args: string[]) =>
      execute(join(prefix, 'bin/nanobot'), args, { env: world.environment(at.home) });
    expect((await command('update')).stdout).toContain(`updated from ${FROM} to ${TO}`);
    expect((await command('--version')).stdout.trim()).toBe(TO);
    const back = await command('update', '--to', FROM);
    expect(back.stdout).toContain(`updated from ${TO} to ${FROM}`);
    expect((await command('--version')).stdout.trim()).toBe(FROM);
  },
);

it('a version that does not start on a copy of the home changes nothing', async () => {
  const at = await world.installed();
  const { code, said } = await world.nanobot(at, ['update', '--to', DEAF]);
  expect([code, said]).toEqual([
    1,
    expect.stringMatching(/does not start on a copy .* Nothing was changed/s),
  ]);
  expect(await versionOf(at)).toBe(FROM);
});

describe('under a service', () => {
  let at: Installed;
  let service: GatewayService & AsyncDisposable;
  let asked: number;

  beforeAll(async () => {
    at = await world.installed();
    asked = world.registry.asked.length;
    service = world.gatewayService(at);
    await service.start();
  });

  afterAll(() => service[Symbol.asyncDispose]());

  it('the gateway does not ask for newer versions unless that is switched on', async () => {
    await runs(at);
    expect((await world.nanobot(at, ['doctor'])).said).not.toMatch(/registry|is available/);
    expect(existsSync(at.home.newest)).toBe(false);
    expect(world.registry.asked.length).toBe(asked);
    const set = await world.nanobot(at, ['config', 'set', 'update.check', 'daily']);
    expect(set.code).toBe(0);
  });

  it('a version that does not stay healthy is replaced by the one before, and the owner is told', async () => {
    const run = await world.updateWatched(at, service, SICK);
    expect(run.step).toBe('rolled-back');
    expect(outcomeText(run)).toMatch(
      new RegExp(`update to ${SICK} was rolled back: .* Version ${FROM} runs again`),
    );
    expect(await versionOf(at)).toBe(FROM);
    await runs(at);
    await told(at);
  });

  it('the gateway asks once a day where that is switched on, and says what it knows', async () => {
    const { nanobot, registry } = world;
    await expect.poll(() => existsSync(at.home.newest)).toBe(true);
    expect((await nanobot(at, ['status'])).said).toContain(`${TO} is available`);
    expect((await nanobot(at, ['doctor'])).said).toContain(`${TO} is available`);
    expect(registry.asked.slice(asked)).toEqual([`/${registry.name}/latest`]);
    await nanobot(at, ['config', 'set', 'update.check', 'never']);
    expect((await nanobot(at, ['doctor'])).said).not.toContain('is available');
  });

  it.runIf(isFullCampaign())('a healthy version stays, and the owner is told', async () => {
    const run = await world.updateWatched(at, service, TO);
    expect([run.step, await versionOf(at)]).toEqual(['done', TO]);
    await told(at);
  });
});
