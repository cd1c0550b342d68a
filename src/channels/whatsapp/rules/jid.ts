// WhatsApp's addresses ("jids") and how people are spelled in the configuration and in our ids:
// `+491511234567` for a phone number, `1234@lid` for a LID. The only place that takes a jid apart.

import { EVERYBODY } from '../../../kernel/access/admission.ts';

/** A person's address. A LID says nothing of the phone number, and neither is made from the other. */
export type PersonJid = {
  readonly kind: 'number' | 'lid';
  /** Digits. */
  readonly user: string;
  /** Which of the person's devices; 0 is the phone. Never part of who somebody is. */
  readonly device: number;
};

export type WhatsAppJid =
  | PersonJid
  | { readonly kind: 'group'; readonly jid: string }
  | { readonly kind: 'status' }
  | { readonly kind: 'broadcast'; readonly jid: string }
  | { readonly kind: 'newsletter'; readonly jid: string }
  /** Not one of those, or not well-formed, e.g. `x@lid@s.whatsapp.net`: nobody can be known by it. */
  | { readonly kind: 'unreadable' };

const UNREADABLE: WhatsAppJid = { kind: 'unreadable' };
const JID = /^([^@]{1,64})@([a-z.]{1,32})$/;
/** User, an agent of no meaning to us, device. */
const PERSON_USER = /^(\d{1,20})(?:_\d{1,3})?(?::(\d{1,5}))?$/;
/** E.164: at most 15 digits, no country code begins with 0. WhatsApp's own notices come from `0`. */
const NUMBER = /^[1-9]\d{4,14}$/;
const LID = /^[1-9]\d{0,19}$/;
const GROUP = /^\d{1,20}(-\d{1,20})?$/;
const DIGITS = /^\d{1,20}$/;

const NUMBER_SERVERS: readonly string[] = ['s.whatsapp.net', 'c.us', 'hosted'];
const LID_SERVERS: readonly string[] = ['lid', 'hosted.lid'];

export function parseJid(text: string | null | undefined): WhatsAppJid {
  const [, user = '', server = ''] = JID.exec(text ?? '') ?? [];
  if (NUMBER_SERVERS.includes(server)) return personJid('number', user);
  if (LID_SERVERS.includes(server)) return personJid('lid', user);
  const jid = `${user}@${server}`;
  if (server === 'g.us' && GROUP.test(user)) return { kind: 'group', jid };
  if (jid === 'status@broadcast') return { kind: 'status' };
  if (server === 'broadcast' && DIGITS.test(user)) return { kind: 'broadcast', jid };
  if (server === 'newsletter' && DIGITS.test(user)) return { kind: 'newsletter', jid };
  return UNREADABLE;
}

function personJid(kind: PersonJid['kind'], text: string): WhatsAppJid {
  const [, user = '', device = '0'] = PERSON_USER.exec(text) ?? [];
  const isKnownForm = (kind === 'number' ? NUMBER : LID).test(user);
  return isKnownForm ? { kind, user, device: Number(device) } : UNREADABLE;
}

export function isPerson(jid: WhatsAppJid): jid is PersonJid {
  return jid.kind === 'number' || jid.kind === 'lid';
}

/** The person's id as the configuration spells it. */
export function idOfPerson({ kind, user }: Pick<PersonJid, 'kind' | 'user'>): string {
  return kind === 'number' ? `+${user}` : `${user}@lid`;
}

/** The person an id names; undefined for every other text. */
export function personOfId(id: string): PersonJid | undefined {
  const jid = parseJid(id.startsWith('+') ? `${id.slice(1)}@s.whatsapp.net` : id);
  if (!isPerson(jid)) return undefined;
  return idOfPerson(jid) === id ? jid : undefined;
}

/** The address of all the person's devices. */
export function addressOf({ kind, user }: Pick<PersonJid, 'kind' | 'user'>): string {
  return `${user}@${kind === 'number' ? 's.whatsapp.net' : 'lid'}`;
}

/** Of the same person or group, whatever the device. A LID and a number never are by their digits. */
export function isSameAddress(left: string | undefined, right: string | undefined): boolean {
  const [a, b] = [parseJid(left), parseJid(right)];
  if (isPerson(a) && isPerson(b)) return a.kind === b.kind && a.user === b.user;
  return a.kind === 'group' && b.kind === 'group' && a.jid === b.jid;
}

/** What people put between the digits of a phone number. */
const NUMBER_FILLERS = /[\s\u200e\u200f\u202a-\u202e./()-]/g;
/** What an account can be linked by: E.164 with its country code. */
const ACCOUNT_NUMBER = /^[1-9]\d{7,14}$/;
/** Left out after a country code, as in `+49 (0) 151`. */
const TRUNK_PREFIX = /(?<=\d\s*)\(\s*0\s*\)/g;

/**
 * One spelling of an entry of `allowFrom`: `+49 151/123-45` and `0049...` become `+4915112345`, LIDs
 * lose their device. Everything else comes back trimmed, see `isAllowEntry`; so does a number
 * without a country code, which would let in somebody else.
 */
export function normaliseAllowed(entry: string): string {
  const trimmed = entry.trim();
  if (trimmed.includes('@')) {
    const jid = parseJid(trimmed.toLowerCase());
    return isPerson(jid) ? idOfPerson(jid) : trimmed;
  }
  const plain = trimmed.replace(TRUNK_PREFIX, '').replace(NUMBER_FILLERS, '');
  const digits = /^(?:\+|00)(\d+)$/.exec(plain)?.[1] ?? '';
  return NUMBER.test(digits) ? `+${digits}` : trimmed;
}

/** Whether somebody can be let in by this entry. */
export function isAllowEntry(entry: string): boolean {
  const normal = normaliseAllowed(entry);
  return normal === EVERYBODY || personOfId(normal) !== undefined;
}

/** An account's number, with or without its plus, as digits; undefined where it is none. */
export function phoneDigits(text: string): string | undefined {
  const plain = text.replace(NUMBER_FILLERS, '').replace(/^(?:\+|00)/, '');
  return ACCOUNT_NUMBER.test(plain) ? plain : undefined;
}
