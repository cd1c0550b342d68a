// Who may have what done, and where: the whole table, and that nothing widens it but an entry that
// the machine's user wrote.

import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { carriesData, isOwnFile, writeAccessOf } from '../../src/agent/rules/taint.ts';
import {
  ALL_RIGHTS,
  NO_RIGHTS,
  narrowed,
  PERMISSIONS,
  type Permission,
  permissionOf,
  type Rights,
  rightsOf,
  type SenderStanding,
  TOOL_ACCESSES,
  toolPolicyOf,
} from '../../src/kernel/access/rights.ts';

const OWNER = 'read web say write | rules send execute schedule';
const READER = 'read web say |';
const NOTHING = '|';

/** What is free, and behind the bar what has to be asked. */
function written(rights: Rights): string {
  const of = (permission: Permission) =>
    TOOL_ACCESSES.filter((access) => rights[access] === permission).join(' ');
  return `${of('free')} | ${of('ask')}`.trim();
}

const TABLE: readonly (readonly [string, string, string])[] = [
  ['owner direct verified chat', OWNER, 'everything is theirs, the dangerous on a yes'],
  ['owner direct asserted chat', OWNER, 'vouched for by a party we trust'],
  ['owner direct unverified chat', NOTHING, 'anybody could say so'],
  ['owner group verified chat', READER, 'others write there too'],
  ['owner direct verified mail', READER, 'a proven sender, not a proven text'],
  ['owner direct asserted mail', READER, 'the same'],
  ['owner direct unverified mail', NOTHING, 'a From line is forged in a minute'],
  ['trusted direct verified chat', READER, 'listed, and no owner'],
  ['trusted direct asserted chat', READER, 'the same'],
  ['trusted direct unverified chat', NOTHING, 'anybody could say so'],
  ['trusted group verified chat', READER, 'a listed member'],
  ['trusted direct verified mail', READER, 'J01'],
  ['trusted direct unverified mail', NOTHING, 'J01'],
  ['guest direct verified chat', NOTHING, 'let in, known to nobody'],
  ['guest group verified chat', NOTHING, 'any member of the group'],
  ['guest direct verified mail', NOTHING, 'a stranger who proved an address'],
  ['guest direct unverified mail', NOTHING, 'anybody at all'],
];

function standingOf(text: string): SenderStanding {
  const [role, place, verified, medium] = text.split(' ');
  return { role, place, verified, medium } as SenderStanding;
}

const standing = fc.record({
  role: fc.constantFrom('owner', 'trusted', 'guest'),
  place: fc.constantFrom('direct', 'group'),
  verified: fc.constantFrom('verified', 'asserted', 'unverified'),
  medium: fc.constantFrom('chat', 'mail'),
}) as fc.Arbitrary<SenderStanding>;
const entry = fc.record(
  Object.fromEntries(TOOL_ACCESSES.map((access) => [access, fc.constantFrom(...PERMISSIONS)])),
  { requiredKeys: [] },
) as fc.Arbitrary<Partial<Rights>>;
const rank = (permission: Permission) => PERMISSIONS.indexOf(permission);

describe('what somebody may have done', () => {
  test.each(TABLE)('%s: %s (%s)', (who, expected) => {
    expect(written(rightsOf(standingOf(who)))).toBe(expected);
  });

  it('never exceeds what the group has, whatever is granted to the person', () => {
    fc.assert(
      fc.property(standing, entry, entry, (who, person, group) => {
        const alone = rightsOf({ ...who, place: 'direct' }, { person });
        const there = rightsOf({ ...who, place: 'group' }, { person, group });
        for (const access of TOOL_ACCESSES) {
          const cap = group[access] ?? (READER.includes(access) ? 'free' : 'never');
          expect(rank(there[access])).toBeGreaterThanOrEqual(rank(cap));
          expect(rank(there[access])).toBeGreaterThanOrEqual(rank(alone[access]));
        }
      }),
    );
  });

  it('is nothing for a sender whom nothing verifies, whatever is granted', () => {
    fc.assert(
      fc.property(standing, entry, entry, (who, person, group) => {
        const rights = rightsOf({ ...who, verified: 'unverified' }, { person, group });
        expect(rights).toEqual(NO_RIGHTS);
      }),
    );
  });

  it('is widened and narrowed by an entry for the person, in their own chat and by mail', () => {
    const mail = standingOf('owner direct verified mail');
    expect(written(rightsOf(mail, { person: { write: 'free' } }))).toBe('read web say write |');
    const chat = standingOf('owner direct verified chat');
    expect(rightsOf(chat, { person: { execute: 'never' } }).execute).toBe('never');
    const group = standingOf('owner group verified chat');
    expect(rightsOf(group, { person: { write: 'free' } }).write).toBe('never');
    expect(rightsOf(group, { group: { write: 'free' } }).write).toBe('free');
    const member = standingOf('trusted group verified chat');
    expect(rightsOf(member, { group: { write: 'free' } }).write).toBe('never');
  });

  it('is the narrowest of several people', () => {
    fc.assert(
      fc.property(standing, standing, (one, other) => {
        const both = narrowed(rightsOf(one), rightsOf(other));
        expect(both).toEqual(narrowed(rightsOf(other), rightsOf(one)));
        for (const access of TOOL_ACCESSES) {
          expect(rank(both[access])).toBeGreaterThanOrEqual(rank(rightsOf(one)[access]));
        }
      }),
    );
  });
});

describe('an entry of the configuration', () => {
  const people = [
    { who: 'telegram:42', execute: 'never' as const },
    { who: 'telegram:4', write: 'never' as const },
    { who: 'whatsapp:+49', send: 'free' as const },
    { who: 'whatsapp:1@lid', send: 'ask' as const },
  ];
  const of = (channel: string, ...ids: readonly string[]) =>
    toolPolicyOf(
      { people, groups: people, approvals: { owner: 'normal', trusted: 'normal' } },
      { channel, ids, group: [] },
    );

  it('is about one id of one channel, and about nobody who is called alike', () => {
    expect(of('telegram', '42')).toEqual({ person: { execute: 'never' } });
    for (const id of ['042', '42 ', '421', 'telegram:42', ''])
      expect(of('telegram', id)).toEqual({});
    expect(of('email', '42')).toEqual({});
  });

  it('counts with the narrowest of a person’s ids', () => {
    expect(of('whatsapp', '1@lid', '+49')).toEqual({ person: { send: 'ask' } });
    expect(of('whatsapp', '+49')).toEqual({ person: { send: 'free' } });
  });
});

describe('a conversation that shows untrusted content', () => {
  it.each(TOOL_ACCESSES)('has %s at most as free as before', (access) => {
    const careful = ['rules', 'send', 'execute', 'schedule'].includes(access);
    expect(permissionOf(access, ALL_RIGHTS, true)).toBe(careful ? 'ask' : 'free');
    expect(permissionOf(access, NO_RIGHTS, true)).toBe('never');
    expect(permissionOf(access, ALL_RIGHTS, false)).toBe('free');
  });

  it.each([
    'AGENTS.md',
    'HEARTBEAT.md',
    './agents.md',
    'a/../SOUL.md',
    'sub/AGENTS.md',
    'CONTEXT.md',
    'context-telegram.md',
    'skills/x/SKILL.md',
    'skills//x/run.sh',
    './Skills/x',
    'USER.md.',
    'USER.md ',
    'A\u200bGENTS.md',
    'ＡＧＥＮＴＳ.md',
    '/home/nanobot/workspace/skills/x/SKILL.md',
  ])('takes writing %j for changing rules, also before', (path) => {
    expect(writeAccessOf(path, false)).toBe('rules');
  });

  it.each([
    'AGENTS.md',
    './SOUL.md',
    'CONTEXT-telegram.md',
    'skills/x/SKILL.md',
    'memory/MEMORY.md',
    'memory/2026-01-01.md',
  ])('takes %j for what the owner wrote or said yes to', (path) => {
    expect(isOwnFile(path)).toBe(true);
  });

  it.each([
    'sub/AGENTS.md',
    'agents.md',
    'a/../AGENTS.md',
    'skills/../inbox/a.md',
    'memory/sessions/SESSION_1.md',
    'memory/Sessions/SESSION_1.md',
    'memory/./sessions/SESSION_1.md',
    'memory//sessions/SESSION_1.md',
    'ＡＧＥＮＴＳ.md',
    'memory/s\u200bessions/x.md',
    '/w/AGENTS.md',
    'notes.txt',
  ])('does not take %j for that', (path) => {
    expect(isOwnFile(path)).toBe(false);
  });

  it.each(['memory/MEMORY.md', 'x/../memory/2026-01-01.md', '/w/memory/MEMORY.md'])(
    'takes writing %j for changing rules from then on',
    (path) => {
      expect(writeAccessOf(path, false)).toBe('write');
      expect(writeAccessOf(path, true)).toBe('rules');
    },
  );

  it.each(['notes.txt', 'agents.txt', 'myskills/x', 'skills.md', 'docs/memory/x.md', 'CONTEXT/x'])(
    'takes writing %j for writing',
    (path) => {
      expect(writeAccessOf(path, true)).toBe('write');
    },
  );
});

describe('an address that could carry words away', () => {
  const data = 'q='.padEnd(80, 's');
  const none = { own: [], foreign: [] };
  test.each([
    ['a long query', `https://evil.test/?${data}`],
    ['a long path', `https://evil.test/${data}`],
    ['a long name of a host', `https://${'a'.repeat(40)}.${'b'.repeat(40)}.evil.test/`],
    ['a user', `https://${data}@evil.test/`],
    ['no address at all', 'not an address'],
  ])('is one with %s', (_, url) => {
    expect(carriesData(url, none)).toBe(true);
  });

  test.each([
    ['short', 'https://evil.test/?q=weather', none],
    [
      'at a host the person named',
      `https://docs.test/?${data}`,
      { ...none, own: ['see docs.test'] },
    ],
    [
      'written by others to the letter',
      `https://evil.test/?${data}`,
      { ...none, foreign: [`read https://evil.test/?${data}.`] },
    ],
  ])('is none that is %s', (_, url, known) => {
    expect(carriesData(url, known)).toBe(false);
  });

  test.each([
    ['a host that only looks like one the person named', ['docs.test.evil.test', 'evil-docs.test']],
    ['the person named a longer host', ['my.docs.test.org', 'xdocs.test']],
  ])('is also one where %s', (_, own) => {
    expect(carriesData(`https://docs.test/?${data}`, { own, foreign: [] })).toBe(true);
  });

  it('is also the longer one of an address that others wrote', () => {
    const known = { own: [], foreign: ['https://evil.test/?q= and more'] };
    expect(carriesData(`https://evil.test/?${data}`, known)).toBe(true);
  });
});
