// How other processes find the gateway of a home, and are not led to another one.

import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { beforeEach, expect, test } from 'vitest';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { announceGateway, findRunningGateway } from '../../src/kernel/home-state.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SELF = { address: 'http://127.0.0.1:1', startedAt: 5 };
let root: string;

beforeEach(async () => {
  root = await temporaryFolder();
});
const home = (path = root) => homeOf({ NANOBOT_HOME: path });

test('a gateway is found while it runs, and not behind its end', async () => {
  const takeBack = await announceGateway(home(), SELF);
  expect(await findRunningGateway(home())).toEqual({ ...SELF, pid: process.pid });
  await takeBack();
  expect(await findRunningGateway(home())).toBeUndefined();
});

test.runIf(process.platform === 'linux')(
  'another process with the number of one that was killed is no gateway',
  async () => {
    await announceGateway(home(), SELF);
    const written = JSON.parse(await readFile(home().runtime, 'utf8'));
    await writeFile(home().runtime, JSON.stringify({ ...written, pid: process.ppid }));
    expect(await findRunningGateway(home())).toBeUndefined();
  },
);

test('a copy of a home has no gateway, although that of the first one runs', async () => {
  await announceGateway(home(), SELF);
  const copy = `${root}-copy`;
  await cp(root, copy, { recursive: true });
  expect(await findRunningGateway(home(copy))).toBeUndefined();
  await rm(copy, { recursive: true });
});
