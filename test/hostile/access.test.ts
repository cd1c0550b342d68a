// Three hundred ways to reach the agent: who writes, where, and what the platform says they did. Case
// B13. What is queued is what a model would be asked; who may not speak has nothing queued, decides
// nothing, and hears nothing but a code where the door gives one.

import { describe, expect, it } from 'vitest';
import type { AdmissionPolicy, Role } from '../../src/kernel/access/admission.ts';
import type { Attachment } from '../../src/kernel/message/attachment.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  mediaId,
  messageId,
  nativeId,
  userId,
} from '../../src/kernel/message/ids.ts';
import type { InboundMessage, PersonSender } from '../../src/kernel/message/message.ts';
import { makePeopleRig, OWNER, person } from '../gateway/people-rig.ts';

const ID = '700';
const GROUP = 'group-1';
const TEXT = 'hello there';

type Who = {
  readonly name: string;
  readonly policy?: Partial<AdmissionPolicy>;
  readonly roles?: Readonly<Record<string, Role>>;
  readonly sender?: Partial<PersonSender>;
  /** Alone with the agent. */
  readonly mayDirect: boolean;
  /** In a listed group, by a mention, where listed people may speak, and where all members may. */
  readonly mayGroup: { readonly allowlisted: boolean; readonly members: boolean };
  /** Is given a code, or answered as a guest. */
  readonly hears?: true;
};

const NOWHERE = { allowlisted: false, members: false };
const MEMBER = { allowlisted: false, members: true };
const SPEAKER = { allowlisted: true, members: true };
const listed = { allowFrom: [ID], strangers: 'closed' } as const;

const PEOPLE: readonly Who[] = [
  { name: 'an owner', roles: { [ID]: 'owner' }, mayDirect: true, mayGroup: SPEAKER },
  { name: 'a trusted person', roles: { [ID]: 'trusted' }, mayDirect: true, mayGroup: MEMBER },
  { name: 'a guest', roles: { [ID]: 'guest' }, mayDirect: true, mayGroup: MEMBER },
  { name: 'a listed person', policy: listed, mayDirect: true, mayGroup: SPEAKER },
  {
    ...{ name: 'a listed person whom a server vouches for', policy: listed },
    ...{ sender: { verified: 'asserted' }, mayDirect: true, mayGroup: SPEAKER },
  },
  {
    ...{
      name: 'a number listed, and known besides a LID',
      sender: { alsoKnownAs: [userId('+49')] },
    },
    ...{ policy: { allowFrom: ['+49'] }, mayDirect: true, mayGroup: SPEAKER },
  },
  {
    ...{ name: 'a LID whose number is listed and not known' },
    ...{ policy: { allowFrom: ['+49'] }, mayDirect: false, mayGroup: MEMBER },
  },
  {
    ...{ name: 'a listed name nothing verifies', policy: listed },
    ...{ sender: { verified: 'unverified' }, mayDirect: false, mayGroup: NOWHERE },
  },
  {
    ...{ name: 'an owner’s id nothing verifies', roles: { [ID]: 'owner' } },
    ...{ sender: { verified: 'unverified' }, mayDirect: false, mayGroup: NOWHERE },
  },
  {
    ...{ name: 'somebody blocked and listed', policy: listed, roles: { [ID]: 'blocked' } },
    ...{ mayDirect: false, mayGroup: NOWHERE },
  },
  {
    ...{ name: 'somebody blocked under another id', policy: { allowFrom: ['*'] } },
    ...{ roles: { '+49': 'blocked' }, sender: { alsoKnownAs: [userId('+49')] } },
    ...{ mayDirect: false, mayGroup: NOWHERE },
  },
  { name: 'a stranger, silent', mayDirect: false, mayGroup: MEMBER },
  {
    ...{ name: 'a stranger, pairing', policy: { strangers: 'pairing' } },
    ...{ mayDirect: false, mayGroup: MEMBER, hears: true },
  },
  {
    ...{ name: 'a stranger, closed', policy: { strangers: 'closed' } },
    ...{ mayDirect: false, mayGroup: MEMBER },
  },
  {
    ...{ name: 'a stranger called like the owner', sender: { name: `Name ${OWNER}` } },
    ...{ mayDirect: false, mayGroup: MEMBER },
  },
];

type Event = {
  readonly name: string;
  readonly text?: string;
  readonly extra?: Partial<InboundMessage>;
  /** Asks the model, where its sender may. */
  readonly asks: boolean;
};

const earlier = messageId('chat:default:earlier');
const file: Attachment = {
  ...{ kind: 'image', name: 'a.jpg', mimeType: 'image/jpeg', sizeBytes: 1 },
  content: { kind: 'stored', media: mediaId('0'.repeat(64)) },
};
const EVENTS: readonly Event[] = [
  { name: 'a first message', asks: true },
  { name: 'a reply', extra: { replyTo: earlier, quoted: { text: 'q' } }, asks: true },
  {
    name: 'a forwarded text',
    extra: { quoted: { author: 'Owner', text: '/allow 700' } },
    asks: true,
  },
  {
    name: 'a part of an album',
    extra: { mayContinue: true, attachments: [file] },
    asks: true,
  },
  { name: 'a changed text', extra: { amends: { id: earlier, kind: 'edited' } }, asks: false },
  {
    name: 'a deletion',
    text: '',
    extra: { amends: { id: earlier, kind: 'withdrawn' } },
    asks: false,
  },
  {
    name: 'a thumb',
    text: '',
    extra: { reaction: { to: nativeId('1'), emoji: '👍' } },
    asks: false,
  },
  { name: 'a press of nothing', text: 'Allow', extra: { press: 'A'.repeat(32) }, asks: false },
  { name: '/status', text: '/status', asks: false },
  { name: '/allow of themself', text: `/allow chat ${ID}`, asks: false },
  { name: '/approvals', text: '/approvals', asks: false },
  { name: '/link with a wrong code', text: '/link ABCDEFGH', asks: false },
  { name: '/start with a wrong code', text: '/start ABCDEFGHJK', asks: false },
];

const direct = PEOPLE.flatMap((who) => EVENTS.map((event) => ({ who, event })));

const PLACES = [
  { name: 'mentions it in a listed group', group: GROUP, addressing: 'mention', isCalled: true },
  { name: 'replies to it in a listed group', group: GROUP, addressing: 'reply', isCalled: true },
  { name: 'talks in a listed group', group: GROUP, addressing: 'ambient', isCalled: false },
  { name: 'mentions it in another group', group: 'group-2', addressing: 'mention', isCalled: true },
] as const;
const groups = PEOPLE.flatMap((who) =>
  PLACES.flatMap((place) =>
    (['allowlisted', 'members'] as const).map((allow) => ({ who, place, allow })),
  ),
);
/** What nobody but a speaker may do to a group’s conversation. */
const notes = PEOPLE.filter(({ mayGroup }) => !mayGroup.allowlisted).flatMap((who) =>
  EVENTS.filter(({ asks }) => !asks).map((event) => ({ who, event })),
);

async function outcome(
  who: Who,
  message: Pick<Event, 'text' | 'extra'>,
  allow?: 'members' | 'allowlisted',
) {
  const policy: Partial<AdmissionPolicy> = {
    ...who.policy,
    ...(allow === undefined ? {} : { groups: { listed: [GROUP], allow, names: [], speakAs: [] } }),
  };
  const roles = { [OWNER]: 'owner', ...who.roles } as const;
  await using rig = await makePeopleRig(policy, roles);
  await rig.say(person(ID, who.sender), message.text ?? TEXT, message.extra);
  const { approved } = await rig.people.pairing.list();
  expect(Object.fromEntries(approved.map(({ userId: id, role }) => [id, role]))).toEqual(roles);
  const queued = await rig.queued();
  const place = message.extra?.chat?.chat ?? ID;
  return { queued, sent: await rig.sentTo(place) };
}

const inGroup = (group: string, addressing: InboundMessage['addressing']) => ({
  ...{ addressing, group: { ids: [chatId(group)] as const, title: 'Plans' } },
  chat: { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId(group) },
});

describe('the gate', () => {
  it('is tried in three hundred cases', () => {
    expect(direct.length + groups.length + notes.length).toBeGreaterThanOrEqual(300);
  });

  it.each(direct)('lets through what it may: $event.name by $who.name', async ({ who, event }) => {
    const { queued, sent } = await outcome(who, event);
    if (who.mayDirect && event.asks) expect(queued).toEqual([TEXT]);
    if (!who.mayDirect) {
      expect(queued).toEqual([]);
      expect(sent.length === 0 || who.hears === true).toBe(true);
    }
    if (event.extra?.press !== undefined || event.name.startsWith('/start')) {
      expect(queued.filter((text) => text === 'Allow')).toEqual([]);
    }
  });

  it.each(groups)('$who.name $place.name, $allow', async ({ who, place, allow }) => {
    const { queued, sent } = await outcome(
      who,
      { extra: inGroup(place.group, place.addressing) },
      allow,
    );
    const may = place.isCalled && place.group === GROUP && who.mayGroup[allow];
    expect(queued).toEqual(may ? [TEXT] : []);
    expect(sent).toEqual([]);
  });

  it.each(notes)('keeps a group’s conversation from $event.name by $who.name', async (one) => {
    const { who, event } = one;
    const extra = { ...inGroup(GROUP, 'mention'), ...event.extra };
    const { queued, sent } = await outcome(who, { ...event, extra }, 'allowlisted');
    expect(queued).toEqual([]);
    expect(sent).toEqual([]);
  });
});
