// The outbox on an unmodified Baileys socket against the WhatsApp server: people and state as in the
// product, the link a plain socket, so that a test can take the connection away and bring it back.

import type {
  AuthenticationState,
  UserFacingSocketConfig,
  WAMessageKey,
  WASocket,
} from '@whiskeysockets/baileys';
import { createContexts } from '../../../src/channels/whatsapp/context.ts';
import { createOutbox, type Outbox } from '../../../src/channels/whatsapp/outbox.ts';
import { createPeople } from '../../../src/channels/whatsapp/people.ts';
import { isPerson, parseJid, WHATSAPP } from '../../../src/channels/whatsapp/rules/jid.ts';
import type { WhatsAppConfig } from '../../../src/channels/whatsapp/settings.ts';
import { quietConsole } from '../../../src/channels/whatsapp/transport.ts';
import type { SendContext } from '../../../src/kernel/bus/bus.ts';
import { type ConfigInput, configSchema } from '../../../src/kernel/config/config.ts';
import { DeliveryError } from '../../../src/kernel/message/errors.ts';
import {
  type ChatId,
  DEFAULT_ACCOUNT,
  messageId,
  type NativeId,
} from '../../../src/kernel/message/ids.ts';
import type { ChatRef, OutboundMessage } from '../../../src/kernel/message/message.ts';
import { type Clock, systemClock } from '../../../src/lib/time/clock.ts';
import { createMemoryHost, type MemoryHost } from '../../support/memory-host.ts';
import { BaileysClient, linkedAuth } from '../../support/whatsapp-server/baileys-client.ts';
import type { Contact, Phone, WhatsAppServer } from '../../support/whatsapp-server/contract.ts';

type WhatsAppInput = NonNullable<NonNullable<ConfigInput['channels']>['whatsapp']>;

/** No wait before a message. */
export const UNPACED = {
  chatPerMinute: 1000,
  accountPerMinute: 1000,
  minGapMs: 0,
  maxGapMs: 0,
  identicalTexts: 1000,
};

export function settingsOf(input: WhatsAppInput = {}): WhatsAppConfig {
  const whatsapp = { pacing: UNPACED, ...input };
  return configSchema.parse({ channels: { whatsapp } }).channels.whatsapp;
}

export class OutboxRig implements AsyncDisposable {
  readonly server: WhatsAppServer;
  readonly phone: Phone;
  readonly clock: Clock;
  readonly host: MemoryHost;
  readonly paused = new Set<ChatId>();
  readonly unread = new Map<ChatId, WAMessageKey[]>();
  readonly #auth: AuthenticationState;
  readonly #quiet = quietConsole();
  readonly #options: Partial<UserFacingSocketConfig>;
  #settings = settingsOf();
  #client: BaileysClient | undefined;
  #attached: Disposable | undefined;
  #opened = Promise.withResolvers<WASocket>();
  #outbox: Outbox | undefined;

  private constructor(
    server: WhatsAppServer,
    phone: Phone,
    auth: AuthenticationState,
    clock: Clock,
    options: Partial<UserFacingSocketConfig>,
  ) {
    this.server = server;
    this.phone = phone;
    this.clock = clock;
    this.host = createMemoryHost(clock);
    this.#auth = auth;
    this.#options = options;
  }

  static async start(
    server: WhatsAppServer,
    options: {
      readonly clock?: Clock;
      readonly settings?: WhatsAppInput;
      readonly socket?: Partial<UserFacingSocketConfig>;
    } = {},
  ): Promise<OutboxRig> {
    const phone = await server.phone();
    const auth = await linkedAuth(server, phone);
    const clock = options.clock ?? systemClock;
    const rig = new OutboxRig(server, phone, auth, clock, options.socket ?? {});
    await rig.restart(options.settings);
    return rig;
  }

  get outbox(): Outbox {
    if (this.#outbox === undefined) throw new Error('not started');
    return this.#outbox;
  }

  /** As after a restart of the process: only the state and the credentials are left. */
  async restart(settings?: WhatsAppInput): Promise<void> {
    await this.disconnect();
    if (settings !== undefined) this.#settings = settingsOf(settings);
    const rig = this;
    this.#outbox = createOutbox({
      link: {
        open: (signal) => rig.#open(signal),
        get socket() {
          return rig.#client?.socket;
        },
      },
      people: this.people(),
      contexts: createContexts(this.host.state),
      isPaused: async (chat) => this.paused.has(chat),
      unread: async (chat) => {
        const keys = this.unread.get(chat) ?? [];
        this.unread.delete(chat);
        return keys;
      },
      settings: this.#settings,
      host: this.host,
      random: () => 0.5,
    });
    await this.connect();
  }

  people() {
    const { state, clock } = this.host;
    const directory = { otherOf: async () => undefined };
    return createPeople({ state, clock, log: this.host.log, directory, account: () => undefined });
  }

  async connect(): Promise<void> {
    const client = new BaileysClient(this.server, this.#auth, {
      getMessage: (key) => this.outbox.getMessage(key),
      cachedGroupMetadata: async () => undefined,
      ...this.#options,
    });
    this.#attached = this.outbox.attach(client.socket);
    await client.open();
    await this.phone.online();
    this.#client = client;
    this.#opened.resolve(client.socket);
  }

  async disconnect(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    this.#opened = Promise.withResolvers();
    await client?.[Symbol.asyncDispose]();
    this.#attached?.[Symbol.dispose]();
  }

  /** The server's side is gone; resolves when the client has noticed. */
  async cut(): Promise<void> {
    const client = this.#client;
    await this.phone.end({ kind: 'drop' });
    await client?.closed();
    await this.disconnect();
  }

  #open(signal: AbortSignal): Promise<WASocket> {
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      this.#opened.promise.then(resolve, reject);
    });
  }

  /** Whether a message waits for the server's word. */
  async isSending(): Promise<boolean> {
    const rows = await this.host.state.list('sent/');
    return rows.some(({ value }) => value.includes('"state":"sending"'));
  }

  /** Somebody who wrote before; resolves with their chat. */
  async friend(options?: { readonly name?: string }): Promise<[Contact, ChatRef]> {
    const contact = await this.server.contact(this.phone, options);
    const address = parseJid(`${contact.lid}@lid`);
    if (!isPerson(address)) throw new Error('unreachable');
    const { chat } = await this.people().meet({ address, role: 'wrote' });
    return [contact, refOf(chat)];
  }

  send(message: OutboundMessage, context: Partial<SendContext> = {}) {
    return this.outbox.send(message, contextOf(context));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.disconnect();
    this.#quiet[Symbol.dispose]();
  }
}

export const refOf = (chat: string): ChatRef => ({
  channel: WHATSAPP,
  account: DEFAULT_ACCOUNT,
  chat: chat as ChatId,
});

export const answer = (
  chat: ChatRef,
  markdown: string,
  rest: Partial<OutboundMessage> = {},
): OutboundMessage => ({ id: messageId('turn/0'), chat, markdown, ...rest });

export function contextOf(rest: Partial<SendContext> = {}): SendContext {
  return {
    signal: new AbortController().signal,
    attempt: 1,
    textAt: 0,
    sentParts: [],
    repeatsUnknown: false,
    requestBegins: async () => undefined,
    partSent: async () => undefined,
    ...rest,
  };
}

/** Notes what was reported as sent, and of this what as the end. */
export function partsNoted() {
  const parts: NativeId[] = [];
  const ends: NativeId[] = [];
  return {
    parts,
    ends,
    async partSent(id: NativeId, isLast?: boolean) {
      parts.push(id);
      if (isLast === true) ends.push(id);
    },
  };
}

/** What a send was refused with. */
export async function refusalOf(sending: Promise<unknown>): Promise<DeliveryError> {
  const error = await sending.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof DeliveryError) return error;
  throw new Error('no DeliveryError', { cause: error });
}
