import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import type { EmbeddedStore } from '../../src/kernel/bus/store/store.ts';
import { userId } from '../../src/kernel/message/ids.ts';
import { createPairing, type Pairing } from '../../src/kernel/people/pairing.ts';
import { openPeopleRows } from '../../src/kernel/people/people-rows.ts';
import { createRows } from '../../src/kernel/rows.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const clock = createMovableClock();
let folder: string;
let store: EmbeddedStore;
let pairing: Pairing;

const person = (id: string, name = 'Ann') =>
  ({ kind: 'person', id: userId(id), name, verified: 'verified' }) as const;

beforeEach(async () => {
  folder = await temporaryFolder();
  store = await openEmbeddedStore({ path: join(folder, 'state.db'), clock, log: silentLogger });
  const rows = createRows(store);
  const peopleRows = openPeopleRows(rows, store.scope('people'));
  pairing = createPairing({ rows, peopleRows, clock, randomBytes });
});

afterEach(() => store[Symbol.asyncDispose]());

describe('a pairing code', () => {
  it('makes its first sender the owner, and nobody after', async () => {
    const { code } = await pairing.issueOwnerCode('chat');
    expect(await pairing.redeem('chat', person('1'), '1', code.toLowerCase())).toBe(true);
    expect(await pairing.roleOf('chat', ['1'])).toBe('owner');
    expect((await pairing.list()).approved).toMatchObject([{ userId: '1', role: 'owner' }]);
    expect(await pairing.redeem('chat', person('2'), '2', code)).toBe(false);
    expect(await pairing.roleOf('chat', ['2'])).toBeUndefined();
  });

  it('counts on its own channel only', async () => {
    const { code } = await pairing.issueOwnerCode('chat');
    expect(await pairing.redeem('mail', person('1'), '1', code)).toBe(false);
  });

  it('is worth nothing after half an hour', async () => {
    const { code } = await pairing.issueOwnerCode('chat');
    await clock.advance(31 * 60_000);
    expect(await pairing.redeem('chat', person('1'), '1', code)).toBe(false);
  });

  it('is worth nothing after ten guesses', async () => {
    const { code } = await pairing.issueOwnerCode('chat');
    for (let guess = 0; guess < 10; guess += 1) {
      expect(await pairing.redeem('chat', person('9'), '9', `WRONG${guess}`)).toBe(false);
    }
    expect(await pairing.redeem('chat', person('1'), '1', code)).toBe(false);
  });

  it('is not kept in clear', async () => {
    const { code } = await pairing.issueOwnerCode('chat');
    const rows = await store.scope('people').list('');
    expect(JSON.stringify(rows)).not.toContain(code);
  });
});

describe('what was decided about a person', () => {
  it('holds until it is taken back', async () => {
    await pairing.approve({ channel: 'chat', userId: '7', name: 'Eve' }, 'guest');
    expect(await pairing.list()).toMatchObject({ approved: [{ userId: '7', role: 'guest' }] });
    expect(await pairing.revoke('chat', '7')).toBe(true);
    expect(await pairing.roleOf('chat', ['7'])).toBeUndefined();
    expect(await pairing.revoke('chat', '7')).toBe(false);
  });

  it('keeps them out under every id once one of them is blocked', async () => {
    await pairing.approve({ channel: 'chat', userId: '7', name: '' }, 'trusted');
    await pairing.block({ channel: 'chat', ids: ['8', '9'], name: '' });
    expect(await pairing.roleOf('chat', ['7'])).toBe('trusted');
    expect(await pairing.roleOf('chat', ['7', '8'])).toBe('blocked');
    expect(await pairing.roleOf('chat', ['9'])).toBe('blocked');
    expect(await pairing.revoke('chat', '9')).toBe(true);
    expect(await pairing.roleOf('chat', ['8', '9'])).toBeUndefined();
  });
});
