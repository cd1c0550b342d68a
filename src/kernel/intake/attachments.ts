// Fetches attachments from their channels into the media store, and has audio transcribed, as soon
// as a message is accepted. What cannot be fetched is marked unread, with a reason as text; in both
// cases the message on the bus is rewritten, so that every later try of its turn sees the same.

import { AttachmentError, type Channel } from '../../channels/channel.ts';
import { createPermits, type Permits, RecentMap } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import { backoffMs, type Clock, orAborted, withDeadline } from '../../lib/time/clock.ts';
import type { BusStore } from '../bus/store/store.ts';
import { port } from '../feature.ts';
import { MediaError, type MediaStore } from '../media/media.ts';
import { type Attachment, isUnheard, missedReason, sizeWords } from '../message/attachment.ts';
import type { MessageId } from '../message/ids.ts';
import { type AccountName, accountName } from '../message/ids.ts';
import type { InboundMessage, Payer } from '../message/message.ts';

export type Listening = {
  /** The attachment with its transcript, or why there is none. @throws the signal's reason */
  listened(attachment: Attachment, payer: Payer, signal: AbortSignal): Promise<Attachment>;
  /** Tells the person what was not transcribed; each case once, and a missing engine once a day. */
  told(message: InboundMessage, attachments: readonly Attachment[]): Promise<void>;
};

type AttachmentsDeps = {
  readonly media: MediaStore;
  readonly store: Pick<BusStore, 'setAttachments'> & Partial<Pick<BusStore, 'inbound'>>;
  /** Whether another process runs the account: it fetches what came there; absent: there is none. */
  isElsewhere?(account: AccountName): boolean;
  /** Transcribes audio once it is stored. */
  readonly listening: Listening;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  channel(name: AccountName): Channel | undefined;
  /** Largest file that is accepted. */
  maxFileBytes(): number;
};

export const ATTACHMENTS = port<InboundAttachments>('inbound attachments');

/** Files of one account that are fetched at once. */
const AT_ONCE = 4;
/** For one file, all tries together. */
const DEADLINE_MS = 60_000;
const TRIES = 3;
/** Between two looks for what another process fetches. */
const LOOK_MS = 300;
/** Until a file is fetched again that the storage did not take. */
const STORAGE_RETRY_MS = 5000;
const RETRY = { minMs: 1000, maxMs: 8000 };
/** Messages whose outcome is cached: their turn may have read them before it was on disk. */
const REMEMBERED = 500;

/** Also if its sender is still to be notified; the bus accepts that notice once. */
const isOpen = (attachment: Attachment) =>
  attachment.content.kind === 'remote' ||
  isUnheard(attachment) ||
  missedReason(attachment) !== undefined;
const awaits = ({ attachments = [] }: InboundMessage) => attachments.some(isOpen);

export class InboundAttachments implements AsyncDisposable {
  readonly #deps: AttachmentsDeps;
  readonly #jobs = new RecentMap<MessageId, Promise<readonly Attachment[]>>(REMEMBERED);
  readonly #permits = new Map<AccountName, Permits>();
  readonly #stop = new AbortController();

  constructor(deps: AttachmentsDeps) {
    this.#deps = deps;
  }

  /** Starts to fetch the message's attachments. */
  begin(message: InboundMessage): void {
    // Reported where the turn awaits it; until then it must not count as unhandled.
    if (awaits(message)) this.#job(message).catch(() => undefined);
  }

  /**
   * The messages with all attachments stored or marked unread.
   * @throws the signal's reason; fetching continues
   */
  async ready<Item extends { readonly message: InboundMessage }>(
    items: readonly Item[],
    signal: AbortSignal,
  ): Promise<readonly Item[]> {
    if (!items.some(({ message }) => awaits(message))) return items;
    const jobs = items.map(async (item) => {
      if (!awaits(item.message)) return item;
      const attachments = await this.#job(item.message);
      return { ...item, message: { ...item.message, attachments } };
    });
    return orAborted(Promise.all(jobs), signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.allSettled(this.#jobs.values());
  }

  #job(message: InboundMessage): Promise<readonly Attachment[]> {
    const known = this.#jobs.get(message.id);
    if (known !== undefined) return known;
    const job = this.#resolve(message);
    this.#jobs.set(message.id, job);
    // An interrupted fetch is repeated on the next call.
    job.catch(() => this.#jobs.delete(message.id));
    return job;
  }

  async #resolve(message: InboundMessage): Promise<readonly Attachment[]> {
    const { attachments = [], chat, id } = message;
    const { listening, store } = this.#deps;
    const there = await this.#fetchedThere(message);
    if (there !== undefined) return there;
    const resolved = await Promise.all(
      attachments.map(async (one) =>
        listening.listened(await this.#fetched(one, accountName(chat)), message, this.#stop.signal),
      ),
    );
    await listening.told(message, resolved);
    await store.setAttachments(id, resolved);
    return resolved;
  }

  /** What the process that runs the account has fetched; undefined where it does not in time. */
  async #fetchedThere({ id, chat }: InboundMessage): Promise<readonly Attachment[] | undefined> {
    const { clock, store, isElsewhere } = this.#deps;
    const until = clock.monotonic() + DEADLINE_MS;
    while (isElsewhere?.(accountName(chat)) === true && clock.monotonic() < until) {
      const { attachments = [] } = (await store.inbound?.(id)) ?? {};
      if (attachments.length > 0 && !attachments.some(({ content }) => content.kind === 'remote')) {
        return attachments;
      }
      await clock.sleep(LOOK_MS, this.#stop.signal);
    }
    return undefined;
  }

  async #fetched(attachment: Attachment, channel: AccountName): Promise<Attachment> {
    const { content } = attachment;
    if (content.kind !== 'remote') return attachment;
    for (;;) {
      const outcome = await this.#attempted(attachment, content.ref, channel);
      if (outcome !== undefined) return outcome;
      await this.#deps.clock.sleep(STORAGE_RETRY_MS, this.#stop.signal);
    }
  }

  /** Undefined where the storage does not take it now. */
  async #attempted(
    attachment: Attachment,
    ref: string,
    channel: AccountName,
  ): Promise<Attachment | undefined> {
    const { clock, log } = this.#deps;
    using _permit = await this.#permitsOf(channel).acquire(this.#stop.signal);
    const come = { isWhole: false };
    try {
      return await withDeadline(clock, DEADLINE_MS, tooLate, this.#stop.signal, (signal) =>
        orAborted(this.#tried(attachment, ref, channel, come, signal), signal),
      );
    } catch (error) {
      this.#stop.signal.throwIfAborted();
      if (isStorageDown(error, come)) {
        log.warn('the storage of files cannot be reached: a message waits', { channel, error });
        return undefined;
      }
      const reason = reasonOf(error, this.#deps.maxFileBytes());
      log.info('attachment not read', { channel, kind: attachment.kind, reason, error });
      return { ...attachment, content: { kind: 'unread', reason } };
    }
  }

  async #tried(
    attachment: Attachment,
    ref: string,
    channel: AccountName,
    come: Come,
    signal: AbortSignal,
  ): Promise<Attachment> {
    const { media, clock, random } = this.#deps;
    const maxBytes = this.#deps.maxFileBytes();
    if ((attachment.sizeBytes ?? 0) > maxBytes) throw tooLarge(attachment.sizeBytes, maxBytes);
    for (let failures = 0; ; ) {
      try {
        const power = this.#deps.channel(channel)?.attachments;
        if (power === undefined)
          throw new AttachmentError('attachment_no_door', NO_CHANNEL, RETRYABLE);
        const source = watched(power.fetch(ref, signal), come);
        const stored = await media.put(source, { maxBytes, signal });
        const { id, sizeBytes, mimeType } = stored;
        if (sizeBytes === 0) throw new AttachmentError('attachment_empty', EMPTY, FINAL);
        return { ...attachment, mimeType, sizeBytes, content: { kind: 'stored', media: id } };
      } catch (error) {
        failures += 1;
        signal.throwIfAborted();
        if (failures >= TRIES || !isRetryable(error)) throw error;
      }
      await clock.sleep(backoffMs(failures, { ...RETRY, random }), signal);
    }
  }

  #permitsOf(channel: AccountName): Permits {
    const known = this.#permits.get(channel) ?? createPermits(AT_ONCE);
    this.#permits.set(channel, known);
    return known;
  }
}

/** Whether the platform has given all of a file. */
type Come = { isWhole: boolean };

async function* watched(source: AsyncIterable<Uint8Array>, come: Come) {
  yield* source;
  come.isWhole = true;
}

/** What is only not to be had now is no reason to lose a file: its message waits. */
const isStorageDown = (error: unknown, { isWhole }: Come) =>
  error instanceof MediaError
    ? error.code === 'media_unavailable'
    : isWhole && error instanceof AttachmentError && error.code === TIMEOUT;

const FINAL = { isFinal: true } as const;
const RETRYABLE = { isFinal: false } as const;
const TOO_LATE = t`it could not be fetched in time`;
const NO_CHANNEL = t`the channel cannot fetch it now`;
const EMPTY = t`it is empty`;

const TIMEOUT = 'attachment_timeout';

const tooLate = () => new AttachmentError(TIMEOUT, TOO_LATE, FINAL);

const tooLarge = (sizeBytes: number | undefined, limit: number) =>
  new AttachmentError('attachment_too_large', largerThan(sizeBytes, limit), FINAL);

const largerThan = (sizeBytes: number | undefined, limit: number) =>
  sizeBytes === undefined
    ? t`it is larger than the limit of ${sizeWords(limit)}`
    : t`its ${sizeWords(sizeBytes)} are more than the limit of ${sizeWords(limit)}`;

const isRetryable = (error: unknown) =>
  error instanceof AttachmentError ? !error.isFinal : !(error instanceof MediaError);

function reasonOf(error: unknown, limit: number): string {
  if (error instanceof AttachmentError) return error.reason;
  if (!(error instanceof MediaError)) return t`it could not be fetched`;
  if (error.code === 'media_too_large') return largerThan(undefined, limit);
  return error.code === 'media_full'
    ? t`there is no storage space left`
    : t`it could not be stored`;
}
