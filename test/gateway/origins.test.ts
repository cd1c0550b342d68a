// What a person may have done on one of several doors of theirs, over a real store.

import { expect, it } from 'vitest';
import { createJudge } from '../../src/kernel/intake/fair-use.ts';
import { channelName, chatId, DEFAULT_ACCOUNT, messageId } from '../../src/kernel/message/ids.ts';
import type { InboundMessage } from '../../src/kernel/message/message.ts';
import { createKnownAs } from '../../src/kernel/people/persons.ts';
import { createOrigins } from '../../src/kernel/turns/origins.ts';
import { makePeopleRig, person } from './people-rig.ts';

const said = (channel: string, id: string): InboundMessage => ({
  id: messageId(`${channel}:default:${id}:hello`),
  chat: { channel: channelName(channel), account: DEFAULT_ACCOUNT, chat: chatId(id) },
  sender: person(id),
  addressing: 'direct',
  text: 'hello',
  sentAt: 0,
  receivedAt: 0,
});

it('what is taken from a person on one door, no other door of theirs gives back', async () => {
  await using rig = await makePeopleRig({ allowFrom: ['7', '900'] });
  const { persons } = rig.people;
  const origins = createOrigins({
    judge: createJudge({ persons, policy: () => rig.policy }),
    knownAs: createKnownAs(persons),
    mediumOf: () => 'chat',
    quotesOwn: async () => false,
    policies: async () => ({
      people: [{ who: 'chat:7', web: 'never', write: 'free' }],
      groups: [],
      approvals: { owner: 'normal', trusted: 'normal' },
    }),
  });
  const rightsOn = async (channel: string, id: string) => (await origins(said(channel, id))).rights;
  for (const message of [said('chat', '7'), said('phone', '900')]) await persons.seen(message);
  expect(await rightsOn('chat', '7')).toMatchObject({ web: 'never', write: 'free' });
  expect(await rightsOn('phone', '900')).toMatchObject({ web: 'free', write: 'never' });
  const [one] = await persons.find('7');
  const [other] = await persons.find('900');
  if (one === undefined || other === undefined) throw new Error('nobody is known');
  await persons.merge(one.id, other);
  expect(await rightsOn('phone', '900')).toMatchObject({ web: 'never', write: 'never' });
  expect(await rightsOn('chat', '7')).toMatchObject({ web: 'never', write: 'free' });
});
