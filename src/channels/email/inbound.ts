// One mail on its way in: applies every rule to what the parsing thread found and ends in an entry for the
// gateway. A mail that a rule stops is recorded with the reason and never answered. A delivery report is
// noted against the mail it is about.

import { createHash } from 'node:crypto';
import type { InboundEntry } from '../../kernel/bus/bus.ts';
import type { AccountRef } from '../../kernel/message/account.ts';
import { type MessageId, messageId, threadId } from '../../kernel/message/ids.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { shortName, verbatim } from '../../kernel/message/untrusted.ts';
import type { ChannelHost } from '../channel.ts';
import {
  blankMessage,
  fingerprintOf,
  type MailArrival,
  parentOf,
  partsOf,
  quoteFor,
  textOf,
  wordsOf,
} from './arrival.ts';
import { filesOf } from './mail-files.ts';
import { NO_SIGNATURES } from './mail-reader.ts';
import type { KnownMail } from './mail-records.ts';
import type { MailRegister } from './mail-register.ts';
import { headerValue, messageIdsIn, readFrom } from './rules/address.ts';
import {
  heldNotice,
  isEncrypted,
  judgeMail,
  type MailVerdict,
  type Standing,
} from './rules/machine-mail.ts';
import { mailDate, type SenderVerdict, verifySender } from './rules/sender.ts';
import {
  chooseThread,
  copyRecipients,
  type ParentMail,
  parentIds,
  parseOwnMessageId,
  recipientNote,
} from './rules/threading.ts';
import type { EmailConfig } from './settings.ts';

const REPEAT_WINDOW_MS = 24 * 3_600_000;
/** A proven person may ask the same more than once a day; so often only a machine does. */
const MAX_SAME_WORDS = 10;
const EVERYBODY = '*';
/** Stands in where no sender can be told. */
const NOBODY = 'unknown';
const THREAD_HEX_CHARS = 16;
/** Looks at the name service for a sender whom nobody named. */
const MAX_LOOKS = 3;

export type InboundSettings = {
  readonly at: AccountRef;
  readonly own: readonly string[];
  /** Addresses of every mailbox of ours. */
  readonly ours: () => readonly string[];
  /** In lower case, as configured now. */
  readonly allowFrom: () => readonly string[];
  readonly acceptUnverified: boolean;
  readonly replyAll: EmailConfig['replyAll'];
  readonly quoteOriginal: boolean;
  readonly authservId: string;
  readonly answers: ChannelHost['answers'];
  readonly isTrusted: ChannelHost['isTrusted'];
};

export type Incoming = Bounced & { readonly entry: InboundEntry };

/** `unproven yet`: the name service did not answer, so nothing was noted; another look may prove the sender. */
export async function readIncoming(
  arrival: MailArrival,
  settings: InboundSettings,
  register: MailRegister,
): Promise<Incoming | 'unproven yet'> {
  const fingerprint = fingerprintOf(arrival.summary);
  const id = messageId(`${settings.at.channel}:${settings.at.account}:${fingerprint}`);
  const from = readFrom(arrival.headers);
  if (from.kind === 'refused') {
    const message = blankMessage(id, NOBODY, arrival, settings.at);
    await register.noteRefused(fingerprint);
    const empty =
      'An empty mail (0 bytes) arrived: the mail server has nothing of its content. I skip it.';
    const incoming: Incoming = {
      entry: {
        kind: 'record',
        message,
        gate: arrival.summary.bytes === 0 ? 'empty mail' : from.gate,
      },
      ...(arrival.summary.bytes === 0 ? { notice: empty } : {}),
    };
    return noteBounces(incoming, arrival, register);
  }
  const { address } = from.from;
  const sender = verify(arrival, address, settings);
  const message = blankMessage(id, address, arrival, settings.at, sender);
  const standing = await standingOf(message, settings);
  const verdict = await judge(arrival, message, sender, standing, settings, register);
  if (verdict.kind !== 'answer') {
    const { kind, gate } = verdict;
    await register.noteRefused(fingerprint);
    const subject = parentOf(arrival, address, settings.ours()).subject;
    const isTold = kind === 'hold' && (await isNews(arrival, address, gate, register));
    const incoming: Incoming = {
      entry: { kind: 'record', message, gate: kind === 'hold' ? `held: ${gate}` : gate },
      ...(isTold ? { notice: heldNotice(address, shortName(subject), gate) } : {}),
    };
    return noteBounces(incoming, arrival, register);
  }
  const isSettled = arrival.isLast || (standing !== 'named' && arrival.tries + 1 >= MAX_LOOKS);
  if (sender.isTemporary && !isSettled) return 'unproven yet';
  if (!(await isOurs(arrival, message, sender, settings))) {
    await register.noteRefused(fingerprint);
    return { entry: { kind: 'record', message, gate: 'answered from another mailbox' } };
  }
  const read = sender.level === 'unverified' ? arrival : withoutSecrets(arrival);
  const entry = await admitted(read, message, sender, fingerprint, settings, register);
  const doubt = standing === 'named' ? doubtOf(arrival, sender, settings) : undefined;
  const isTold = doubt !== undefined && (await isNews(arrival, address, doubt, register));
  return { entry, ...(isTold ? { notice: unprovenNotice(address, doubt) } : {}) };
}

const isNews = (
  { receivedAt }: MailArrival,
  address: string,
  what: string,
  register: MailRegister,
) => register.isNews(`${address}\n${what}`, receivedAt);

/** Why a named person's mail will be taken for a forged one although it may be theirs. */
function doubtOf(
  { reading: { result } }: MailArrival,
  sender: SenderVerdict,
  { acceptUnverified }: InboundSettings,
): string | undefined {
  if (sender.level !== 'unverified' || acceptUnverified) return undefined;
  if (sender.dateProblem !== undefined) return sender.dateProblem;
  if (sender.isTemporary) return sender.reason;
  return result.kind === 'unreadable' ? result.gate : undefined;
}

function unprovenNotice(address: string, doubt: string): string {
  return (
    `A mail in the name of ${verbatim(address)} was not answered, because nothing proves its sender ` +
    `(${doubt}). It stays in the mailbox. If it is theirs, ask them to send it again.`
  );
}

/** A mail that was given up: nothing of it is known. */
export function unreadableMail(
  { uidValidity, uid }: { readonly uidValidity: string; readonly uid: number },
  { host, settings }: { readonly host: ChannelHost; readonly settings: InboundSettings },
): Incoming {
  const idFields = `unreadable ${uidValidity}/${uid}`;
  const summary = { uid, bytes: 0, arrivedAtMs: Number.NaN, idFields };
  const gate = 'could not be read from the mail server';
  const reading = { result: { kind: 'unreadable', gate }, report: NO_SIGNATURES } as const;
  const receivedAt = host.clock.now();
  const arrival = {
    uidValidity,
    summary,
    headers: [],
    reading,
    receivedAt,
    tries: 0,
    isLast: true,
  };
  const { at } = settings;
  const id = messageId(`${at.channel}:${at.account}:${fingerprintOf(summary)}`);
  const message = blankMessage(id, NOBODY, arrival, at);
  return { entry: { kind: 'record', message, gate } };
}

function verify(arrival: MailArrival, address: string, settings: InboundSettings): SenderVerdict {
  const { headers, reading, summary } = arrival;
  return verifySender({
    headers,
    address,
    signatures: reading.report.signatures,
    dmarc: reading.report.dmarc,
    dateMs: mailDate(headers),
    arrivedAtMs: Number.isNaN(summary.arrivedAtMs) ? arrival.receivedAt : summary.arrivedAtMs,
    authservId: settings.authservId,
  });
}

/** What the address would be if the mail was proven to be theirs. */
async function standingOf(
  message: InboundMessage,
  { allowFrom, isTrusted }: InboundSettings,
): Promise<Standing> {
  const { sender, chat } = message;
  const listed = allowFrom();
  if (listed.includes(chat.chat)) return 'named';
  if (listed.includes(EVERYBODY)) return 'anybody';
  if (sender.kind !== 'person') return 'unknown';
  const proven = { ...message, sender: { ...sender, verified: 'verified' } as const };
  return (await isTrusted(proven)) ? 'named' : 'unknown';
}

/** The first rule that stops the mail. */
async function judge(
  arrival: MailArrival,
  message: InboundMessage,
  sender: SenderVerdict,
  standing: Standing,
  settings: InboundSettings,
  register: MailRegister,
): Promise<MailVerdict> {
  const { headers, reading, receivedAt } = arrival;
  const address = message.chat.chat;
  const mail = reading.result.kind === 'parsed' ? reading.result.mail : undefined;
  const ownId = messageIdsIn(headerValue(headers, 'message-id'))[0];
  const known = ownId === undefined ? undefined : await register.knownMail(ownId);
  const calendarMethod = mail?.calendarMethod;
  const isAuthenticated = sender.level !== 'unverified';
  const verdict = judgeMail({
    headers,
    sender: address,
    own: settings.own,
    ours: settings.ours(),
    contentTypes: mail?.contentTypes ?? [headerValue(headers, 'content-type') ?? ''],
    ...(calendarMethod === undefined ? {} : { calendarMethod }),
    isOurs: ownId !== undefined && (parseOwnMessageId(ownId) !== undefined || isSent(known)),
    isAuthenticated,
    standing,
  });
  if (verdict.kind !== 'answer') return verdict;
  if (known?.sender === address && known.inbound !== message.id) {
    // One that could not be proven was not answered, and must not take the place of the one that is.
    const wasRefused = known.level === 'unverified' && !settings.acceptUnverified;
    if (!wasRefused || !isAuthenticated) return { kind: 'refuse', gate: 'same Message-ID again' };
  }
  const same = mail && (await register.sameWords(address, wordsOf(arrival, mail, sender)));
  const isRecent = same && same.id !== message.id && receivedAt - same.at < REPEAT_WINDOW_MS;
  const isMachine = !isAuthenticated || (same?.count ?? 1) >= MAX_SAME_WORDS;
  if (!isRecent || !isMachine) return { kind: 'answer' };
  const isHeld = isAuthenticated && standing !== 'unknown';
  return { kind: isHeld ? 'hold' : 'refuse', gate: 'same words again' };
}

/** Whoever is not proven to be the sender cannot take the place of the mail that is. */
async function isOurs(
  { headers }: MailArrival,
  message: InboundMessage,
  sender: SenderVerdict,
  { answers }: InboundSettings,
): Promise<boolean> {
  const mailId = messageIdsIn(headerValue(headers, 'message-id'))[0];
  if (mailId === undefined) return true;
  const proof = sender.level === 'unverified' ? 'unproven' : 'proven';
  return answers(`${mailId}\n${message.chat.chat}\n${proof}`, message);
}

/** A mail that is encrypted as a whole is one that was not read; the agent says so. */
function withoutSecrets(arrival: MailArrival): MailArrival {
  const { result, report } = arrival.reading;
  if (result.kind !== 'parsed' || !isEncrypted(result.mail.contentTypes.slice(0, 1)))
    return arrival;
  const gate = 'it is encrypted, and no key is known here';
  return { ...arrival, reading: { result: { kind: 'unreadable', gate }, report } };
}

async function admitted(
  arrival: MailArrival,
  message: InboundMessage,
  sender: SenderVerdict,
  fingerprint: string,
  settings: InboundSettings,
  register: MailRegister,
): Promise<InboundEntry> {
  const address = message.chat.chat;
  const parent = parentOf(arrival, address, settings.ours());
  const known = await Promise.all(
    parentIds(parent).map((parentId) => register.knownThread(parentId, address)),
  );
  const parents = known.filter((one) => one !== undefined);
  const joined = chooseThread(parents, address, sender.level);
  const thread = joined ?? newThread(address, fingerprint);
  const { text, quoted, whole, words } = textOf(
    arrival,
    sender,
    joined === undefined,
    readersOf(parent, sender, settings),
  );
  const place = { uidValidity: arrival.uidValidity, uid: arrival.summary.uid };
  await register.noteInbound(
    {
      id: message.id,
      fingerprint,
      thread,
      sender: address,
      level: sender.level,
      parent: { ...parent, place },
      receivedAt: arrival.receivedAt,
      wholeText: whole,
      quote: settings.quoteOriginal ? quoteFor(arrival, message, sender) : undefined,
    },
    words,
  );
  const attachments = filesOf(partsOf(arrival), place);
  return {
    kind: 'queue',
    message: {
      ...message,
      chat: { ...message.chat, thread: threadId(thread) },
      subject: parent.subject,
      text,
      ...(attachments.length === 0 ? {} : { attachments }),
      ...(quoted === undefined ? {} : { quoted: { text: quoted } }),
    },
  };
}

function readersOf(parent: ParentMail, sender: SenderVerdict, settings: InboundSettings): string {
  const { others = [] } = parent;
  const isAuthenticated = sender.level !== 'unverified';
  const { replyAll, allowFrom } = settings;
  return recipientNote(others, copyRecipients(others, replyAll, isAuthenticated, allowFrom()));
}

const newThread = (address: string, fingerprint: string) =>
  createHash('sha256')
    .update(`${address}\n${fingerprint}`)
    .digest('hex')
    .slice(0, THREAD_HEX_CHARS);

// What a delivery report says of a mail of ours: noted against its address, and told.

/** What becomes known of the mail that the report is. */
export type Bounced = {
  /** Something the owner should hear of. */
  readonly notice?: string;
  /** A report that an answer of ours could not be delivered. */
  readonly bounced?: { readonly id: MessageId; readonly reason: string };
};

export const isSent = (known: KnownMail | undefined): known is KnownMail =>
  known !== undefined && known.inbound === undefined;

/** A delivery report about an answer of ours counts against its address (RFC 3464). */
export async function noteBounces<T extends Bounced>(
  incoming: T,
  arrival: MailArrival,
  register: MailRegister,
): Promise<T> {
  const { result } = arrival.reading;
  const bounce = result.kind === 'parsed' ? result.mail.bounce : undefined;
  for (const id of bounce?.originalIds ?? []) {
    const known = await register.knownMail(id);
    if (bounce === undefined || !isSent(known)) continue;
    const { reason, recipient = known.sender } = bounce;
    // The person who asked has the answer; the report is about somebody's copy.
    const isCopy = known.copies?.includes(recipient) === true;
    await register.noteBounce(
      { at: arrival.receivedAt, recipient: isCopy ? recipient : known.sender },
      id,
    );
    const what = isCopy ? 'The copy of an answer for' : 'An answer to';
    const notice = `${what} ${recipient} could not be delivered: ${reason}.`;
    const outbound = isCopy ? undefined : known.outbound;
    return {
      ...incoming,
      notice,
      ...(outbound === undefined ? {} : { bounced: { id: outbound, reason } }),
    };
  }
  return incoming;
}
