// An unmodified Baileys with its credentials in memory, for tests of the server itself: links,
// logs in, and says how a connection ended.

import {
  type AuthenticationState,
  type ConnectionState,
  initAuthCreds,
  makeWASocket,
  type proto,
  type SignalDataTypeMap,
  type UserFacingSocketConfig,
  type WASocket,
} from '@whiskeysockets/baileys';
import { pino } from 'pino';
import type { Phone, WhatsAppServer } from './contract.ts';

const SILENT = pino({ level: 'silent' });

export function memoryAuth(): AuthenticationState {
  const rows = new Map<string, unknown>();
  return {
    creds: initAuthCreds(),
    keys: {
      get: async <T extends keyof SignalDataTypeMap>(type: T, ids: string[]) => {
        const found: { [id: string]: SignalDataTypeMap[T] } = {};
        for (const id of ids) {
          const value = rows.get(`${type}/${id}`);
          if (value !== undefined) found[id] = value as SignalDataTypeMap[T];
        }
        return found;
      },
      set: async (data) => {
        for (const [type, values] of Object.entries(data)) {
          for (const [id, value] of Object.entries(values ?? {})) {
            if (value === null) rows.delete(`${type}/${id}`);
            else rows.set(`${type}/${id}`, value);
          }
        }
      },
    },
  };
}

/** One socket and everything it reported. */
export class BaileysClient implements AsyncDisposable {
  readonly socket: WASocket;
  readonly updates: Partial<ConnectionState>[] = [];
  /** Texts of the messages it got, of either type, in the order they were reported. */
  readonly reads: string[] = [];
  readonly #watchers = new Set<() => void>();
  #histories = 0;

  constructor(
    server: WhatsAppServer,
    auth: AuthenticationState,
    options: Partial<UserFacingSocketConfig> = {},
  ) {
    this.socket = makeWASocket({
      auth,
      logger: SILENT,
      waWebSocketUrl: server.url,
      markOnlineOnConnect: false,
      syncFullHistory: false,
      ...options,
    });
    this.socket.ev.on('creds.update', (update) => void Object.assign(auth.creds, update));
    this.socket.ev.on('connection.update', (update) => {
      this.updates.push(update);
      this.#changed();
    });
    this.socket.ev.on('messages.upsert', ({ messages }) => {
      for (const { message } of messages) if (message) this.reads.push(textOf(message));
      this.#changed();
    });
    this.socket.ev.on('messaging-history.set', () => {
      this.#histories += 1;
      this.#changed();
    });
  }

  #changed(): void {
    for (const look of this.#watchers) look();
  }

  /** Resolves with what is looked for in any update, past ones too. */
  sees<T>(look: (update: Partial<ConnectionState>) => T | undefined): Promise<T> {
    return this.#until(() => this.updates.map(look).find((found) => found !== undefined));
  }

  /** The text was reported, and the server knows that it came. */
  async readsText(text: string): Promise<void> {
    await this.#until(() => this.reads.includes(text) || undefined);
    await this.roundTrip();
  }

  /** The first sync came, and the server knows it. */
  async history(): Promise<void> {
    await this.#until(() => this.#histories > 0 || undefined);
    await this.roundTrip();
  }

  /** What either side sent before has come. */
  async roundTrip(): Promise<void> {
    await this.socket.fetchBlocklist();
  }

  #until<T>(find: () => T | undefined): Promise<T> {
    const first = find();
    if (first !== undefined) return Promise.resolve(first);
    return new Promise((resolve) => {
      const watch = () => {
        const found = find();
        if (found === undefined) return;
        this.#watchers.delete(watch);
        resolve(found);
      };
      this.#watchers.add(watch);
    });
  }

  qr(): Promise<string> {
    return this.sees(({ qr }) => qr);
  }

  async open(): Promise<this> {
    await this.sees(({ connection }) => (connection === 'open' ? true : undefined));
    return this;
  }

  /** Baileys' close code and words. */
  closed(): Promise<{ readonly code: number | undefined; readonly message: string }> {
    return this.sees(({ connection, lastDisconnect }) => {
      if (connection !== 'close') return undefined;
      const error = lastDisconnect?.error;
      const output = error !== undefined && 'output' in error ? error.output : undefined;
      return { code: statusOf(output), message: error?.message ?? '' };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.socket.end(undefined);
  }
}

function textOf(message: proto.IMessage): string {
  return message.conversation ?? message.extendedTextMessage?.text ?? '';
}

function statusOf(output: unknown): number | undefined {
  if (typeof output !== 'object' || output === null || !('statusCode' in output)) return undefined;
  return typeof output.statusCode === 'number' ? output.statusCode : undefined;
}

/** Links by QR; the credentials are then those of a linked device that is not connected. */
export async function linkedAuth(
  server: WhatsAppServer,
  phone: Phone,
): Promise<AuthenticationState> {
  const auth = memoryAuth();
  await using client = new BaileysClient(server, auth);
  await phone.scan(await client.qr());
  await client.closed();
  return auth;
}
