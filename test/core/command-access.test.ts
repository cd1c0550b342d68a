// Every chat command, by who gives it and where. Case A03.

import { describe, expect, it, test } from 'vitest';
import { COMMAND_LIST } from '../../src/features/command-list.ts';
import { ADMITTED_ROLES } from '../../src/kernel/access/admission.ts';
import { mayGive } from '../../src/kernel/commands/command-access.ts';
import { COMMAND_GROUPS, createCommands } from '../../src/kernel/commands/commands.ts';
import { createRegistries } from '../../src/kernel/contributions.ts';

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
  ['mcp', 'owner', 'nobody'],
  ['budget', 'owner', 'nobody'],
  ['usage', 'guest', 'trusted'],
  ['cost', 'guest', 'trusted'],
  ['why', 'guest', 'trusted'],
  ['trust', 'owner', 'nobody'],
];
const HARMLESS = ['start', 'help', 'whoami'];
const FROM_HIGHEST: readonly string[] = ADMITTED_ROLES;

function accessOf(name: string) {
  const found = COMMAND_LIST.find((command) => command.name === name);
  if (found === undefined) throw new Error(`no command ${name}`);
  return found.access;
}

describe('who may give a command', () => {
  it('is said for every command there is', () => {
    const names = COMMAND_LIST.map(({ name }) => name);
    expect(names.toSorted()).toEqual(TABLE.map(([name]) => name).toSorted());
  });

  test.each(TABLE)('/%s: from %s on between two, from %s on in a group', (name, direct, group) => {
    const access = accessOf(name);
    for (const role of ADMITTED_ROLES) {
      const reaches = (lowest: string) =>
        FROM_HIGHEST.indexOf(role) <= FROM_HIGHEST.indexOf(lowest);
      for (const verified of ['verified', 'asserted'] as const) {
        expect(mayGive(access, { role, place: 'direct', verified }) === 'yes').toBe(
          reaches(direct),
        );
        expect(mayGive(access, { role, place: 'group', verified }) === 'yes').toBe(
          group !== 'nobody' && reaches(group),
        );
      }
      const forged = mayGive(access, { role, place: 'direct', verified: 'unverified' });
      expect(forged === 'yes').toBe(HARMLESS.includes(name));
    }
  });

  it('is told by /help, each command in one group', () => {
    const grouped = COMMAND_GROUPS.flatMap(([, names]) => names);
    const unlisted = COMMAND_LIST.map(({ name }) => name).filter((name) => !grouped.includes(name));
    expect(unlisted.toSorted()).toEqual(['help', 'start']);
    expect(new Set(grouped).size).toBe(grouped.length);
  });

  test.each(['', 'nothing', '__proto__', 'constructor'])('is nobody for %j', (name) => {
    const { contributed } = createRegistries();
    const commands = createCommands({ contributed, audit: { note: () => undefined } });
    expect(commands.find('/start')).toBeDefined();
    expect(commands.find(`/${name}`)).toBeUndefined();
  });
});
