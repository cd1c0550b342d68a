// The doors of our own as ways of one person: whoever holds the gateway's token or a login of the
// page sits at this machine, whichever of them they use.

import type { OwnDoor } from '../features/people/persons.ts';
import { channelName, userId } from '../kernel/message/ids.ts';
import type { PersonSender } from '../kernel/message/message.ts';

export const OWN_DOORS: readonly OwnDoor[] = [
  { channel: channelName('web'), id: userId('owner'), lasts: true },
  { channel: channelName('terminal'), id: userId('owner'), lasts: false },
];

/** Whoever decides by them. */
export const DOOR_OWNER: PersonSender = {
  kind: 'person',
  id: userId('owner'),
  verified: 'verified',
};
