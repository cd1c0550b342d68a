// Processes one inbound mail: applies every rule to the result of the parsing thread and produces
// an entry for the gateway. A mail that a rule stops is recorded with the reason and never
// answered. A delivery report is recorded for the mail it is about.

import { hash } from 'node:crypto';
import type { InboundEntry } from '../../kernel/bus/bus.ts';
import type { AccountRef } from '../../kernel/message/ids.ts';
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
import type { MailAccount } from './connection-settings.ts';
import { filesOf, type MailPlace } from './mail-files.ts';
import { NO_SIGNATURES } from './mail-reader.ts';
import type { KnownMail, MailRegister } from './mail-register.ts';
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
/** A proven sender may repeat a request within a day; only a machine repeats it this often. */
const MAX_SAME_WORDS = 10;
const EVERYBODY = '*';
/** The sender id where none can be determined. */
const NOBODY = 'unknown';
const THREAD_HEX_CHARS = 16;
/** DNS retries for a sender who is not on the allow list. */
const MAX_LOOKS = 3;

/** The mailbox that received the mail. */
export type InboundContext = {
  readonly at: AccountRef;
  readonly config: Pick<
    EmailConfig,
    'acceptUnverified' | 'replyAll' | 'quoteOriginal' | 'authservId'
  >;
  readonly account: Pick<MailAccount, 'own'>;
  readonly host: Pick<ChannelHost, 'answers' | 'isTrusted'>;
  readonly register: MailRegister;
  /** Addresses of every mailbox of this home. */
  ours(): readonly string[];
  /** The current allow list, in lower case. */
  allowFrom(): readonly string[];
};

export type Incoming = {
  readonly entry: InboundEntry;
  /** A text for the owner. */
  readonly notice?: string | undefined;
  /** A report that an answer of the agent could not be delivered. */
  readonly bounced?: { readonly id: MessageId; readonly reason: string } | undefined;
};

/** A mail with a sender, and how well that sender is proven. */
type SentMail = {
  readonly arrival: MailArrival;
  readonly context: InboundContext;
  readonly fingerprint: string;
  /** Without its text yet. */
  readonly message: InboundMessage;
  readonly address: string;
  readonly sender: SenderVerdict;
  readonly standing: Standing;
};

const EMPTY_NOTICE = 'Skipped an empty mail (0 bytes): the mail server has no content for it.';

/** `unproven yet`: the name service did not answer; nothing is recorded before a retry. */
export async function readIncoming(
  arrival: MailArrival,
  context: InboundContext,
): Promise<Incoming | 'unproven yet'> {
  const { at, host } = context;
  const fingerprint = fingerprintOf(arrival.summary);
  const id = messageId(`${at.channel}:${at.account}:${fingerprint}`);
  const from = readFrom(arrival.headers);
  if (from.kind === 'refused') {
    const message = blankMessage(id, NOBODY, arrival, at);
    const isEmpty = arrival.summary.bytes === 0;
    const gate = isEmpty ? 'empty mail' : from.gate;
    return refused(arrival, context, message, gate, isEmpty ? EMPTY_NOTICE : undefined);
  }
  const { address } = from.from;
  const sender = verify(arrival, address, context);
  const message = blankMessage(id, address, arrival, at, sender);
  const standing = await standingOf(message, context);
  const mail = { arrival, context, fingerprint, message, address, sender, standing };
  const verdict = await judge(mail);
  if (verdict.kind !== 'answer') {
    const { kind, gate } = verdict;
    if (kind === 'refuse') return refused(arrival, context, message, gate);
    const { subject } = parentOf(arrival, address, context.ours());
    const notice = await newsOf(mail, gate, heldNotice(address, shortName(subject), gate));
    return refused(arrival, context, message, `held: ${gate}`, notice);
  }
  const isSettled = arrival.isLast || (standing !== 'named' && arrival.tries + 1 >= MAX_LOOKS);
  if (sender.isTemporary && !isSettled) return 'unproven yet';
  // An unproven sender must not take the id of the genuine mail.
  const mailId = ownIdOf(arrival);
  const proof = sender.level === 'unverified' ? 'unproven' : 'proven';
  const isOurs =
    mailId === undefined || (await host.answers(`${mailId}\n${address}\n${proof}`, message));
  if (!isOurs) {
    await context.register.noteRefused(fingerprint);
    return { entry: { kind: 'record', message, gate: 'answered from another mailbox' } };
  }
  const entry = await admitted(
    sender.level === 'unverified' ? mail : { ...mail, arrival: withoutSecrets(arrival) },
  );
  const doubt = doubtOf(mail);
  const notice = doubt && (await newsOf(mail, doubt, unprovenNotice(address, doubt)));
  return { entry, notice };
}

/** Records the mail with the reason; it is never answered. */
async function refused(
  arrival: MailArrival,
  { register }: InboundContext,
  message: InboundMessage,
  gate: string,
  notice?: string,
): Promise<Incoming> {
  await register.noteRefused(fingerprintOf(arrival.summary));
  return noteBounces({ entry: { kind: 'record', message, gate }, notice }, arrival, register);
}

const ownIdOf = ({ headers }: MailArrival) => messageIdsIn(headerValue(headers, 'message-id'))[0];

/** The notice, unless the owner got the same one within a day. */
async function newsOf(
  { arrival, address, context }: SentMail,
  what: string,
  notice: string,
): Promise<string | undefined> {
  const isNews = await context.register.isNews(`${address}\n${what}`, arrival.receivedAt);
  return isNews ? notice : undefined;
}

/** Why an allowed person's mail will be treated as forged although it may be genuine. */
function doubtOf({ arrival, sender, standing, context }: SentMail): string | undefined {
  const { result } = arrival.reading;
  if (standing !== 'named' || sender.level !== 'unverified') return undefined;
  if (context.config.acceptUnverified) return undefined;
  if (sender.dateProblem !== undefined) return sender.dateProblem;
  if (sender.isTemporary) return sender.reason;
  return result.kind === 'unreadable' ? result.gate : undefined;
}

function unprovenNotice(address: string, doubt: string): string {
  return (
    `A mail from ${verbatim(address)} was not answered: its sender could not be verified ` +
    `(${doubt}). It stays in the mailbox. If it is theirs, ask them to send it again.`
  );
}

/** A mail that could not be read: nothing about it is known. */
export function unreadableMail(
  { uidValidity, uid }: MailPlace,
  receivedAt: number,
  at: AccountRef,
): Incoming {
  const idFields = `unreadable ${uidValidity}/${uid}`;
  const summary = { uid, bytes: 0, arrivedAtMs: Number.NaN, idFields };
  const gate = 'could not be read from the mail server';
  const reading = { result: { kind: 'unreadable', gate }, report: NO_SIGNATURES } as const;
  const arrival = {
    ...{ uidValidity, summary, headers: [], reading, receivedAt, tries: 0, isLast: true },
  };
  const id = messageId(`${at.channel}:${at.account}:${fingerprintOf(summary)}`);
  return { entry: { kind: 'record', message: blankMessage(id, NOBODY, arrival, at), gate } };
}

function verify(
  { headers, reading, summary, receivedAt }: MailArrival,
  address: string,
  { config }: InboundContext,
): SenderVerdict {
  return verifySender({
    headers,
    address,
    ...reading.report,
    dateMs: mailDate(headers),
    arrivedAtMs: Number.isNaN(summary.arrivedAtMs) ? receivedAt : summary.arrivedAtMs,
    authservId: config.authservId,
  });
}

/** The standing the address would have if the mail were proven. */
async function standingOf(message: InboundMessage, context: InboundContext): Promise<Standing> {
  const { sender, chat } = message;
  const listed = context.allowFrom();
  if (listed.includes(chat.chat)) return 'named';
  if (listed.includes(EVERYBODY)) return 'anybody';
  if (sender.kind !== 'person') return 'unknown';
  const proven = { ...message, sender: { ...sender, verified: 'verified' } as const };
  return (await context.host.isTrusted(proven)) ? 'named' : 'unknown';
}

/** The first rule that stops the mail. */
async function judge(sent: SentMail): Promise<MailVerdict> {
  const { arrival, context, message, address, sender, standing } = sent;
  const { headers, reading, receivedAt } = arrival;
  const { register } = context;
  const mail = reading.result.kind === 'parsed' ? reading.result.mail : undefined;
  const ownId = ownIdOf(arrival);
  const known = ownId === undefined ? undefined : await register.knownMail(ownId);
  const isAuthenticated = sender.level !== 'unverified';
  const verdict = judgeMail({
    ...{ headers, sender: address, own: context.account.own, ours: context.ours() },
    contentTypes: mail?.contentTypes ?? [headerValue(headers, 'content-type') ?? ''],
    calendarMethod: mail?.calendarMethod,
    isOurs: ownId !== undefined && (parseOwnMessageId(ownId) !== undefined || isSent(known)),
    ...{ isAuthenticated, standing },
  });
  if (verdict.kind !== 'answer') return verdict;
  if (known?.sender === address && known.inbound !== message.id) {
    // An unproven mail was not answered, and must not take the place of the genuine one.
    const wasRefused = known.level === 'unverified' && !context.config.acceptUnverified;
    if (!wasRefused || !isAuthenticated) return { kind: 'refuse', gate: 'same Message-ID again' };
  }
  const same = mail && (await register.sameWords(address, wordsOf(arrival, mail, sender)));
  const isRecent = same && same.id !== message.id && receivedAt - same.at < REPEAT_WINDOW_MS;
  const isMachine = !isAuthenticated || (same?.count ?? 1) >= MAX_SAME_WORDS;
  if (!isRecent || !isMachine) return { kind: 'answer' };
  const isHeld = isAuthenticated && standing !== 'unknown';
  return { kind: isHeld ? 'hold' : 'refuse', gate: 'same words again' };
}

/** Treats a fully encrypted mail as unread, so that the agent can say so. */
function withoutSecrets(arrival: MailArrival): MailArrival {
  const { result, report } = arrival.reading;
  if (result.kind !== 'parsed' || !isEncrypted(result.mail.contentTypes.slice(0, 1)))
    return arrival;
  const gate = 'it is encrypted, and no key is known here';
  return { ...arrival, reading: { result: { kind: 'unreadable', gate }, report } };
}

async function admitted(mail: SentMail): Promise<InboundEntry> {
  const { arrival, context, message, address, sender, fingerprint } = mail;
  const { register, config } = context;
  const parent = parentOf(arrival, address, context.ours());
  const known = await Promise.all(
    parentIds(parent).map((parentId) => register.knownThread(parentId, address)),
  );
  const parents = known.filter((one) => one !== undefined);
  const joined = chooseThread(parents, address, sender.level);
  const thread = joined ?? newThread(address, fingerprint);
  const readers = readersOf(parent, mail);
  const { text, quoted, whole, words } = textOf(arrival, sender, joined === undefined, readers);
  const place = { uidValidity: arrival.uidValidity, uid: arrival.summary.uid };
  await register.noteInbound(
    {
      ...{ id: message.id, fingerprint, thread, sender: address, level: sender.level },
      parent: { ...parent, place },
      receivedAt: arrival.receivedAt,
      wholeText: whole,
      quote: config.quoteOriginal ? quoteFor(arrival, message, sender) : undefined,
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
      attachments: attachments.length === 0 ? undefined : attachments,
      quoted: quoted === undefined ? undefined : { text: quoted },
    },
  };
}

function readersOf({ others = [] }: ParentMail, { sender, context }: SentMail): string {
  const isAuthenticated = sender.level !== 'unverified';
  const { replyAll } = context.config;
  const copies = copyRecipients(others, replyAll, isAuthenticated, context.allowFrom());
  return recipientNote(others, copies);
}

const newThread = (address: string, fingerprint: string) =>
  hash('sha256', `${address}\n${fingerprint}`).slice(0, THREAD_HEX_CHARS);

const isSent = (known: KnownMail | undefined): known is KnownMail =>
  known !== undefined && known.inbound === undefined;

/** A delivery report about an answer counts against its address (RFC 3464). */
async function noteBounces(
  incoming: Incoming,
  { reading: { result }, receivedAt: at }: MailArrival,
  register: MailRegister,
): Promise<Incoming> {
  const bounce = result.kind === 'parsed' ? result.mail.bounce : undefined;
  for (const mailId of bounce?.originalIds ?? []) {
    const known = await register.knownMail(mailId);
    if (bounce === undefined || !isSent(known)) continue;
    const { reason, recipient = known.sender } = bounce;
    // The person who asked has the answer; the report is about a copy.
    const isCopy = known.copies?.includes(recipient) === true;
    await register.noteBounce({ at, recipient: isCopy ? recipient : known.sender }, mailId);
    const what = isCopy ? 'The copy of an answer for' : 'An answer to';
    const notice = `${what} ${recipient} could not be delivered: ${reason}.`;
    const id = isCopy ? undefined : known.outbound;
    return { ...incoming, notice, bounced: id && { id, reason } };
  }
  return incoming;
}
