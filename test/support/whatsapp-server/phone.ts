// The phone as a test holds it: linking, connections and the queue here; its chats are the people's.

import type { LinkedAccount } from './account.ts';
import type { Contact, Ending, Phone, WriteOptions } from './contract.ts';
import type { Registrations } from './registrations.ts';
import type { PhoneChats } from './seams.ts';

const HELLO_MS = 45_000;
const REMOVED: Ending = { kind: 'stream_error', code: 401 };

export class TestPhone implements Phone {
  readonly number: string;
  readonly lid: string;
  readonly name: string;
  readonly counts: Phone['counts'];
  readonly outbound: Phone['outbound'];
  readonly #account: LinkedAccount;
  readonly #registrations: Registrations;
  readonly #chats: PhoneChats;

  constructor(account: LinkedAccount, registrations: Registrations, chats: PhoneChats) {
    this.number = account.number;
    this.lid = account.lid;
    this.name = account.name;
    this.counts = account.counts;
    this.outbound = account.outbound;
    this.#account = account;
    this.#registrations = registrations;
    this.#chats = chats;
  }

  scan(qr: string): Promise<void> {
    return this.#registrations.scan(this.#account, qr);
  }

  typesCode(code: string): Promise<void> {
    return this.#registrations.typeCode(this.#account, code, HELLO_MS);
  }

  get linked(): boolean {
    return this.#account.device !== undefined;
  }

  async unlink(): Promise<void> {
    this.#account.unlink();
    for (const socket of this.#account.sockets) await socket.end(REMOVED);
  }

  writesTo(contact: Contact, text: string): Promise<string> {
    return this.#chats.writesTo(contact, text);
  }

  writesToSelf(text: string, options?: WriteOptions): Promise<string> {
    return this.#chats.writesToSelf(text, options);
  }

  get selfChat(): Phone['selfChat'] {
    return this.#chats.selfChat;
  }

  get ownSent(): Phone['ownSent'] {
    return this.#chats.ownSent;
  }

  async online(timeoutMs?: number): Promise<void> {
    await this.#account.until(() => this.isOnline || undefined, 'the device is online', timeoutMs);
  }

  async offline(timeoutMs?: number): Promise<void> {
    const isOffline = () => !this.isOnline || undefined;
    await this.#account.until(isOffline, 'the device is offline', timeoutMs);
  }

  get isOnline(): boolean {
    return this.#account.connection !== undefined;
  }

  /** @throws where nobody is connected, by login or to ask for a code */
  async end(ending: Ending, phase: 'open' | 'opening' = 'open'): Promise<void> {
    if (phase === 'opening') {
      this.#account.refusalOnce = ending;
      return;
    }
    const asking = this.#registrations.askingFor(this.#account);
    const socket = this.#account.sockets.at(-1) ?? asking?.connection;
    if (socket === undefined) throw new Error('there is no connection to end');
    await socket.end(ending);
  }

  refuseLogins(ending: Ending | undefined): void {
    this.#account.refusal = ending;
  }

  get queued(): number {
    return this.#account.queue.length;
  }

  wantsAllPreKeys(wanted: boolean): void {
    this.#account.wantsAllPreKeys = wanted;
  }

  get preKeys(): number {
    return this.#account.device?.preKeys.size ?? 0;
  }

  withholdsOfflineMarker(withheld: boolean): void {
    this.#account.withholdsMarker = withheld;
  }
}
