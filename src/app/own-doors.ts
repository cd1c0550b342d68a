// The doors of our own as ways of one person: whoever holds the gateway's token or a login of the
// page sits at this machine, whichever of them they use.

import { channelName, userId } from '../core/ids.ts';
import type { PersonSender } from '../core/message.ts';
import type { OwnDoor } from '../gateway/persons.ts';

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
