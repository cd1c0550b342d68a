// The gate for what is said in a group: whether the group is one of ours, whether the agent is spoken
// to, and whether this member may. What is not said to the agent is heard, never answered.

import { parseCommand } from './command.ts';
import { callsByName } from './group-names.ts';
import { type InboundMessage, idsOf, type PersonSender } from './message.ts';

export type GroupPolicy = {
  /** Stable group ids, spelled as the channel spells them; empty: the agent is in no group. */
  readonly listed: readonly string[];
  /** `members`: whoever is in a listed group; `allowlisted`: owners and who is listed besides. */
  readonly allow: 'members' | 'allowlisted';
  /** Names by which the agent is called, besides a mention. */
  readonly names: readonly string[];
  /** Ids in whose name people may speak besides their own: the group itself, a channel. */
  readonly speakAs: readonly string[];
};

export type GroupGate = {
  readonly groups: GroupPolicy;
  /** Listed ids of people. Somebody let in by a code is let into their own chat only. */
  readonly allowFrom: readonly string[];
  readonly isOwner: boolean;
};

export type GroupVerdict =
  | { readonly kind: 'admit'; readonly standing: 'owner' | 'listed' | 'member' }
  /** Kept for a while, to be shown to the model when it is spoken to. */
  | { readonly kind: 'hear'; readonly gate: string }
  /** `wasCalled`: by somebody who may, in a group that is not listed. */
  | { readonly kind: 'refuse'; readonly gate: string; readonly wasCalled: boolean };

const EVERYBODY = '*';

export function admitInGroup(
  message: InboundMessage & { readonly sender: PersonSender },
  { groups, allowFrom, isOwner }: GroupGate,
): GroupVerdict {
  const { group, sender } = message;
  const ids: readonly string[] = idsOf(sender);
  const isNamed = ids.some((id) => allowFrom.includes(id));
  const isCalled = isSpokenTo(message, groups.names);
  if (group === undefined || !group.ids.some((id) => groups.listed.includes(id))) {
    const gate = groups.listed.length === 0 ? 'groups are off' : 'group not listed';
    return { kind: 'refuse', gate, wasCalled: isCalled && (isOwner || isNamed) };
  }
  if (sender.verified === 'unverified') {
    return { kind: 'refuse', gate: 'sender not verified', wasCalled: false };
  }
  if (!isCalled) return { kind: 'hear', gate: 'group talk' };
  if (isOwner) return { kind: 'admit', standing: 'owner' };
  if (isNamed) return { kind: 'admit', standing: 'listed' };
  // A command changes the conversation of all.
  if (parseCommand(message.text) !== undefined) {
    return { kind: 'hear', gate: 'command in a group by somebody not listed' };
  }
  const isSpeaker = groups.allow === 'members' || ids.some((id) => groups.speakAs.includes(id));
  if (isSpeaker || allowFrom.includes(EVERYBODY)) return { kind: 'admit', standing: 'member' };
  return { kind: 'hear', gate: 'sender not on the allow list' };
}

/** A command has to name the agent; several may stand in one group. */
function isSpokenTo({ addressing, text }: InboundMessage, names: readonly string[]): boolean {
  if (addressing === 'mention') return true;
  if (parseCommand(text) !== undefined) return false;
  return addressing === 'reply' || callsByName(text, names);
}
