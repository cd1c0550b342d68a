// The update from the package of commit 3e7dcfc, which has no `nanobot update`: its home and its program become those of
// today, and the way back is named.

import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findHomeHolder } from '../../src/kernel/bus/store/home-lock.ts';
import { storeMark } from '../../src/kernel/bus/store/store-copy.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { isFullCampaign } from '../support/campaign.ts';
import {
  type Installed,
  makeUpdateWorld,
  runs,
  SICK,
  TO,
  type UpdateWorld,
  versionOf,
} from '../support/update-world.ts';

const ROOT = join(import.meta.dirname, '../..');
const OLD = '0.1.1';
const execute = promisify(execFile);

const hasHistory = await execute('git', ['cat-file', '-e', '3e7dcfc^{commit}'], { cwd: ROOT }).then(
  () => true,
  () => false,
);

let world: UpdateWorld;
/** OLD, and no newer version beside it. */
let prefix: string;

/** A gateway of OLD used it. */
async function oldHome(): Promise<Installed> {
  const root = join(await mkdtemp(join(world.folder, 'case-')), 'home');
  await cp(join(ROOT, 'test/homes/v1/home'), root, { recursive: true });
  return { prefix, home: homeOf({ NANOBOT_HOME: root }) };
}

describe.skipIf(!hasHistory)('from the package of commit 3e7dcfc', () => {
  beforeAll(async () => {
    world = await makeUpdateWorld();
    const { registry, folder } = world;
    const old = join(folder, 'old');
    await mkdir(old);
    await execute('sh', ['-c', `git archive 3e7dcfc | tar -x -C ${old}`], { cwd: ROOT });
    await execute(process.execPath, [join(ROOT, 'test/support/strip-types.mjs'), old]);
    await registry.publish(old, OLD);
    registry.latest = TO;
    prefix = join(folder, 'prefix-of-old');
    await registry.installed(prefix, [OLD]);
  });

  afterAll(() => world?.[Symbol.asyncDispose]());

  it.runIf(isFullCampaign())(
    'a home in which nobody waits for an answer goes back with the program',
    async () => {
      const root = join(await mkdtemp(join(world.folder, 'case-')), 'home');
      const quiet = { prefix, home: homeOf({ NANOBOT_HOME: root }) };
      await world.nanobot(quiet, ['agent', '-m', 'hello']);
      expect(storeMark(quiet.home.state).schema).toBe(4);
      await using failing = world.gatewayService(quiet);
      const run = await world.updateWatched(quiet, failing, SICK, OLD);
      expect([run.step, await versionOf(quiet)]).toEqual(['rolled-back', OLD]);
      await failing.stop();
      expect(storeMark(quiet.home.state).schema).toBe(4);
      expect((await world.nanobot(quiet, ['status'])).code).toBe(0);
    },
  );

  it('its home and its program become those of today, and the way back is named', async () => {
    const { nanobot, registry } = world;
    const before = await oldHome();
    const today = { ...(await world.installed([TO])), home: before.home };
    expect(storeMark(before.home.state).schema).toBe(4);
    const { code, said } = await nanobot(today, ['update', '--installation', prefix, '--to', TO]);
    expect([code, said]).toEqual([0, expect.stringContaining(`updated from ${OLD} to ${TO}`)]);
    expect(await versionOf(before)).toBe(TO);
    await using service = world.gatewayService(before);
    await service.start();
    await runs(before);
    await service.stop();
    expect(storeMark(before.home.state).schema).toBeGreaterThan(4);
    const oldProgram = join(prefix, 'versions', OLD, 'node_modules', registry.name);
    const refused = await execute(
      process.execPath,
      [join(oldProgram, 'bin/nanobot.js'), 'status'],
      {
        env: world.environment(before.home),
      },
    ).catch((error: { readonly stderr: string }) => error);
    expect(refused.stderr).toContain('newer nanobot');
    const back = await nanobot(before, ['update', '--to', OLD]);
    expect([back.code, back.said]).toEqual([
      1,
      expect.stringMatching(/Nothing was changed\. .*backup restore \S+ --from \S+ --force/s),
    ]);
    expect(await versionOf(before)).toBe(TO);
    expect(await findHomeHolder(before.home.lock)).toBeUndefined();
  });
});
