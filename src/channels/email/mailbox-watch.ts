// Follows one mailbox over one connection: list what is new, read and hand over each mail with the
// cursor behind it, then wait in IDLE, never longer than the poll interval. Any failure ends the
// connection; nothing is skipped, because the cursor moves only with what became durable.

import { parseHeaderBlock } from '../../core/mail/headers.ts';
import type { ChannelHost } from '../channel.ts';
import { fingerprintOf } from './arrival.ts';
import { formatCursor, type MailCursor, readFrom } from './cursor.ts';
import type { ImapConnection, OpenMailbox } from './imap-connection.ts';
import { type InboundSettings, type Incoming, readIncoming } from './inbound.ts';
import type { MailReader, MailReading } from './mail-reader.ts';
import type { MailRegister } from './mail-register.ts';
import { inMemory, type SpooledMail, spoolMail } from './mail-spool.ts';
import type { MailSummary } from './mail-summary.ts';
import { MAX_HEADER_BYTES, MAX_MAIL_BYTES, splitHeader } from './mime-limits.ts';
import { NO_SIGNATURES } from './parsed-mail.ts';
import type { RawMail } from './raw-mail.ts';
import { storeCopies } from './sent-folder.ts';

/** How far back a renumbered mailbox is searched. */
const RESCAN_MS = 14 * 86_400_000;
const SUMMARY_CHUNK = 100;
/** Another look at the name service for a sender it could prove. */
const MAX_LOOKUP_TRIES = 3;
const LOOKUP_PAUSE_MS = 5_000;

export type WatchDeps = {
  readonly host: ChannelHost;
  readonly settings: InboundSettings & { readonly mailbox: string; readonly pollMs: number };
  readonly register: MailRegister;
  readonly reader: MailReader;
  /** Resolves when something besides new mail wants the connection; a new promise each time. */
  nextWake(): Promise<void>;
};

type Listed = Pick<OpenMailbox, 'uidValidity'> & { readonly summary: MailSummary };

export class MailboxWatch {
  readonly #deps: WatchDeps;
  readonly #connection: ImapConnection;

  constructor(deps: WatchDeps, connection: ImapConnection) {
    this.#deps = deps;
    this.#connection = connection;
  }

  /** Until aborted; rejects with ChannelError when the connection is of no more use. */
  async run(signal: AbortSignal): Promise<void> {
    const { host, settings, register, nextWake } = this.#deps;
    while (!signal.aborted) {
      const wake = nextWake();
      const mailbox = await this.#connection.open(settings.mailbox);
      await this.#catchUp(mailbox, signal);
      this.#reportActive();
      if ((await register.pendingCopies()).length > 0) {
        // Leaves the mailbox, so what came meanwhile is looked for before waiting.
        await storeCopies(this.#connection, register, host.log);
        continue;
      }
      await this.#connection.waitForMail(settings.pollMs, wake, signal);
    }
  }

  #reportActive(): void {
    const { host, settings } = this.#deps;
    const account = settings.own[0];
    host.report({
      kind: 'running',
      activeAt: host.clock.now(),
      ...(account === undefined ? {} : { account }),
    });
  }

  async #catchUp(mailbox: OpenMailbox, signal: AbortSignal): Promise<void> {
    const { host } = this.#deps;
    const from = readFrom(await host.cursor(), mailbox, host.clock.now());
    if (from.kind === 'start') {
      await this.#commit([], from.cursor);
      return;
    }
    if (from.kind === 'rescan') {
      await this.#rescan(from.cursor, mailbox, signal);
      return;
    }
    let { cursor } = from;
    const uids = await this.#connection.uidsAfter(cursor.uid);
    for (const chunk of chunksOf(uids)) {
      this.#reportActive();
      const last = chunk.at(-1) ?? cursor.uid;
      for (const summary of await this.#connection.summaries(chunk)) {
        if (signal.aborted) return;
        cursor = { ...cursor, uid: summary.uid };
        await this.#take({ ...mailbox, summary }, cursor, signal);
      }
      // The last ones may have been deleted meanwhile.
      if (cursor.uid < last) {
        cursor = { ...cursor, uid: last };
        await this.#commit([], cursor);
      }
    }
  }

  /** The server renumbered the mailbox: what is new is known by content, not by UID. */
  async #rescan(cursor: MailCursor, mailbox: OpenMailbox, signal: AbortSignal): Promise<void> {
    const { host, register } = this.#deps;
    const since = Math.max(cursor.since, host.clock.now() - RESCAN_MS);
    const uids = await this.#connection.search({ since: new Date(since) });
    host.log.warn('mailbox was renumbered', { count: uids.length });
    for (const chunk of chunksOf(uids)) {
      for (const summary of await this.#connection.summaries(chunk)) {
        if (signal.aborted) return;
        const isOld = summary.arrivedAtMs < cursor.since || summary.uid > cursor.uid;
        if (isOld || (await register.isKnownFingerprint(fingerprintOf(summary)))) continue;
        await this.#take({ ...mailbox, summary }, undefined, signal);
      }
    }
    await this.#commit([], cursor);
  }

  /** Reads one mail and hands it over; without a cursor the place in the mailbox stays. */
  async #take(listed: Listed, cursor: MailCursor | undefined, signal: AbortSignal): Promise<void> {
    const incoming = await this.#read(listed, signal);
    if (incoming === undefined) return this.#commit([], cursor);
    const { bounced, notice } = incoming;
    if (bounced !== undefined) await this.#deps.host.bounced(bounced.id, bounced.reason);
    await this.#commit([incoming], cursor);
    if (notice !== undefined) this.#deps.host.alert(notice);
    if (incoming.entry.kind === 'record') {
      const { message, gate } = incoming.entry;
      this.#deps.host.log.info('mail refused', { messageId: message.id, gate });
    }
  }

  async #read(
    { summary, uidValidity }: Listed,
    signal: AbortSignal,
  ): Promise<Incoming | undefined> {
    const { host, settings, register } = this.#deps;
    const receivedAt = host.clock.now();
    const mail = await this.#fetch(summary);
    if (mail === undefined) return undefined;
    try {
      const headers = parseHeaderBlock(splitHeader(mail.raw).block);
      for (let attempt = 1; ; attempt += 1) {
        const reading = await this.#parse(summary, mail.raw);
        const arrival = { uidValidity, summary, headers, reading, receivedAt };
        const incoming = await readIncoming(arrival, settings, register);
        if (!incoming.isTemporary || attempt === MAX_LOOKUP_TRIES) return incoming;
        await host.clock.sleep(LOOKUP_PAUSE_MS, signal);
      }
    } finally {
      await mail[Symbol.asyncDispose]();
    }
  }

  /** A mail over the size limit is known by its header alone. */
  async #fetch({ uid, bytes }: MailSummary): Promise<SpooledMail | undefined> {
    if (bytes <= MAX_MAIL_BYTES) return spoolMail(this.#connection.pieces(uid));
    return inMemory(await this.#connection.header(uid, MAX_HEADER_BYTES));
  }

  async #parse(summary: MailSummary, raw: RawMail): Promise<MailReading> {
    if (summary.bytes <= MAX_MAIL_BYTES) return this.#deps.reader.read(raw);
    return { result: { kind: 'unreadable', gate: 'mail too large' }, report: NO_SIGNATURES };
  }

  async #commit(incoming: readonly Incoming[], cursor: MailCursor | undefined): Promise<void> {
    const { host, settings } = this.#deps;
    const entries = incoming.map((one) => one.entry);
    if (cursor === undefined && entries.length === 0) return;
    const place = cursor && {
      ...settings.at,
      value: formatCursor(cursor),
    };
    await host.receive(entries, place === undefined ? {} : { cursor: place });
  }
}

function* chunksOf(uids: readonly number[]): Generator<readonly number[]> {
  for (let at = 0; at < uids.length; at += SUMMARY_CHUNK) yield uids.slice(at, at + SUMMARY_CHUNK);
}
