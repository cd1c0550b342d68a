// A person who writes with an account: their side of the chat, told by what their phone could
// decrypt. Stanzas come by messages.ts and receipts.ts, groups are in groups.ts.

import type { proto } from '@whiskeysockets/baileys';
import { ChatView } from './chat-view.ts';
import type { Contact, SeenMessage, WriteOptions } from './contract.ts';
import { type OutgoingMessage, sealedFor } from './device-stanzas.ts';
import { corrupted } from './faults.ts';
import { createHandset, type Handset } from './handset.ts';
import { contentOf, newMessageId, textMessage } from './message-content.ts';
import type { Author, Retry } from './receipts.ts';
import type { Account } from './seams.ts';
import type { Letter, SentMail } from './sent-mail.ts';
import type { SavedSignalDevice } from './signal-device.ts';
import { BY_LID, directMessage, type Identity, lidJid, numberJid } from './stanzas.ts';

type PersonDeps = {
  readonly account: Account;
  readonly who: Identity;
  readonly now: () => number;
  /** Its phone at an earlier server. */
  readonly saved: SavedSignalDevice | undefined;
  /** Where the account has no linked device: its phone alone gets the message. */
  readonly leaveToPhone: (letter: Letter & { readonly at: number }) => void;
};

export class Person implements Contact, Author {
  readonly number: string;
  readonly lid: string;
  readonly name: string;
  readonly account: Account;
  readonly typing: string[] = [];
  readonly #deps: PersonDeps;
  readonly #handsets = new Map<number, Handset>();
  readonly #phone: Handset;
  readonly #view: ChatView;
  readonly #junk = new Set<string>();
  readonly #delivered = new Set<string>();
  readonly #read = new Set<string>();
  #retriesAsked = 0;
  #hasLeft = false;

  constructor(deps: PersonDeps) {
    this.number = deps.who.number;
    this.lid = deps.who.lid;
    this.name = deps.who.name;
    this.account = deps.account;
    this.#deps = deps;
    this.#view = new ChatView(deps.now);
    this.#phone = this.handset(0, deps.saved);
  }

  get devices(): readonly number[] {
    return [...this.#handsets.keys()];
  }

  /** Made where the person had no such device. */
  handset(device: number, saved?: SavedSignalDevice): Handset {
    const known = this.#handsets.get(device);
    if (known !== undefined) return known;
    const { account, now } = this.#deps;
    const made = createHandset(account, { device, now, confirms: true, saved });
    this.#handsets.set(device, made);
    return made;
  }

  async writes(text: string, options: WriteOptions = {}): Promise<string> {
    const at = options.at ?? this.#deps.now();
    const letter = letterOf(this.account, this, text, { ...options, at });
    if (this.account.device === undefined) this.#deps.leaveToPhone({ ...letter, at });
    else await this.handset(options.device ?? 0).mail.post(letter);
    return letter.id;
  }

  async writesJunk(count: number): Promise<void> {
    const at = this.#deps.now();
    const enc = await this.#phone.line.seal(textMessage('junk'));
    for (let nth = 0; nth < count; nth += 1) {
      const { id, envelope } = letterOf(this.account, this, '', { at });
      this.#junk.add(id);
      await this.account.deliver(corrupted(envelope([enc])));
    }
  }

  replay(id: string): Promise<void> {
    return this.#mailWith(id).replay(id);
  }

  sendAgain(id: string): Promise<void> {
    return this.#mailWith(id).sendAgain(id);
  }

  /** The message that it sent under this id. */
  wrote(id: string): proto.IMessage | undefined {
    return this.#mailWith(id).message(id);
  }

  #mailWith(id: string): SentMail {
    const sender = [...this.#handsets.values()].find(({ mail }) => mail.has(id));
    return (sender ?? this.#phone).mail;
  }

  get seen(): readonly SeenMessage[] {
    return this.#view.seen;
  }

  sees(match: (message: SeenMessage) => boolean, timeoutMs?: number): Promise<SeenMessage> {
    return this.#view.sees(match, timeoutMs);
  }

  get readIds(): readonly string[] {
    return [...this.#read];
  }

  get deliveredIds(): readonly string[] {
    return [...this.#delivered];
  }

  asksAgain(id: string): Promise<void> {
    return this.#phone.reader.asksAgain(id);
  }

  get undecryptable(): number {
    return this.#phone.reader.undecryptable;
  }

  get retriesAsked(): number {
    return this.#retriesAsked;
  }

  losesSession(): Promise<void> {
    return this.#phone.line.lose();
  }

  leaves(): void {
    this.#hasLeft = true;
  }

  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** A message of the linked device in the chat of the two; what the phone can read is shown. */
  async receives(message: OutgoingMessage): Promise<void> {
    const { id, chat } = message;
    for (const { device, reader } of this.#handsets.values()) {
      const sealed = sealedFor(message, this, device);
      if (sealed.length === 0) continue;
      const from = chat.endsWith('@lid') ? lidJid(this, device) : numberJid(this, device);
      await reader.read({ id, sealed, receiptFrom: { from } }, (content: proto.Message) => {
        if (device === 0) this.#view.arrived(id, contentOf(content));
      });
    }
  }

  /** The owner of the account wrote by hand. */
  getsFromOwner(id: string, text: string): void {
    this.#view.arrived(id, { kind: 'text', text, message: textMessage(text) });
  }

  acknowledged(what: 'delivered' | 'read', ids: readonly string[]): void {
    const noted = what === 'read' ? this.#read : this.#delivered;
    for (const id of ids) noted.add(id);
  }

  async answerRetry(device: number, retry: Retry): Promise<void> {
    this.#retriesAsked += 1;
    if (this.#junk.has(retry.id)) return;
    return this.handset(device).mail.answerRetry(retry);
  }
}

function letterOf(
  account: Account,
  from: Identity,
  text: string,
  options: WriteOptions & { readonly at: number },
): Letter {
  const { at, addressing = BY_LID, id = newMessageId(), quoting, device = 0 } = options;
  const author = addressing.by === 'lid' ? lidJid(account) : numberJid(account);
  return {
    id,
    message: options.message ?? textMessage(text, quoting && { ...quoting, author }),
    envelope: (content) => directMessage({ id, at, from, device, addressing }, content),
  };
}
