// A local chat surface (web page, terminal) as a channel of the bus. Messages are logged in the
// channel's state, and readers follow the log. A person's message is durable twice: an intent
// before it is on the bus, the log entry after, so that a crash in between neither loses nor
// duplicates it.

import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import {
  fileNameOf,
  mediaGone,
  mediaUnavailable,
  sentKindOf,
} from '../../kernel/delivery/undelivered.ts';
import type { MediaStore, StoredMedia } from '../../kernel/media/media.ts';
import type { Attachment, OutboundAttachment } from '../../kernel/message/attachment.ts';
import { BusFullError } from '../../kernel/message/errors.ts';
import {
  type ChannelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  nativeId,
  userId,
} from '../../kernel/message/ids.ts';
import type { InboundMessage, LiveUpdate, OutboundMessage } from '../../kernel/message/message.ts';
import { createLanes } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import { aborted, type Clock } from '../../lib/time/clock.ts';
import {
  AttachmentError,
  type Attachments,
  type Channel,
  type ChannelHost,
  type Retracting,
} from '../channel.ts';
import {
  ChannelClosedError,
  type LocalChannel,
  type LocalChat,
  type LocalChatChange,
  type LocalEvent,
  type LocalFile,
  type LocalFileRef,
  type LocalFiles,
  type LocalMessage,
  LocalNameError,
} from '../local-channel.ts';
import type { Intent, Said } from './chat-log.ts';
import { ChatLog, checkNames, Readers } from './chat-log.ts';

type LocalChannelOptions = {
  readonly name: ChannelName;
  /** Rapid messages are one question. */
  readonly coalesces: boolean;
  /** The client can show buttons and remove messages. */
  readonly choices?: 'buttons';
  /** Largest file that the client can show; absent: the channel carries no files. */
  readonly maxFileBytes?: () => number;
  readonly clock: Clock;
};

/** The sender has access to this machine or holds the gateway's token. */
const OWNER = userId('owner');
/** No platform sets a limit; the HTTP body limit is lower. */
const TEXT_UNITS = 1_000_000;
const LIFETIME_MS = 30 * 86_400_000;
/** Of a turn's last tool calls. */
const KEPT_STEPS = 100;
/** Messages read from the log at once. */
const PAGE_MESSAGES = 100;
/** How long a message waits for a gateway that is starting. */
const OPENING_WAIT_MS = 10_000;

export function createLocalChannel(options: LocalChannelOptions): Channel & LocalChannel {
  return new DurableLocalChannel(options);
}

type Opened = { readonly host: ChannelHost; readonly log: ChatLog };

class DurableLocalChannel implements Channel, LocalChannel {
  readonly name: ChannelName;
  readonly account = DEFAULT_ACCOUNT;
  readonly limits = { textUnits: TEXT_UNITS };
  readonly onUnknown = 'idempotent';
  readonly isEverywhere = true as const;
  readonly lifetimeMs = LIFETIME_MS;
  readonly coalesces: boolean;
  readonly liveView = {
    show: (update: LiveUpdate) => {
      this.#readers.show(update);
      void this.#keepEnd(update);
    },
  };
  readonly attachments?: Attachments;
  readonly files?: LocalFiles;
  readonly choices?: 'buttons';
  readonly retracting?: Retracting;
  readonly closeChoices?: NonNullable<Channel['closeChoices']>;
  readonly #clock: Clock;
  readonly #readers = new Readers();
  /** One writer per chat. */
  readonly #lanes = createLanes();
  readonly #opening = Promise.withResolvers<void>();
  #opened: Opened | undefined;
  #isTakingIn = false;

  constructor({ name, coalesces, choices, maxFileBytes, clock }: LocalChannelOptions) {
    this.name = name;
    this.coalesces = coalesces;
    this.#clock = clock;
    if (maxFileBytes !== undefined) {
      this.attachments = LOCAL_ATTACHMENTS;
      const media = async () => (await this.#openedSoon()).host.media;
      this.files = createLocalFiles(media, maxFileBytes);
    }
    if (choices === undefined) return;
    this.choices = choices;
    this.retracting = {
      retract: ({ chat }, parts, signal) =>
        this.#revise(chat, signal, async (log, at) => {
          for (const part of parts) await log.takeAway(chat, Number(part), at);
        }),
      markReplaced: ({ chat }, parts, signal) =>
        this.#revise(chat, signal, async (log, at) => {
          for (const part of parts) await log.markReplaced(chat, Number(part), at);
        }),
    };
    this.closeChoices = ({ chat }, part, signal, now) =>
      this.#revise(chat, signal, (log, at) => log.closeChoices(chat, Number(part), at, now));
  }

  /** Accepts messages until aborted; reading and sending continue: answers still come. */
  async run(host: ChannelHost, signal: AbortSignal): Promise<void> {
    const opened = { host, log: new ChatLog(host.state) };
    using _hearing = host.onWrittenElsewhere?.(() => this.#readers.logsMayHaveGrown());
    for (const intent of await opened.log.intents()) await this.#complete(intent, opened);
    this.#opened = opened;
    this.#isTakingIn = true;
    this.#opening.resolve();
    this.#reportRunning(host);
    await aborted(AbortSignal.any([signal, host.closing]));
    this.#isTakingIn = false;
  }

  async send(message: OutboundMessage, context: SendContext): Promise<Receipt> {
    const said = saidOf(message);
    if (said === undefined) return { nativeIds: [] };
    const { host, log } = await this.#whenOpened(context.signal);
    await requireKept(host.media, message.attachments);
    const { chat } = message.chat;
    const seq = await this.#lanes.run(chat, () =>
      log.append(chat, { ...said, at: this.#clock.now() }),
    );
    this.#readers.logHasGrown(chat);
    const part = nativeId(String(seq));
    if (!context.sentParts.includes(part)) await context.partSent(part, true);
    return { nativeIds: [part] };
  }

  async submit(message: LocalMessage): Promise<'accepted' | 'duplicate'> {
    const { chat, clientId, text, press, amends, files: refs = [] } = message;
    checkNames(chat, clientId);
    const opened = await this.#openedSoon();
    if (!this.#isTakingIn) throw new ChannelClosedError(t`The gateway is stopping.`);
    const id = messageId(`${this.name}:${this.account}:${chat}:${clientId}`);
    return this.#lanes.run(chat, async () => {
      if (await opened.log.has(chat, id)) return 'duplicate';
      if (amends !== undefined) await opened.log.requireChangeable(chat, amends);
      const named = await filesNamed(opened.host.media, refs);
      const files = named.length === 0 ? undefined : named;
      const intent = { id, chat, text, press, files, amends, at: this.#clock.now() };
      await opened.log.intend(intent);
      await this.#complete(intent, opened);
      return 'accepted';
    });
  }

  async *events(chat: string, afterSeq: number, signal: AbortSignal): AsyncGenerator<LocalEvent> {
    checkNames(chat);
    const { log } = await this.#whenOpened(signal);
    using reader = this.#readers.open(chat, signal);
    let seen = Math.min(afterSeq, await log.lastSeq(chat));
    while (!signal.aborted) {
      const isGrown = reader.takeGrowth();
      const { said, through } = isGrown
        ? await log.read(chat, seen, PAGE_MESSAGES)
        : { said: [], through: seen };
      // Taken after reading: an ending is shown before the answer it announces is logged.
      for (const update of reader.takeEndings()) yield { type: 'live', update };
      for (const one of said) yield { type: 'said', ...one };
      if (through > seen) {
        seen = through;
        reader.logHasGrown();
        continue;
      }
      for (const update of reader.takeRunning()) yield { type: 'live', update };
      await reader.arrival();
    }
  }

  async chats(limit: number, which?: 'open' | 'archived'): Promise<readonly LocalChat[]> {
    const { log } = await this.#openedSoon();
    return log.chats(limit, which);
  }

  async changeChat(chat: string, change: LocalChatChange): Promise<boolean> {
    checkNames(chat);
    const { log } = await this.#openedSoon();
    return this.#lanes.run(chat, () => log.changeChat(chat, change));
  }

  /** Hands the message to the bus, then logs it; both recognise a repeat. */
  async #complete(intent: Intent, { host, log }: Opened): Promise<void> {
    const message = this.#inbound(intent);
    await host.receive([{ kind: 'queue', message }]).catch(async (error) => {
      // The person gets the refusal; the message must not come back after a restart.
      if (error instanceof BusFullError) await log.withdraw(intent);
      host.report({ kind: 'degraded', reason: t`messages cannot be taken in` });
      throw error;
    });
    this.#reportRunning(host);
    const { chat, amends, ...said } = intent;
    const logged = { ...said, from: 'person' } as const;
    if (amends === undefined) await log.append(chat, logged);
    else if (amends.kind === 'again') await log.append(chat, { ...logged, amends });
    else await log.amend(chat, { ...logged, amends });
    this.#readers.logHasGrown(chat);
  }

  /**
   * Logs the steps of a turn, and that it was stopped or failed, for readers who come after its live
   * end.
   */
  async #keepEnd({ turnId, chat: { chat }, result, tools, markdown }: LiveUpdate): Promise<void> {
    if (result === undefined || result.kind === 'moved') return;
    if (tools.length === 0 && result.kind === 'answered') return;
    const { kind, answers } = result;
    const shown = tools.slice(-KEPT_STEPS);
    try {
      const { log } = await this.#openedSoon();
      await this.#lanes.run(chat, () =>
        log.append(chat, {
          id: messageId(`${turnId}/ended`),
          from: 'agent',
          text: answers === 0 ? markdown : '',
          ended: { turn: turnId, kind, answers, tools: shown },
          at: this.#clock.now(),
        }),
      );
      this.#readers.logHasGrown(chat);
    } catch {
      // The answer itself is on the bus; only its steps are missing after a reload.
    }
  }

  async #revise<T>(
    chat: string,
    signal: AbortSignal,
    revise: (log: ChatLog, at: number) => Promise<T>,
  ): Promise<T> {
    const { log } = await this.#whenOpened(signal);
    const revised = await this.#lanes.run(chat, () => revise(log, this.#clock.now()));
    this.#readers.logHasGrown(chat);
    return revised;
  }

  #reportRunning(host: ChannelHost): void {
    host.report({ kind: 'running', activeAt: host.clock.now() });
  }

  #inbound({ id, chat, text, press, files, amends, at }: Intent): InboundMessage {
    return {
      id,
      chat: { channel: this.name, account: this.account, chat: chatId(chat) },
      sender: { kind: 'person', id: OWNER, verified: 'verified' },
      addressing: 'direct',
      text,
      ...{ press, amends },
      attachments: files?.map(attachmentOf),
      sentAt: at,
      receivedAt: at,
    };
  }

  async #openedSoon(): Promise<Opened> {
    const waited = new AbortController();
    using _timer = this.#clock.timer(OPENING_WAIT_MS, () => waited.abort());
    return await this.#whenOpened(waited.signal);
  }

  async #whenOpened(signal: AbortSignal): Promise<Opened> {
    if (this.#opened === undefined) await Promise.race([this.#opening.promise, aborted(signal)]);
    if (this.#opened === undefined) throw new ChannelClosedError(t`The gateway is still starting.`);
    return this.#opened;
  }
}

// Files of the chats of a local channel: uploaded before the message that names them, and served
// from the media store for as long as it keeps them.

const described = ({ id, mimeType, sizeBytes }: StoredMedia, name: string): LocalFile => ({
  media: id,
  name: fileNameOf(name),
  kind: sentKindOf(mimeType),
  mimeType,
  sizeBytes,
});

/** `media` waits for the gateway. */
function createLocalFiles(media: () => Promise<MediaStore>, maxBytes: () => number): LocalFiles {
  return {
    maxBytes,
    async keep(name, content) {
      const stored = await (await media()).put(content, { maxBytes: maxBytes() });
      return described(stored, name);
    },
    read: async (id) => (await media()).read(id),
  };
}

/** Outbound files are in the media store already; nothing limits them. */
const LOCAL_ATTACHMENTS: Attachments = {
  maxUploadBytes: Number.MAX_SAFE_INTEGER,
  fetch: () => {
    throw new AttachmentError('door_file', t`it was not uploaded here`, { isFinal: true });
  },
};

/** @throws LocalNameError for a file that was not uploaded, or was deleted since */
function filesNamed(
  media: MediaStore,
  refs: readonly LocalFileRef[],
): Promise<readonly LocalFile[]> {
  const files = refs.map(async (ref) => {
    const stored = await media.stat(ref.media);
    if (stored !== undefined) return described(stored, ref.name);
    throw new LocalNameError(t`A file is no longer available. Attach it again.`);
  });
  return Promise.all(files);
}

/** @throws DeliveryError if a file of the answer is no longer stored */
async function requireKept(
  media: MediaStore,
  attachments: readonly OutboundAttachment[] = [],
): Promise<void> {
  for (const file of attachments) {
    if ((await media.stat(file.media).catch(mediaUnavailable)) === undefined) throw mediaGone();
  }
}

const attachmentOf = ({ media, ...file }: LocalFile): Attachment => ({
  ...file,
  content: { kind: 'stored', media },
});

const fileOfAnswer = ({ caption: _shown, ...file }: OutboundAttachment): LocalFile => file;

/** An answer as the log stores it, its captions below the text; undefined if it is empty. */
function saidOf(message: OutboundMessage): Omit<Said, 'at'> | undefined {
  const { id, markdown, replyTo, choices, attachments = [] } = message;
  const captions = attachments.flatMap(({ caption }) => caption ?? []);
  const text = [markdown, ...captions].filter((part) => part.trim() !== '').join('\n\n');
  if (text === '' && attachments.length === 0) return undefined;
  return {
    ...{ id, from: 'agent', text, replyTo, choices },
    files: attachments.length === 0 ? undefined : attachments.map(fileOfAnswer),
  };
}
