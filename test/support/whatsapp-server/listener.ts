// An unmodified Baileys that keeps what it hears and what it sent, for tests of the people of the
// WhatsApp server.

import type {
  AuthenticationState,
  UserFacingSocketConfig,
  WAMessage,
} from '@whiskeysockets/baileys';
import { expect, vi } from 'vitest';
import { BaileysClient, linkedAuth } from './baileys-client.ts';
import type { Contact, Phone, WhatsAppServer } from './contract.ts';
import { contentOf } from './message-content.ts';

/** A client that keeps what it hears and what it sent. */
export class Listener extends BaileysClient {
  readonly heard: WAMessage[] = [];
  readonly sent = new Map<string, WAMessage['message']>();
  readonly #kinds: string[] = [];

  constructor(
    server: WhatsAppServer,
    auth: AuthenticationState,
    options: Partial<UserFacingSocketConfig> = {},
  ) {
    const sent = new Map<string, WAMessage['message']>();
    super(server, auth, {
      retryRequestDelayMs: 1,
      getMessage: async ({ id }) => sent.get(id ?? '') ?? undefined,
      ...options,
    });
    this.sent = sent;
    this.socket.ev.on('messages.upsert', ({ messages, type }) => {
      for (const message of messages) {
        if (message.key.fromMe && this.sent.has(message.key.id ?? '')) continue;
        this.heard.push(message);
        this.#kinds.push(type);
      }
    });
  }

  get kinds(): readonly string[] {
    return this.#kinds;
  }

  heardTexts(): readonly string[] {
    return this.heard.flatMap(({ message }) => textOf(message) ?? []);
  }

  async hears(text: string, times = 1): Promise<WAMessage> {
    const all = () => this.heard.filter(({ message }) => textOf(message) === text);
    await vi.waitFor(() => expect(all()).toHaveLength(times), { timeout: 45_000, interval: 5 });
    const last = all().at(-1);
    if (last === undefined) throw new Error('unreachable');
    return last;
  }

  async says(to: string, text: string): Promise<string> {
    const message = await this.socket.sendMessage(to, { text });
    const id = message?.key.id ?? '';
    this.sent.set(id, message?.message);
    return id;
  }
}

function textOf(message: WAMessage['message']): string | undefined {
  const content = contentOf(message ?? {});
  return content.kind === 'text' ? content.text : undefined;
}

type Acquainted = {
  readonly phone: Phone;
  readonly ben: Contact;
  readonly auth: AuthenticationState;
};

/** An owner with a linked device that is not connected yet, and a contact. */
export async function acquainted(server: WhatsAppServer): Promise<Acquainted> {
  const phone = await server.phone({ name: 'Ada' });
  const ben = await server.contact(phone, { name: 'Ben' });
  return { phone, ben, auth: await linkedAuth(server, phone) };
}

/** An unmodified client lets libsignal print its sessions. */
export function silenceConsole(): Disposable {
  const spies = (['info', 'warn', 'error'] as const).map((level) =>
    vi.spyOn(console, level).mockImplementation(() => undefined),
  );
  return {
    [Symbol.dispose]: () => {
      for (const spy of spies) spy.mockRestore();
    },
  };
}

export const chatWith = ({ lid }: Contact) => `${lid}@lid`;
export const eventually = (look: () => void | Promise<void>) =>
  vi.waitFor(look, { timeout: 45_000, interval: 5 });
