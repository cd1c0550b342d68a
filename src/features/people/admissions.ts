// Whom an owner means by a channel and an id or a code: for the command line and the HTTP API.

import { CHANNELS, type ChannelDefinition } from '../../channels/index.ts';
import type { Decisions, Subject } from '../../kernel/people/unknown-senders.ts';
import { nearestName } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import { SettingError } from './person-settings.ts';

/** @throws SettingError where the channel does not exist */
export function channelNamed(name: string): ChannelDefinition {
  const found = CHANNELS.find((definition) => definition.name === name);
  if (found !== undefined) return found;
  const names = CHANNELS.map((definition) => definition.name);
  const near = nearestName(name, names) ?? names.join(' or ');
  throw new SettingError(t`unknown channel ${name}; try ${near}`, 'channel_unknown');
}

/** The id in the channel's spelling. @throws SettingError where it is invalid on this channel */
export function checkedId(channel: ChannelDefinition, user: string): string {
  const spelled = channel.personId(user);
  if (typeof spelled === 'string') return spelled;
  throw new SettingError(spelled.problem);
}

/** Somebody who wrote or was decided about, or an id that nobody wrote from yet. */
export type Meant = Pick<Subject, 'channel' | 'userId' | 'ids' | 'name' | 'waiting'>;

/** The person or unknown sender with this id or code, otherwise a new id. @throws SettingError */
export async function subjectOf(
  decisions: Pick<Decisions, 'find'>,
  definition: ChannelDefinition,
  user: string,
): Promise<Meant> {
  const { name: channel } = definition;
  const [known] = await decisions.find(user, channel);
  if (known !== undefined) return known;
  const id = checkedId(definition, user);
  const [spelled] = await decisions.find(id, channel);
  return spelled ?? { channel, userId: id, ids: [id], name: '', waiting: undefined };
}
