// The main thread's side of parsing: starts the parsing thread, limits its time and memory, and
// answers its DNS lookups. A mail that crashes the thread is reported as unreadable; the next mail
// gets a new thread. The messages between the two threads are declared here.

import { Resolver } from 'node:dns/promises';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { FetchMessageObject } from 'imapflow';
import type { RawMail } from '../../lib/mail/raw-mail.ts';
import type { AttachedPart } from '../../lib/mail/rules/attached.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { BounceReport } from './rules/machine-mail.ts';
import type { DmarcEvidence, SignatureEvidence } from './rules/sender.ts';
import type { StrippedMail } from './rules/text.ts';

const PARSE_LIMIT_MS = 10_000;
/** Checking signatures waits for name servers. */
const VERIFY_LIMIT_MS = 20_000;
const MAX_HEAP_MB = 64;
/** Frees new objects early: the garbage of a streamed mail adds up. */
const MAX_YOUNG_HEAP_MB = 8;
const MAX_STACK_MB = 4;
/** An idle thread still costs memory. */
const IDLE_LIMIT_MS = 60_000;
const DNS_TIMEOUT_MS = 4_000;
const DNS_TRIES = 2;

const WORKER_URL = new URL(`./parse-worker${extname(import.meta.url)}`, import.meta.url);

export type MailReading = { readonly result: ParseResult; readonly report: SignatureReport };

type MailReaderDeps = {
  readonly clock: Clock;
  /** Default: the machine's name servers. */
  readonly lookup?: DnsLookup | undefined;
};

type ReadingDeps = { readonly clock: Clock; readonly lookup: DnsLookup };

export class MailReader implements AsyncDisposable {
  readonly #deps: ReadingDeps;
  #worker: Worker | undefined;
  #idle: Disposable | undefined;

  constructor({ clock, lookup }: MailReaderDeps) {
    this.#deps = { clock, lookup: lookup ?? systemLookup() };
  }

  /**
   * Reads one mail at a time. Never rejects: an unreadable mail is a result. `raw` is no longer
   * used after it resolves.
   */
  async read(raw: RawMail): Promise<MailReading> {
    this.#idle?.[Symbol.dispose]();
    this.#idle = undefined;
    const worker = this.#worker ?? startWorker();
    this.#worker = worker;
    const reading = await readIn(worker, raw, this.#deps);
    // The memory of a large mail is freed before another thread reads its files.
    if (reading.isBroken || !(raw instanceof Uint8Array)) await this.#stop();
    else this.#idle = this.#deps.clock.timer(IDLE_LIMIT_MS, () => void this.#stop());
    return reading;
  }

  /** Stops an idle thread before another one starts. */
  async rest(): Promise<void> {
    if (this.#idle !== undefined) await this.#stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
  }

  async #stop(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#idle?.[Symbol.dispose]();
    this.#idle = undefined;
    await worker?.terminate();
  }
}

/** A parsing thread with its limits; it lasts until it is terminated. */
export function startWorker(): Worker {
  const worker = new Worker(WORKER_URL, {
    env: {},
    resourceLimits: {
      maxOldGenerationSizeMb: MAX_HEAP_MB,
      maxYoungGenerationSizeMb: MAX_YOUNG_HEAP_MB,
      stackSizeMb: MAX_STACK_MB,
    },
    stdout: true,
    stderr: true,
  });
  // A thread that is being stopped may still fail; nothing waits for it.
  worker.on('error', () => undefined);
  worker.unref();
  return worker;
}

function systemLookup(): DnsLookup {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  return async (domain, type) => (type === 'TXT' ? resolver.resolveTxt(domain) : []);
}

const BROKEN = t`mail broke the parser`;

/** Reads one mail in the thread. */
async function readIn(
  worker: Worker,
  raw: RawMail,
  { clock, lookup }: ReadingDeps,
): Promise<MailReading & { readonly isBroken: boolean }> {
  const done = Promise.withResolvers<MailReading & { readonly isBroken: boolean }>();
  const send = (message: ToParser) => worker.postMessage(message);
  let result: ParseResult | undefined;
  let deadline: Disposable | undefined;
  const finish = (gate: string, report?: SignatureReport) =>
    done.resolve({
      result: result ?? { kind: 'unreadable', gate },
      report: report ?? NO_SIGNATURES,
      isBroken: report === undefined,
    });
  const limit = (ms: number) => {
    deadline?.[Symbol.dispose]();
    deadline = clock.timer(ms, () => finish(t`mail took too long to read`));
  };
  const onMessage = (message: FromParser) => {
    if (message.kind === 'parsed') {
      result = message.result;
      limit(VERIFY_LIMIT_MS);
    } else if (message.kind === 'verified') finish(BROKEN, message.report);
    else if (message.kind === 'lookup') {
      const { query, domain, type } = message;
      const answer = (records?: string[][] | string[], errorCode?: string) =>
        send({ kind: 'records', query, records, errorCode });
      lookup(domain, type).then(answer, (error) =>
        answer(undefined, String(error?.code ?? 'ESERVFAIL')),
      );
    }
  };
  const onBroken = () => finish(BROKEN);
  worker.on('message', onMessage).once('error', onBroken).once('exit', onBroken);
  limit(PARSE_LIMIT_MS);
  send({ kind: 'read', raw });
  const reading = await done.promise;
  deadline?.[Symbol.dispose]();
  worker.off('message', onMessage).off('error', onBroken).off('exit', onBroken);
  return reading;
}

// What the parsing thread returns for a raw mail, and the messages it exchanges with the main
// thread.

export type ParsedMail = {
  readonly subject: string;
  /** Decoded display name of the sender. */
  readonly fromName: string | undefined;
  /** The visible text with its quotes, from the plain part or else the HTML part. */
  readonly text: string;
  /** The same without quotes and signature. */
  readonly stripped: StrippedMail;
  readonly partsDiffer: boolean;
  /** Lower case, the whole mail's first. */
  readonly contentTypes: readonly string[];
  readonly calendarMethod: string | undefined;
  readonly attachments: readonly AttachedPart[];
  /** Its calendar entries as text. */
  readonly calendars: readonly string[];
  /** The content of a delivery report, if it reports a failure. */
  readonly bounce: BounceReport | undefined;
};

/** `unreadable`: over a limit, or the parser failed; `gate` names which. */
export type ParseResult =
  | { readonly kind: 'parsed'; readonly mail: ParsedMail }
  | { readonly kind: 'unreadable'; readonly gate: string };

export type SignatureReport = {
  readonly signatures: readonly SignatureEvidence[];
  readonly dmarc: DmarcEvidence;
};

export const NO_SIGNATURES: SignatureReport = {
  signatures: [],
  dmarc: { result: 'temperror', strict: true },
};

/** DNS lookup: TXT records as lists of their pieces. Rejects with a Node DNS `code`. */
export type DnsLookup = (domain: string, type: string) => Promise<string[][] | string[]>;

export type ToParser =
  | { readonly kind: 'read'; readonly raw: RawMail }
  /**
   * Requests the contents of the mail's attachments, written one behind the other to the file
   * descriptor `into`, in the order of `ParsedMail`.
   */
  | { readonly kind: 'files'; readonly raw: RawMail; readonly into: number }
  | {
      readonly kind: 'records';
      readonly query: number;
      readonly records: string[][] | string[] | undefined;
      readonly errorCode: string | undefined;
    };

export type FromParser =
  | { readonly kind: 'parsed'; readonly result: ParseResult }
  | { readonly kind: 'files'; readonly sizes: readonly number[] }
  /** The target file could not take all of it. */
  | { readonly kind: 'no_room' }
  | {
      readonly kind: 'lookup';
      readonly query: number;
      readonly domain: string;
      readonly type: string;
    }
  | { readonly kind: 'verified'; readonly report: SignatureReport };

// What is known about a mail without reading it.

export type MailSummary = {
  readonly uid: number;
  readonly bytes: number;
  /** Epoch milliseconds at which the server took the mail in. */
  readonly arrivedAtMs: number;
  /** The Message-ID and Date fields as written in the mail. */
  readonly idFields: string;
};

/** The data of a mail in a list for people. */
export type MailHead = Pick<MailSummary, 'uid' | 'arrivedAtMs'> & {
  /** Name and address as written in the mail. */
  readonly from: string;
  readonly subject: string;
  readonly isSeen: boolean;
};

export function summaryOf(mail: FetchMessageObject): MailSummary | undefined {
  if (mail.size === undefined || mail.headers === undefined) return undefined;
  return {
    uid: mail.uid,
    bytes: mail.size,
    arrivedAtMs: new Date(mail.internalDate ?? Number.NaN).getTime(),
    idFields: mail.headers.toString('utf8').trim(),
  };
}

export function headOf({ uid, envelope, flags, internalDate }: FetchMessageObject): MailHead {
  const [sender] = envelope?.from ?? [];
  const { name = '', address = '' } = sender ?? {};
  return {
    uid,
    from: name === '' ? address : `${name} <${address}>`,
    subject: envelope?.subject ?? '',
    arrivedAtMs: new Date(internalDate ?? Number.NaN).getTime(),
    isSeen: flags?.has('\\Seen') ?? false,
  };
}

/** A query for the server's search. */
export const byMessageId = (messageId: string) => ({ header: { 'message-id': messageId } });
