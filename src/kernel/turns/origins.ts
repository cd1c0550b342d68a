// Who asks for a turn, and what they may have done: brings together what the gate says of a message
// now, what its door is like, and what the configuration grants. The rules themselves are core's.

import type { KnownAs } from '../../features/people/people.ts';
import { type SettledVerdict, withoutCode } from '../access/admission.ts';
import {
  LOOKING_RIGHTS,
  type Medium,
  NO_RIGHTS,
  narrowed,
  type Rights,
  rightsOf,
  type Standing,
  type ToolPolicies,
  takenFrom,
  toolPolicyOf,
} from '../access/rights.ts';
import type { Judge } from '../intake/judge.ts';
import { type InboundMessage, idsOf, type PersonSender } from '../message/message.ts';
import { holdsWordsOfOthers } from './rules/coalesce.ts';

export type OriginsDeps = {
  readonly judge: Judge;
  readonly knownAs: KnownAs;
  mediumOf(channel: string): Medium;
  policies(): ToolPolicies;
};

export type Origin = {
  readonly rights: Rights;
  /** The message holds words of others. */
  readonly isForeign: boolean;
  /** An owner, alone with the agent in a chat: who may be asked there. */
  readonly isOwnerHere: boolean;
};

export type Origins = (message: InboundMessage) => Promise<Origin>;

export function createOrigins({ judge, knownAs, mediumOf, policies }: OriginsDeps): Origins {
  return async (message) => {
    const { sender } = message;
    if (sender.kind === 'system') {
      const { rights = NO_RIGHTS, isTainted = false } = sender;
      return { rights, isForeign: isTainted, isOwnerHere: false };
    }
    const verdict = withoutCode(await judge(message));
    const medium = mediumOf(message.chat.channel);
    const standing = standingOf({ ...message, sender }, verdict, medium);
    const { channel } = message.chat;
    const group = message.group?.ids ?? [];
    const { role, place } = standing;
    const isOthers = medium === 'mail' || (place === 'group' && role !== 'owner');
    const policy = toolPolicyOf(policies(), { channel, ids: idsOf(sender), group });
    const there = verdict.kind === 'refuse' ? NO_RIGHTS : rightsOf(standing, policy);
    // Another door of theirs gives nobody back what was taken from them.
    const granted = narrowed(there, takenFrom(policies(), (await knownAs(message)).names));
    return {
      // Nobody asked for anything when they corrected their words.
      rights: message.redoes === undefined ? granted : narrowed(granted, LOOKING_RIGHTS),
      isForeign: isOthers || holdsWordsOfOthers(message),
      isOwnerHere: role === 'owner' && place === 'direct' && medium === 'chat',
    };
  };
}

/** Whoever was let in for one message is a guest. */
export function standingOf(
  { sender, addressing, group }: InboundMessage & { readonly sender: PersonSender },
  verdict: SettledVerdict,
  medium: Medium,
): Standing {
  const isDirect = addressing === 'direct' && group === undefined;
  return {
    role: (verdict.kind === 'admit' ? verdict.role : undefined) ?? 'guest',
    place: isDirect ? 'direct' : 'group',
    verified: sender.verified,
    medium,
  };
}
