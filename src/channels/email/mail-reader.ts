// The main thread's side of parsing: starts the parsing thread when a mail comes, gives it limited
// time and memory, and answers its look-ups. A mail that breaks the thread is reported as
// unreadable; the next one gets a new thread.

import { Resolver } from 'node:dns/promises';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../lib/time/clock.ts';
import type { RawMail } from './mail-spool.ts';
import {
  type DnsLookup,
  type FromParser,
  NO_SIGNATURES,
  type ParseResult,
  type SignatureReport,
  type ToParser,
} from './parsed-mail.ts';

const PARSE_LIMIT_MS = 10_000;
/** Checking signatures waits for name servers. */
const VERIFY_LIMIT_MS = 20_000;
const MAX_HEAP_MB = 64;
/** New objects are cleared away early: what a mail leaves behind while it streams through adds up. */
const MAX_YOUNG_HEAP_MB = 8;
const MAX_STACK_MB = 4;
/** The thread costs memory while nobody writes. */
const IDLE_LIMIT_MS = 60_000;
const DNS_TIMEOUT_MS = 4_000;
const DNS_TRIES = 2;

const WORKER_URL = new URL(`./parse-worker${extname(import.meta.url)}`, import.meta.url);

export type MailReading = { readonly result: ParseResult; readonly report: SignatureReport };

export type MailReaderDeps = {
  readonly clock: Clock;
  /** Default: the machine's name servers. */
  readonly lookup?: DnsLookup;
};

export class MailReader implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #lookup: DnsLookup;
  #worker: Worker | undefined;
  #idle: Disposable | undefined;

  constructor(deps: MailReaderDeps) {
    this.#clock = deps.clock;
    this.#lookup = deps.lookup ?? systemLookup();
  }

  /** One mail at a time. Never rejects: what cannot be read says so. Nobody reads `raw` any more then. */
  async read(raw: RawMail): Promise<MailReading> {
    this.#idle?.[Symbol.dispose]();
    this.#idle = undefined;
    const worker = this.#worker ?? startWorker();
    this.#worker = worker;
    const reading = await new Reading(worker, this.#clock, this.#lookup).run(raw);
    // What a large mail took is not kept while its files are read in another thread.
    if (reading.isBroken || !(raw instanceof Uint8Array)) await this.#stop();
    else this.#idle = this.#clock.timer(IDLE_LIMIT_MS, () => void this.#stop());
    return reading;
  }

  /** Ends a thread that waits for the next mail: another is to be started. */
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
  // A thread that is being stopped may still fail; nobody waits for it any more.
  worker.on('error', () => undefined);
  worker.unref();
  return worker;
}

function systemLookup(): DnsLookup {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  return async (domain, type) => (type === 'TXT' ? resolver.resolveTxt(domain) : []);
}

/** One mail on its way through the thread. */
class Reading {
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #lookup: DnsLookup;
  readonly #done = Promise.withResolvers<MailReading & { readonly isBroken: boolean }>();
  #result: ParseResult | undefined;
  #deadline: Disposable | undefined;

  constructor(worker: Worker, clock: Clock, lookup: DnsLookup) {
    this.#worker = worker;
    this.#clock = clock;
    this.#lookup = lookup;
  }

  async run(raw: RawMail): Promise<MailReading & { readonly isBroken: boolean }> {
    const onMessage = (message: FromParser) => this.#take(message);
    const onBroken = () => this.#break('mail broke the parser');
    this.#worker.on('message', onMessage).once('error', onBroken).once('exit', onBroken);
    this.#limit(PARSE_LIMIT_MS);
    this.#send({ kind: 'read', raw });
    const reading = await this.#done.promise;
    this.#deadline?.[Symbol.dispose]();
    this.#worker.off('message', onMessage).off('error', onBroken).off('exit', onBroken);
    return reading;
  }

  #take(message: FromParser): void {
    if (message.kind === 'parsed') {
      this.#result = message.result;
      this.#limit(VERIFY_LIMIT_MS);
    } else if (message.kind === 'verified') {
      const result = this.#result ?? { kind: 'unreadable', gate: 'mail broke the parser' };
      this.#done.resolve({ result, report: message.report, isBroken: false });
    } else if (message.kind === 'lookup') {
      void this.#answer(message.query, message.domain, message.type);
    }
  }

  async #answer(query: number, domain: string, type: string): Promise<void> {
    const answer = await this.#lookup(domain, type).then(
      (records) => ({ records, errorCode: undefined }),
      (error) => ({ records: undefined, errorCode: String(error?.code ?? 'ESERVFAIL') }),
    );
    this.#send({ kind: 'records', query, ...answer });
  }

  #break(gate: string): void {
    const result = this.#result ?? { kind: 'unreadable', gate };
    this.#done.resolve({ result, report: NO_SIGNATURES, isBroken: true });
  }

  #limit(ms: number): void {
    this.#deadline?.[Symbol.dispose]();
    this.#deadline = this.#clock.timer(ms, () => this.#break('mail took too long to read'));
  }

  #send(message: ToParser): void {
    this.#worker.postMessage(message);
  }
}
