// One mail on its way in: every rule of core applied to what the parsing thread found, ending in an
// entry for the gateway. What a rule stops is recorded with its gate, never answered.

import { createHash } from 'node:crypto';
import type { InboundEntry } from '../../bus/bus.ts';
import type { AccountRef } from '../../core/account.ts';
import { type MessageId, messageId, threadId } from '../../core/ids.ts';
import { readFrom } from '../../core/mail/address.ts';
import { headerValue, messageIdsIn, withoutComments } from '../../core/mail/headers.ts';
import { copyRecipients, type ReplyAll, recipientNote } from '../../core/mail/recipients.ts';
import { judgeMail } from '../../core/mail/rules.ts';
import { type SenderVerdict, verifySender } from '../../core/mail/sender.ts';
import {
  chooseThread,
  type ParentMail,
  parentIds,
  parseOwnMessageId,
} from '../../core/mail/threading.ts';
import type { InboundMessage } from '../../core/message.ts';
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
import { type Bounced, isSent, noteBounces } from './mail-bounces.ts';
import { filesOf } from './mail-files.ts';
import type { MailRegister } from './mail-register.ts';

const REPEAT_WINDOW_MS = 24 * 3_600_000;
const EVERYBODY = '*';
/** Stands in where no sender can be told. */
const NOBODY = 'unknown';
const THREAD_HEX_CHARS = 16;

export type InboundSettings = {
  readonly at: AccountRef;
  readonly own: readonly string[];
  /** Addresses of every mailbox of ours. */
  readonly ours: () => readonly string[];
  /** In lower case, as configured now. */
  readonly allowFrom: () => readonly string[];
  readonly replyAll: ReplyAll;
  readonly quoteOriginal: boolean;
  readonly authservId: string;
  readonly answers: ChannelHost['answers'];
};

export type Incoming = Bounced & {
  readonly entry: InboundEntry;
  /** The sender would be verified if the name service answered. */
  readonly isTemporary: boolean;
};

export async function readIncoming(
  arrival: MailArrival,
  settings: InboundSettings,
  register: MailRegister,
): Promise<Incoming> {
  const fingerprint = fingerprintOf(arrival.summary);
  const id = messageId(`${settings.at.channel}:${settings.at.account}:${fingerprint}`);
  const from = readFrom(arrival.headers);
  if (from.kind === 'refused') {
    const message = blankMessage(id, NOBODY, arrival, settings.at);
    const incoming = await refused(message, from.gate, fingerprint, register);
    return noteBounces(incoming, arrival, register);
  }
  const { address } = from.from;
  const sender = verify(arrival, address, settings);
  const message = blankMessage(id, address, arrival, settings.at, sender);
  const own = await gateOf(arrival, address, sender, id, settings, register);
  const gate = own ?? (await gateOfCopy(arrival, message, sender, settings));
  if (gate !== undefined) {
    const incoming = await refused(message, gate, fingerprint, register);
    return noteBounces(incoming, arrival, register);
  }
  const entry = await admitted(arrival, message, sender, fingerprint, settings, register);
  return { entry, isTemporary: sender.isTemporary };
}

function verify(arrival: MailArrival, address: string, settings: InboundSettings): SenderVerdict {
  const { headers, reading, summary } = arrival;
  const dateMs = Date.parse(withoutComments(headerValue(headers, 'date') ?? ''));
  return verifySender({
    headers,
    address,
    signatures: reading.report.signatures,
    dmarc: reading.report.dmarc,
    dateMs: Number.isNaN(dateMs) ? undefined : dateMs,
    arrivedAtMs: Number.isNaN(summary.arrivedAtMs) ? arrival.receivedAt : summary.arrivedAtMs,
    authservId: settings.authservId,
  });
}

/** The first rule that stops the mail. */
async function gateOf(
  arrival: MailArrival,
  address: string,
  sender: SenderVerdict,
  id: MessageId,
  settings: InboundSettings,
  register: MailRegister,
): Promise<string | undefined> {
  const { headers, reading } = arrival;
  const mail = reading.result.kind === 'parsed' ? reading.result.mail : undefined;
  const ownId = messageIdsIn(headerValue(headers, 'message-id'))[0];
  const known = ownId === undefined ? undefined : await register.knownMail(ownId);
  const isListed = settings.allowFrom().some((one) => one === EVERYBODY || one === address);
  const calendarMethod = mail?.calendarMethod;
  const verdict = judgeMail({
    headers,
    sender: address,
    own: settings.own,
    ours: settings.ours(),
    contentTypes: mail?.contentTypes ?? [headerValue(headers, 'content-type') ?? ''],
    ...(calendarMethod === undefined ? {} : { calendarMethod }),
    isOurs: ownId !== undefined && (parseOwnMessageId(ownId) !== undefined || isSent(known)),
    isAuthenticated: sender.level !== 'unverified',
    isListed,
  });
  if (verdict.kind !== 'answer')
    return verdict.kind === 'hold' ? `held: ${verdict.gate}` : verdict.gate;
  if (known !== undefined && known.sender === address && known.inbound !== id) {
    return 'same Message-ID again';
  }
  const same = mail && (await register.sameWords(address, wordsOf(arrival, mail, sender)));
  const isRepeat = same && same.id !== id && arrival.receivedAt - same.at < REPEAT_WINDOW_MS;
  return isRepeat ? 'same words again' : undefined;
}

/** Whoever is not proven to be the sender cannot take the place of the mail that is. */
async function gateOfCopy(
  { headers }: MailArrival,
  message: InboundMessage,
  sender: SenderVerdict,
  { answers }: InboundSettings,
): Promise<string | undefined> {
  const mailId = messageIdsIn(headerValue(headers, 'message-id'))[0];
  if (mailId === undefined) return undefined;
  const proof = sender.level === 'unverified' ? 'unproven' : 'proven';
  const isOurs = await answers(`${mailId}\n${message.chat.chat}\n${proof}`, message);
  return isOurs ? undefined : 'answered from another mailbox';
}

async function refused(
  message: InboundMessage,
  gate: string,
  fingerprint: string,
  register: MailRegister,
): Promise<Incoming> {
  await register.noteRefused(fingerprint);
  const isHeld = gate.startsWith('held: ');
  const notice = `A mail from ${message.chat.chat} was not answered: it is marked as bulk.`;
  return {
    entry: { kind: 'record', message, gate },
    isTemporary: false,
    ...(isHeld ? { notice } : {}),
  };
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
