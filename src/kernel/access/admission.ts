// Admission: who may talk to the agent, and in which role. Decided from stable ids alone, before
// anything costs a model call. An empty allow list lets nobody in; a blocked person stays out
// whatever else is configured.

import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelName } from '../message/ids.ts';
import { type InboundMessage, idsOf, type PersonSender } from '../message/message.ts';

type ParsedCommand = { readonly name: string; readonly argument: string };

const COMMAND = /^\/([a-z][a-z0-9_]{0,31})(?:@[a-z0-9_]{1,64})?(?:\s+([\s\S]*))?$/i;

/** `/model@my_bot  gpt-5` gives `model` and `gpt-5`; undefined if the text is no command. */
export function parseCommand(text: string): ParsedCommand | undefined {
  const match = COMMAND.exec(text.trim());
  if (match === null) return undefined;
  return { name: (match[1] ?? '').toLowerCase(), argument: (match[2] ?? '').trim() };
}

/** Lets everybody in; only if configured explicitly. */
export const EVERYBODY = '*';

/** Roles of people who are let in; only the machine's user makes an owner. */
export const ADMITTED_ROLES = ['owner', 'trusted', 'guest'] as const;
export type AdmittedRole = (typeof ADMITTED_ROLES)[number];
/**
 * What happens to an unknown sender: `silent` keeps the message and asks the owner, `pairing` gives
 * them a code for the owner, `closed` refuses, `open` lets them in as a guest.
 */
export const UNKNOWN_SENDER_POLICIES = ['silent', 'pairing', 'closed', 'open'] as const;
export type UnknownSenderPolicy = (typeof UNKNOWN_SENDER_POLICIES)[number];

/** The command that links two channels; with a code it is available to unknown senders too. */
export const LINK_COMMAND = 'link';

/** What the machine's user or an owner decided about a person. */
export type Role = AdmittedRole | 'blocked';

export type AdmissionPolicy = {
  /** Stable sender ids, in the channel's spelling. */
  readonly allowFrom: readonly string[];
  /**
   * Ids of the machine's user and of the person who linked the account: owners without an approval.
   */
  readonly owners: readonly string[];
  /** What was decided about the sender by a code or by hand; undefined: nothing. */
  readonly role: Role | undefined;
  /** Whether an unverified sender may be answered. */
  readonly acceptUnverified: boolean;
  /** Undefined if the channel has no groups. */
  readonly groups?: GroupPolicy;
  readonly strangers: UnknownSenderPolicy;
};

export type ConfiguredGate = Pick<AdmissionPolicy, 'allowFrom' | 'owners' | 'strangers'>;

export type Verdict =
  | SettledVerdict
  /** The message contains a pairing code; if the code is invalid, `otherwise` applies. */
  | { readonly kind: 'redeem'; readonly code: string; readonly otherwise: SettledVerdict }
  /**
   * The message contains a code of another channel, to link the two ids; if it is invalid,
   * `otherwise` applies.
   */
  | { readonly kind: 'link'; readonly code: string; readonly otherwise: SettledVerdict };

export type SettledVerdict =
  /** `role` is undefined for internal senders. */
  | { readonly kind: 'admit'; readonly role: AdmittedRole | undefined }
  /** Not let in; `gate` is the reason that `nanobot trace` shows. */
  | {
      readonly kind: 'refuse';
      readonly gate: string;
      /** The only reason is that nobody let them in. */
      readonly isUnknown: boolean;
      /** Said to the agent in a group that is not listed, by a person who may talk to it. */
      readonly wasCalled?: boolean;
      /** Takes precedence over everything configured. */
      readonly isBlocked?: true;
    }
  /** Said in a group and not to the agent: kept for a while as context. */
  | { readonly kind: 'hear'; readonly gate: string }
  /** Nobody has decided about the sender yet. */
  | {
      readonly kind: 'knock';
      readonly sender: PersonSender;
      readonly policy: 'silent' | 'pairing';
    };

const refuse = (gate: string, isUnknown = false): SettledVerdict => ({
  kind: 'refuse',
  gate,
  isUnknown,
});

export function admit(message: InboundMessage, policy: AdmissionPolicy): Verdict {
  const { sender } = message;
  if (sender.kind === 'system') return { kind: 'admit', role: undefined };
  if (policy.role === 'blocked') {
    return { kind: 'refuse', gate: 'sender is blocked', isUnknown: false, isBlocked: true };
  }
  if (message.addressing !== 'direct') return groupVerdict({ ...message, sender }, policy);
  const role = policy.role ?? configuredRole(idsOf(sender), policy);
  if (sender.verified === 'unverified' && !(role !== undefined && policy.acceptUnverified)) {
    return refuse('sender not verified');
  }
  const otherwise =
    role === undefined ? unknownVerdict(sender, policy) : ({ kind: 'admit', role } as const);
  const command = parseCommand(message.text);
  if (role !== 'owner' && command?.name === 'start' && command.argument !== '') {
    return { kind: 'redeem', code: command.argument, otherwise };
  }
  if (command?.name === LINK_COMMAND && command.argument !== '') {
    return { kind: 'link', code: command.argument, otherwise };
  }
  return otherwise;
}

/** Whether the sender is refused only because nobody let them in; a valid code may change that. */
export function isUnknownSender(verdict: Verdict): boolean {
  return verdict.kind === 'knock' || (verdict.kind === 'refuse' && verdict.isUnknown);
}

/** The verdict without regard to a code. */
export function withoutCode(verdict: Verdict): SettledVerdict {
  return 'otherwise' in verdict ? verdict.otherwise : verdict;
}

function unknownVerdict(sender: PersonSender, { strangers }: AdmissionPolicy): SettledVerdict {
  return strangers === 'silent' || strangers === 'pairing'
    ? { kind: 'knock', sender, policy: strangers }
    : refuse('sender not on the allow list', true);
}

function groupVerdict(
  message: InboundMessage & { readonly sender: PersonSender },
  policy: AdmissionPolicy,
): Verdict {
  const { allowFrom, groups, role } = policy;
  if (groups === undefined) return refuse('groups are off');
  const isOwner = (role ?? configuredRole(idsOf(message.sender), policy)) === 'owner';
  const verdict = admitInGroup(message, { groups, allowFrom, isOwner });
  if (verdict.kind === 'refuse') return { ...verdict, isUnknown: false };
  if (verdict.kind === 'hear') return verdict;
  const isGuest = verdict.standing === 'member' || role === 'guest';
  return { kind: 'admit', role: isOwner ? 'owner' : isGuest ? 'guest' : 'trusted' };
}

/**
 * The role that the configuration of a channel gives these ids, if nothing was decided about them.
 */
export function configuredRole(
  ids: readonly string[],
  { owners, allowFrom, strangers }: ConfiguredGate,
): AdmittedRole | undefined {
  if (owners.some((id) => ids.includes(id))) return 'owner';
  if (allowFrom.some((id) => id === EVERYBODY || ids.includes(id))) return 'trusted';
  return strangers === 'open' ? 'guest' : undefined;
}

/** The role of a person with several ids: blocked takes precedence, then the highest. */
export function joinRoles(roles: readonly (Role | undefined)[]): Role | undefined {
  const order: readonly Role[] = ['blocked', ...ADMITTED_ROLES];
  return order.find((role) => roles.includes(role));
}

// Admission of messages in groups: whether the group is listed, whether the agent is addressed, and
// whether this member may address it. Other messages are recorded as context, never answered.

export type GroupPolicy = {
  /** Stable group ids, in the channel's spelling; empty: the agent is in no group. */
  readonly listed: readonly string[];
  /** `members`: everybody in a listed group; `allowlisted`: owners and listed people. */
  readonly allow: 'members' | 'allowlisted';
  /** Names of the agent, besides a mention. */
  readonly names: readonly string[];
  /** Ids in whose name people may write besides their own: the group itself, a channel. */
  readonly speakAs: readonly string[];
};

export type GroupGate = {
  readonly groups: GroupPolicy;
  /** Listed ids of people. A code lets a person into their own chat only. */
  readonly allowFrom: readonly string[];
  readonly isOwner: boolean;
};

type GroupVerdict =
  | { readonly kind: 'admit'; readonly standing: 'owner' | 'listed' | 'member' }
  /** Kept for a while as context for when the agent is addressed. */
  | { readonly kind: 'hear'; readonly gate: string }
  /** `wasCalled`: by a person who may address the agent, in a group that is not listed. */
  | { readonly kind: 'refuse'; readonly gate: string; readonly wasCalled: boolean };

export function admitInGroup(
  message: InboundMessage & { readonly sender: PersonSender },
  { groups, allowFrom, isOwner }: GroupGate,
): GroupVerdict {
  const { group, sender } = message;
  const ids: readonly string[] = idsOf(sender);
  const isNamed = ids.some((id) => allowFrom.includes(id));
  const isCalled = isSpokenTo(message, groups.names);
  if (group === undefined || !group.ids.some((id) => groups.listed.includes(id))) {
    const gate = groups.listed.length === 0 ? t`groups are off` : t`group not listed`;
    return { kind: 'refuse', gate, wasCalled: isCalled && (isOwner || isNamed) };
  }
  if (sender.verified === 'unverified') {
    return { kind: 'refuse', gate: 'sender not verified', wasCalled: false };
  }
  if (!isCalled) return UNCALLED;
  if (isOwner) return { kind: 'admit', standing: 'owner' };
  if (isNamed) return { kind: 'admit', standing: 'listed' };
  // A command changes the conversation of all members.
  if (parseCommand(message.text) !== undefined) {
    return { kind: 'hear', gate: 'command in a group by a sender who is not listed' };
  }
  const isSpeaker = groups.allow === 'members' || ids.some((id) => groups.speakAs.includes(id));
  if (isSpeaker || allowFrom.includes(EVERYBODY)) return { kind: 'admit', standing: 'member' };
  return { kind: 'hear', gate: 'sender not on the allow list' };
}

/** For a message in a group that does not call the agent. */
export const UNCALLED = { kind: 'hear', gate: 'group talk' } as const;

/** A command must name the agent; a group may have several bots. */
function isSpokenTo({ addressing, text }: InboundMessage, names: readonly string[]): boolean {
  if (addressing === 'mention') return true;
  if (parseCommand(text) !== undefined) return false;
  return addressing === 'reply' || callsByName(text, names);
}

// Configured names of the agent in a group: plain words, with `*` for any letters of a word.
// Matched word by word in bounded time; no regular expressions.

/** Names occur early in a text; longer texts are searched up to here, UTF-16 units. */
const MAX_SEARCHED = 4000;
const PATTERN_WORD = /[\p{L}\p{N}\p{M}_*]+/gu;

/** Chinese has no blanks between words. */
const HAN = /^\p{sc=Han}+$/u;

/** Whether one of the names occurs in the text as whole words, ignoring case. */
export function callsByName(text: string, names: readonly string[]): boolean {
  if (names.length === 0) return false;
  const searched = text.slice(0, MAX_SEARCHED);
  const words = wordsOf(searched, /[\p{L}\p{N}\p{M}_]+/gu);
  return names.some((name) => {
    if (HAN.test(name)) return searched.includes(name);
    const pattern = wordsOf(name, PATTERN_WORD);
    if (pattern.length === 0) return false;
    return words.some((_, at) => pattern.every((part, n) => isMatch(words[at + n], part)));
  });
}

/** A name must contain a letter or a digit: `*` alone would match every word. */
export function isCallName(name: string): boolean {
  return wordsOf(name, PATTERN_WORD).some((part) => /[^*_]/.test(part));
}

const wordsOf = (text: string, word: RegExp): readonly string[] =>
  text.normalize('NFKC').toLowerCase().match(word) ?? [];

/** Backtracks to the last `*` only, so the time is at most the product of both lengths. */
function isMatch(word: string | undefined, pattern: string): boolean {
  if (word === undefined) return false;
  let at = 0;
  let star: { readonly next: number; from: number } | undefined;
  let next = 0;
  while (at < word.length) {
    if (pattern[next] === '*') {
      next += 1;
      star = { next, from: at };
    } else if (pattern[next] === word[at]) {
      next += 1;
      at += 1;
    } else if (star !== undefined) {
      star.from += 1;
      at = star.from;
      next = star.next;
    } else return false;
  }
  return /^\**$/.test(pattern.slice(next));
}

// Texts for the owner about groups.

/** How a group is opened to the agent. */
export function howToList(channel: ChannelName, group: string): string {
  return t`To let me answer there, add "${group}" to \`channels.${channel}.groups\`.`;
}

export function unlistedGroupText({ chat, group }: InboundMessage): string {
  const name = group?.title === undefined ? '' : ` (${plain(group.title)})`;
  return (
    t`I was mentioned in a group that is not listed${name}, and did not answer. ` +
    howToList(chat.channel, chat.chat)
  );
}

const MAX_TITLE_CHARS = 60;

/** Removes Markdown and line breaks from a title, which is untrusted content. */
export function plain(title: string): string {
  return headOf(title.replace(/[\p{C}\p{Z}`*_~[\]()<>#|\\]+/gu, ' '), MAX_TITLE_CHARS).trim();
}
