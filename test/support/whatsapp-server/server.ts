// A WhatsApp Web server on 127.0.0.1 for tests: the sockets and what every account shares. What a
// connection does is in login.ts and registration.ts, who writes with whom is the people's.

import type { AddressInfo } from 'node:net';
import type { BinaryNode } from '@whiskeysockets/baileys';
import { WebSocketServer } from 'ws';
import { LinkedAccount } from './account.ts';
import { outline } from './answers.ts';
import { createNoiseIdentity } from './certificate.ts';
import { Connection, type Session } from './connection.ts';
import type {
  Contact,
  ContactOptions,
  Fault,
  Group,
  Phone,
  PhoneOptions,
  WhatsAppServer,
} from './contract.ts';
import { FaultScript } from './faults.ts';
import { beginLogin } from './login.ts';
import type { PhoneFiles } from './media-host.ts';
import type { ClientHello } from './noise-responder.ts';
import { createPeople } from './people.ts';
import { TestPhone } from './phone.ts';
import { preKeyHandler } from './pre-keys.ts';
import { queryHandlers } from './queries.ts';
import { Registrations } from './registrations.ts';
import type { People, Plumbing, StanzaHandler } from './seams.ts';

const HOST = '127.0.0.1';
const PATH = '/ws/chat';
const FIRST_NUMBER = 15_550_100_000;
const FIRST_LID = 100_000_000_000_000;

export async function startWhatsAppServer(): Promise<WhatsAppServer> {
  const server = new LoopbackServer();
  await server.listen();
  return server;
}

class LoopbackServer implements WhatsAppServer, Plumbing {
  readonly unhandled: string[] = [];
  readonly #violations: string[] = [];
  readonly #identity = createNoiseIdentity();
  readonly #faults = new FaultScript();
  readonly #sockets = new WebSocketServer({ host: HOST, port: 0, path: PATH });
  readonly #connections = new Set<Connection>();
  readonly #accounts: LinkedAccount[] = [];
  readonly #taken = new Set<string>();
  readonly #people: People;
  readonly #handlers: readonly StanzaHandler[];
  readonly #registrations: Registrations;
  #assigned = 0;
  #stanzas = 0;
  #time: number | undefined;

  constructor() {
    this.#people = createPeople(this);
    this.#handlers = [
      ...this.#people.handlers,
      preKeyHandler((text) => this.violation(text)),
      ...queryHandlers(this.#people.directory, this),
    ];
    this.#registrations = new Registrations({
      plumbing: this,
      account: (user) => this.account(user),
      identity: (account) => this.#people.phoneIdentity(account),
      paired: (account) => this.#people.paired(account),
    });
    this.#sockets.on('connection', (socket) => {
      const connection = new Connection(socket, {
        identity: this.#identity,
        faults: this.#faults,
        begin: (begun, hello) => this.#begin(begun, hello),
        unhandled: (stanza) => this.#unknown(stanza),
        violation: (text) => this.violation(text),
      });
      this.#connections.add(connection);
      socket.on('close', () => this.#connections.delete(connection));
    });
  }

  listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#sockets.once('listening', resolve);
      this.#sockets.once('error', reject);
    });
  }

  get url(): string {
    return `ws://${HOST}:${(this.#sockets.address() as AddressInfo).port}${PATH}`;
  }

  get rootKey(): string {
    return Buffer.from(this.#identity.rootKey).toString('hex');
  }

  keep(ciphertext: Buffer) {
    return this.#people.keep(ciphertext);
  }

  forgetMedia(phone?: PhoneFiles): void {
    this.#people.forgetMedia(phone);
  }

  refuseUploads(refused: boolean | URL): void {
    this.#people.refuseUploads(refused);
  }

  get mediaCertificate(): string {
    return this.#people.mediaCertificate;
  }

  async phone(options: PhoneOptions = {}): Promise<Phone> {
    const who = this.assignNumber(options.number);
    const named = { ...who, name: options.name ?? 'Owner' };
    const account = new LinkedAccount(this, named, options.saved);
    this.#accounts.push(account);
    return new TestPhone(account, this.#registrations, this.#people.chats(account));
  }

  contact(phone: Phone, options: ContactOptions = {}): Promise<Contact> {
    return this.#people.contact(this.#accountOf(phone), options);
  }

  group(phone: Phone, members: readonly Contact[], subject?: string): Promise<Group> {
    return this.#people.group(this.#accountOf(phone), members, subject);
  }

  fault(fault: Fault): void {
    this.#faults.arm(fault);
  }

  clearFaults(): void {
    this.#faults.clear();
  }

  setTime(at: number | undefined): void {
    this.#time = at;
  }

  now(): number {
    return this.#time ?? Date.now();
  }

  stanzaId(): string {
    this.#stanzas += 1;
    return `srv-${this.#stanzas}`;
  }

  assignNumber(wanted?: string): { readonly number: string; readonly lid: string } {
    const number = wanted ?? this.#freeNumber();
    if (this.#taken.has(number)) throw new Error(`the number ${number} is taken`);
    this.#taken.add(number);
    this.#assigned += 1;
    return { number, lid: String(FIRST_LID + this.#assigned) };
  }

  #freeNumber(): string {
    for (let next = FIRST_NUMBER + this.#assigned; ; next += 1) {
      if (!this.#taken.has(String(next))) return String(next);
    }
  }

  account(user: string): LinkedAccount | undefined {
    return this.#accounts.find(({ number, lid }) => number === user || lid === user);
  }

  violation(text: string): void {
    this.#violations.push(text);
  }

  /** @throws Error naming every stanza no handler knew and every broken rule */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#faults.stop();
    for (const connection of this.#connections) connection.cut();
    await new Promise((resolve) => this.#sockets.close(resolve));
    await this.#people[Symbol.asyncDispose]();
    const wrong = [
      ...this.unhandled.map((stanza) => `unhandled stanza ${stanza}`),
      ...this.#violations,
    ];
    if (wrong.length > 0) throw new Error(`the WhatsApp server saw: ${wrong.join('; ')}`);
  }

  #accountOf(phone: Phone): LinkedAccount {
    const account = this.account(phone.number);
    if (account === undefined) throw new Error('a phone of another server');
    return account;
  }

  #begin(connection: Connection, hello: ClientHello): Session {
    const { username } = hello.payload;
    if (hello.payload.devicePairingData) return this.#registrations.begin(connection, hello);
    const account = this.account(String(username));
    return beginLogin(
      {
        plumbing: this,
        handlers: this.#handlers,
        online: (online) => this.#people.online(online),
      },
      account,
      connection,
      hello,
    );
  }

  #unknown(stanza: BinaryNode): void {
    this.unhandled.push(outline(stanza));
  }
}
