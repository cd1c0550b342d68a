// Ids of people as they are typed at the command line, in the spelling their channel uses.

import { EVERYBODY } from '../core/admission.ts';
import { isAllowEntry, normaliseAllowed } from '../core/whatsapp/jid.ts';
import { CommandFailure, EXIT } from './exit-codes.ts';

/** @throws CommandFailure where there is no such channel. */
export async function checkChannel(channel: string): Promise<void> {
  const { CHANNELS } = await import('../channels/index.ts');
  const { nearestName } = await import('../core/nearest.ts');
  const names = CHANNELS.map((definition) => definition.name);
  if (names.includes(channel)) return;
  const near = nearestName(channel, names) ?? names.join(' or ');
  throw new CommandFailure(EXIT.notFound, `there is no channel ${channel}; try ${near}`);
}

/** The id as the channel spells it. @throws CommandFailure where it can be nobody's there. */
export function checkedId(channel: string, user: string): string {
  const problem = idProblem(channel, user);
  if (problem !== undefined) throw new CommandFailure(EXIT.usage, problem);
  if (channel === 'lark') return user;
  return channel === 'whatsapp' ? normaliseAllowed(user) : user.toLowerCase();
}

function idProblem(channel: string, user: string): string | undefined {
  if (channel === 'telegram' && !/^\d+$/.test(user)) {
    return 'Telegram people are known by their numeric id; names can change hands';
  }
  if (channel === 'email' && !/^[^\s@]+@[^\s@]+$/.test(user)) return 'give the mail address';
  if (channel === 'whatsapp' && (user === EVERYBODY || !isAllowEntry(user))) {
    return 'give the number with its country code, like +491511234567, or the id of "pair list"';
  }
  if (channel === 'lark' && !/^o[un]_[0-9A-Za-z]+$/.test(user)) {
    return 'Lark people are known by their open_id (ou_...) or union_id (on_...)';
  }
  return undefined;
}
