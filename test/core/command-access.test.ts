// Every command, by who gives it and where. Case A03.

import { describe, expect, it, test } from 'vitest';
import { ADMITTED_ROLES } from '../../src/kernel/access/admission.ts';
import { COMMAND_ACCESS, mayGive } from '../../src/kernel/access/command-access.ts';
import { COMMANDS } from '../../src/kernel/commands/commands.ts';
import { COMMAND_GROUPS } from '../../src/kernel/commands/help-text.ts';

/** Lowest role between two; lowest in a group. */
const TABLE: readonly (readonly [string, string, string])[] = [
  ['start', 'guest', 'trusted'],
  ['help', 'guest', 'trusted'],
  ['whoami', 'guest', 'trusted'],
  ['new', 'guest', 'trusted'],
  ['compact', 'guest', 'trusted'],
  ['stop', 'guest', 'trusted'],
  ['undo', 'guest', 'trusted'],
  ['restore', 'guest', 'owner'],
  ['context', 'guest', 'trusted'],
  ['sessions', 'guest', 'nobody'],
  ['skills', 'trusted', 'owner'],
  ['status', 'trusted', 'trusted'],
  ['model', 'trusted', 'owner'],
  ['local', 'trusted', 'owner'],
  ['mode', 'trusted', 'owner'],
  ['think', 'trusted', 'owner'],
  ['queue', 'trusted', 'owner'],
  ['me', 'guest', 'nobody'],
  ['language', 'guest', 'nobody'],
  ['timezone', 'guest', 'nobody'],
  ['quiet', 'guest', 'nobody'],
  ['agents', 'trusted', 'trusted'],
  ['kill', 'trusted', 'trusted'],
  ['cron', 'trusted', 'nobody'],
  ['workflow', 'trusted', 'nobody'],
  ['memory', 'guest', 'trusted'],
  ['forget', 'guest', 'owner'],
  ['export', 'guest', 'nobody'],
  ['link', 'guest', 'nobody'],
  ['unlink', 'guest', 'nobody'],
  ['continue', 'guest', 'nobody'],
  ['people', 'owner', 'nobody'],
  ['strangers', 'owner', 'nobody'],
  ['allow', 'owner', 'nobody'],
  ['block', 'owner', 'nobody'],
  ['drop', 'owner', 'nobody'],
  ['approvals', 'owner', 'nobody'],
  ['cluster', 'owner', 'nobody'],
  ['budget', 'owner', 'nobody'],
  ['usage', 'guest', 'trusted'],
  ['cost', 'guest', 'trusted'],
  ['why', 'guest', 'trusted'],
];
const HARMLESS = ['start', 'help', 'whoami'];
const FROM_HIGHEST: readonly string[] = ADMITTED_ROLES;

describe('who may give a command', () => {
  it('is said for every command there is', () => {
    for (const { name } of COMMANDS) expect(COMMAND_ACCESS).toHaveProperty(name);
    expect(Object.keys(COMMAND_ACCESS).toSorted()).toEqual(TABLE.map(([name]) => name).toSorted());
  });

  test.each(TABLE)('/%s: from %s on between two, from %s on in a group', (name, direct, group) => {
    for (const role of ADMITTED_ROLES) {
      const reaches = (lowest: string) =>
        FROM_HIGHEST.indexOf(role) <= FROM_HIGHEST.indexOf(lowest);
      for (const verified of ['verified', 'asserted'] as const) {
        expect(mayGive(name, { role, place: 'direct', verified }) === 'yes').toBe(reaches(direct));
        expect(mayGive(name, { role, place: 'group', verified }) === 'yes').toBe(
          group !== 'nobody' && reaches(group),
        );
      }
      const forged = mayGive(name, { role, place: 'direct', verified: 'unverified' });
      expect(forged === 'yes').toBe(HARMLESS.includes(name));
    }
  });

  it('is told by /help, each command in one group', () => {
    const grouped = COMMAND_GROUPS.flatMap(([, names]) => names);
    const unlisted = COMMANDS.map(({ name }) => name).filter((name) => !grouped.includes(name));
    expect(unlisted.toSorted()).toEqual(['help', 'start']);
    expect(new Set(grouped).size).toBe(grouped.length);
  });

  test.each(['', 'nothing', '__proto__', 'constructor'])('is nobody for %j', (name) => {
    const owner = { role: 'owner', place: 'direct', verified: 'verified' } as const;
    expect(mayGive(name, owner)).toBe('not this role');
  });
});
