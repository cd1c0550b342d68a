// A hundred ways to write to the agent: which of them reach the model, and whether anything is sent
// back. The cases A01 to A05 and A07 of the catalogue, by policy and role.

import { describe, expect, it } from 'vitest';
import type { AdmissionPolicy, Role } from '../../src/kernel/access/admission.ts';
import { userId } from '../../src/kernel/message/ids.ts';
import type { InboundMessage, PersonSender } from '../../src/kernel/message/message.ts';
import { makePeopleRig, OWNER, person } from './people-rig.ts';

type Case = {
  readonly name: string;
  readonly policy?: Partial<AdmissionPolicy>;
  readonly roles?: Readonly<Record<string, Role>>;
  readonly sender?: Partial<PersonSender>;
  readonly text?: string;
  readonly extra?: Partial<InboundMessage>;
  readonly reachesModel: boolean;
  /** Whether the chat of the sender gets anything from the gate itself; no unless said. */
  readonly isAnswered?: true;
};

const SENDER = '700';
const POLICIES = ['silent', 'pairing', 'closed', 'open'] as const;
const ROLES = ['owner', 'trusted', 'guest'] as const;
const GROUP_TALK = ['mention', 'reply', 'ambient'] as const;

const byPolicy: readonly Case[] = POLICIES.flatMap((strangers): readonly Case[] => [
  {
    name: `a stranger at a door that is ${strangers}`,
    policy: { strangers },
    reachesModel: strangers === 'open',
    ...(strangers === 'pairing' ? { isAnswered: true } : {}),
  },
  {
    name: `somebody nothing verifies, ${strangers}`,
    policy: { strangers },
    sender: { verified: 'unverified' },
    reachesModel: false,
  },
  {
    name: `a listed sender nothing verifies, ${strangers}`,
    policy: { strangers, allowFrom: [SENDER] },
    sender: { verified: 'unverified' },
    reachesModel: false,
  },
  {
    name: `a blocked person, ${strangers}`,
    policy: { strangers },
    roles: { [SENDER]: 'blocked' },
    reachesModel: false,
  },
  {
    name: `a blocked person who is listed, ${strangers}`,
    policy: { strangers, allowFrom: ['*', SENDER], owners: [SENDER] },
    roles: { [SENDER]: 'blocked' },
    reachesModel: false,
  },
  {
    name: `a blocked person under another id of theirs, ${strangers}`,
    policy: { strangers, allowFrom: ['+49'] },
    roles: { [SENDER]: 'blocked' },
    sender: { id: userId('+49'), alsoKnownAs: [userId(SENDER)] },
    reachesModel: false,
  },
  {
    name: `a blocked person with a code, ${strangers}`,
    policy: { strangers },
    roles: { [SENDER]: 'blocked' },
    text: '/start ABCDEFGHJK',
    reachesModel: false,
  },
  {
    name: `a guessed code, ${strangers}`,
    policy: { strangers },
    text: '/start ABCDEFGHJK',
    reachesModel: false,
    ...(strangers === 'pairing' || strangers === 'open' ? { isAnswered: true } : {}),
  },
  ...GROUP_TALK.map(
    (addressing): Case => ({
      name: `${addressing} in a group while groups are off, ${strangers}`,
      policy: { strangers, allowFrom: ['*'] },
      extra: { addressing },
      reachesModel: false,
    }),
  ),
  ...ROLES.map(
    (role): Case => ({
      name: `somebody let in as ${role}, ${strangers}`,
      policy: { strangers },
      roles: { [SENDER]: role },
      reachesModel: true,
    }),
  ),
]);

const byList: readonly Case[] = [
  ...[
    '',
    ' ',
    '70',
    '7000',
    '0700',
    '700 ',
    '@700',
    '700|owner',
    'owner|700',
    'Name 700',
    'null',
  ].map(
    (entry): Case => ({
      name: `nobody listed as "${entry}" (A01, A02, A04)`,
      policy: { allowFrom: [entry], strangers: 'closed' },
      reachesModel: false,
    }),
  ),
  ...[[SENDER], ['*'], ['1', SENDER], ['*', ''], ['7', '*']].map(
    (allowFrom): Case => ({
      name: `listed by ${JSON.stringify(allowFrom)}`,
      policy: { allowFrom, strangers: 'closed' },
      reachesModel: true,
    }),
  ),
  {
    name: 'an empty list (A04)',
    policy: { allowFrom: [], strangers: 'closed' },
    reachesModel: false,
  },
  ...(['verified', 'asserted', 'unverified'] as const).map(
    (verified): Case => ({
      name: `a listed sender who is ${verified}, where forged mail is accepted`,
      policy: { allowFrom: [SENDER], acceptUnverified: true, strangers: 'closed' },
      sender: { verified },
      reachesModel: true,
    }),
  ),
  ...['owner', 'Name 1', OWNER, `${OWNER}|admin`, '*'].map(
    (name): Case => ({
      name: `a display name of "${name}" (A01, A02)`,
      policy: { allowFrom: [OWNER], strangers: 'closed' },
      sender: { name },
      reachesModel: false,
    }),
  ),
  {
    name: 'a second id that is listed',
    policy: { allowFrom: ['+49'], strangers: 'closed' },
    sender: { alsoKnownAs: [userId('+49')] },
    reachesModel: true,
  },
];

const byCommand: readonly Case[] = [
  ...POLICIES.filter((strangers) => strangers !== 'open').flatMap((strangers) =>
    ['/allow 700', '/allow once 700', '/block 1', '/strangers', '/status', '/new'].map(
      (text): Case => ({
        name: `a stranger who writes ${text}, ${strangers} (A07)`,
        policy: { strangers },
        text,
        reachesModel: false,
        ...(strangers === 'pairing' ? { isAnswered: true } : {}),
      }),
    ),
  ),
  ...(['trusted', 'guest'] as const).flatMap((role) =>
    ['/allow 700', '/allow once 700', '/block 1', '/strangers'].map(
      (text): Case => ({
        name: `${text} by somebody who is ${role} (A07)`,
        roles: { [SENDER]: role, [OWNER]: 'owner' },
        text,
        reachesModel: false,
        isAnswered: true,
      }),
    ),
  ),
];

const CASES = [...byPolicy, ...byList, ...byCommand];

describe('who reaches the model', () => {
  it('is asked in a hundred cases', () => {
    expect(CASES.length).toBeGreaterThanOrEqual(100);
    expect(new Set(CASES.map(({ name }) => name)).size).toBe(CASES.length);
  });

  it.each(CASES)('$name', async ({ policy, roles, sender, text, extra, ...expected }) => {
    await using rig = await makePeopleRig(policy, roles ?? { [OWNER]: 'owner' });
    const writer = person(SENDER, sender);
    await rig.say(writer, text ?? 'hello', extra);
    expect(await rig.queued()).toEqual(expected.reachesModel ? [text ?? 'hello'] : []);
    expect((await rig.sentTo(writer.id)).length > 0).toBe(expected.isAnswered === true);
    // Nothing anybody but the owner writes changes a decision.
    const { approved } = await rig.people.pairing.list();
    const decided = Object.fromEntries(approved.map(({ userId: id, role }) => [id, role]));
    expect(decided).toEqual(roles ?? { [OWNER]: 'owner' });
  });
});
