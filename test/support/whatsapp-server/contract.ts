// CONTRACT of the WhatsApp Web server for tests: a loopback server that an unmodified Baileys cannot
// tell from the real one in what we use, the phone an account is linked from, and the people on the
// other side with real Signal sessions. What it cannot model is said in its README section of
// docs/channels/whatsapp.md.

import type { proto } from '@whiskeysockets/baileys';
import type { PhoneFiles } from './media-host.ts';
import type { LinkedDevice } from './seams.ts';
import type { SavedSignalDevice } from './signal-device.ts';

export type Addressing =
  /** `from` is a LID; `withAlt`: the phone number comes with it. */
  | { readonly by: 'lid'; readonly withAlt: boolean }
  /** `from` is a phone number; `withAlt`: the LID comes with it. */
  | { readonly by: 'number'; readonly withAlt: boolean };

/** How the server ends or refuses a connection. */
export type Ending =
  | { readonly kind: 'stream_error'; readonly code: number }
  /** `stream:error` with a `conflict` child: another client took the session over. */
  | { readonly kind: 'conflict' }
  | { readonly kind: 'failure'; readonly reason: number }
  /** The websocket is closed or its TCP connection dropped. */
  | { readonly kind: 'close' }
  | { readonly kind: 'drop' }
  | { readonly kind: 'stream_end' }
  /** The connection stays, nothing is answered any more. */
  | { readonly kind: 'silence' };

/** What happens to one stanza on its way; the first matching rule is used up unless `times` says more. */
export type Fault = {
  /** Stanzas to our client (`down`) or from it (`up`). */
  readonly direction: 'down' | 'up';
  /** Tag, and where given the type attribute or first child's tag, e.g. `message`, `ack`, `receipt`, `iq usync`. */
  readonly stanza: string;
  readonly times?: number;
  readonly effect:
    | { readonly kind: 'drop' }
    | { readonly kind: 'duplicate' }
    | { readonly kind: 'delay'; readonly ms: number }
    /** Held back until the next stanza of that kind, or of the kind `behind`, has passed. */
    | { readonly kind: 'reorder'; readonly behind?: string }
    /** `down` only: in a compressed frame, which a client unpacks while it reads on. */
    | { readonly kind: 'compress' }
    /** `up` messages only: answered with `ack error=<code>` and not delivered. */
    | { readonly kind: 'nack'; readonly code: number }
    /** `down` messages only: one byte of the ciphertext is changed. */
    | { readonly kind: 'corrupt' };
};

/** A message as a person reads it, decrypted on their side. */
export type SeenMessage = {
  readonly id: string;
  readonly text: string;
  /** What it is besides its text, e.g. a file. */
  readonly message: proto.IMessage;
  /** Texts that edits replaced, oldest first. */
  readonly earlier: readonly string[];
  readonly revoked: boolean;
  /** Times the same id arrived; 2 where it was sent again. */
  readonly arrivals: number;
  /** Server time of its first arrival, epoch milliseconds. */
  readonly at: number;
};

export type WriteOptions = {
  readonly addressing?: Addressing;
  /** One the person linked to their phone, which is 0: it stands in the jid, and has sessions of its own. */
  readonly device?: number;
  readonly id?: string;
  /** Epoch milliseconds of the server's timestamp; seconds are what travels. */
  readonly at?: number;
  readonly quoting?: { readonly id: string; readonly text: string };
  /** Sent in place of the text, e.g. a file. */
  readonly message?: proto.IMessage;
};

/** A person with one phone, in 1:1 chats and groups. */
export interface Contact {
  /** International, digits only. */
  readonly number: string;
  readonly lid: string;
  readonly name: string;
  /**
   * Writes to the account; resolves with the message id once the server took it. It is queued while
   * the linked device is offline; where none is linked, it is history that the next one gets.
   */
  writes(text: string, options?: WriteOptions): Promise<string>;
  /** Messages that nobody can read, each with an id of its own; asked for them again, nothing comes. */
  writesJunk(count: number): Promise<void>;
  /** The same stanza, same id and same ciphertext, is delivered again. */
  replay(id: string): Promise<void>;
  /** The same message encrypted anew, as after a retry receipt or a history replay. */
  sendAgain(id: string): Promise<void>;
  /** What stands in the chat with the linked account, in order of arrival. */
  readonly seen: readonly SeenMessage[];
  /** Resolves with the first seen message that matches; looks at those already seen as well. */
  sees(match: (message: SeenMessage) => boolean, timeoutMs?: number): Promise<SeenMessage>;
  /** `composing` and `paused` as they came. */
  readonly typing: readonly string[];
  /** Ids of own messages the linked account marked as read, and as delivered. */
  readonly readIds: readonly string[];
  readonly deliveredIds: readonly string[];
  /** Asks for a message again, as a phone does that could not decrypt it. */
  asksAgain(id: string): Promise<void>;
  /** Messages of the linked account this side could not decrypt. */
  readonly undecryptable: number;
  /** How often the linked device could not read a message and asked for it again. */
  readonly retriesAsked: number;
  /** Loses its Signal session with the linked account, so that its next message cannot be read. */
  losesSession(): Promise<void>;
  /** From now on the server knows no such account: no devices, no pre-keys. */
  leaves(): void;
}

/** The phone of the account that gets linked, and its linked devices. */
export interface Phone {
  readonly number: string;
  readonly lid: string;
  readonly name: string;
  /** Reads the QR text as the phone's camera does; resolves when the device has signed. */
  scan(qr: string): Promise<void>;
  /** The person types the 8 characters shown by our program; resolves when the device has signed. */
  typesCode(code: string): Promise<void>;
  /** Rejects the pairing: the QR or code is refused by the phone. */
  readonly linked: boolean;
  /** Removes the linked device in the phone's settings: it gets 401. */
  unlink(): Promise<void>;
  /** The owner types in a chat by hand; the linked device gets it as its own message. */
  writesTo(contact: Contact, text: string): Promise<string>;
  /** The owner writes into the chat with themself. */
  writesToSelf(text: string, options?: WriteOptions): Promise<string>;
  /** What the linked device sent into the self chat, as the phone shows it. */
  readonly selfChat: readonly SeenMessage[];
  /** What the linked device sent to others, as the phone shows it. */
  readonly ownSent: readonly SeenMessage[];
  /** Resolves when the linked device is logged in and asked for its messages. */
  online(timeoutMs?: number): Promise<void>;
  offline(timeoutMs?: number): Promise<void>;
  readonly isOnline: boolean;
  /** Ends or refuses: the connection under way (`open`), or the next one before its login is confirmed (`opening`). */
  end(ending: Ending, phase?: 'open' | 'opening'): Promise<void>;
  /** Every next login is refused so until lifted. */
  refuseLogins(ending: Ending | undefined): void;
  /** Stanzas waiting for the linked device. */
  readonly queued: number;
  /** The offline marker is never sent (W03). */
  withholdsOfflineMarker(withheld: boolean): void;
  /** A new device is told that none of its pre-keys are there, and uploads all 812 instead of a few. */
  wantsAllPreKeys(wanted: boolean): void;
  /** Pre-keys of the linked device that were not given away yet. */
  readonly preKeys: number;
  /** Logins, registrations and the largest number of connections at the same time. */
  readonly counts: {
    readonly logins: number;
    readonly registrations: number;
    readonly atOnce: number;
  };
  /** Times between the messages the linked device sent, with their chats: for pacing. */
  readonly outbound: readonly {
    readonly id: string;
    readonly to: string;
    readonly at: number;
    readonly acked: boolean;
  }[];
}

export interface Group {
  readonly jid: string;
  readonly members: readonly Contact[];
  says(
    member: Contact,
    text: string,
    options?: Pick<WriteOptions, 'addressing' | 'device' | 'at' | 'message'> & {
      /** Jids of those whom the text names, as `@` and their digits. */
      readonly mentions?: readonly string[];
      readonly quoting?: { readonly id: string; readonly text: string; readonly author: string };
    },
  ): Promise<string>;
  /** Somebody joins, of which the server tells the linked device. */
  joined(member: Contact): Promise<void>;
  /** An admin removes the account, of which the server tells the linked device. */
  removesAccount(): Promise<void>;
  /** How often the linked device asked who is in it. */
  readonly asked: number;
  seenBy(member: Contact): readonly SeenMessage[];
}

export type PhoneOptions = {
  readonly number?: string;
  readonly name?: string;
  readonly saved?: SavedPhone;
};

/** A phone and its linked device as they stood at an earlier server. */
export type SavedPhone = {
  readonly phone: SavedSignalDevice;
  readonly linked: Omit<LinkedDevice, 'preKeys'> & {
    readonly preKeys: readonly (readonly [number, Uint8Array])[];
  };
};

export type ContactOptions = {
  readonly number?: string;
  readonly name?: string;
  /** The phone of this person as it stood at an earlier server. */
  readonly saved?: SavedSignalDevice;
};

export interface WhatsAppServer extends AsyncDisposable {
  /** `ws://127.0.0.1:PORT/ws/chat`. */
  readonly url: string;
  /** Root public key in hex: `WA_CERT_DETAILS.PUBLIC_KEY` of a client that trusts this server. */
  readonly rootKey: string;
  /** PEM of the media host's certificate: `tls.setDefaultCACertificates` of a client that trusts it. */
  readonly mediaCertificate: string;
  phone(options?: PhoneOptions): Promise<Phone>;
  /** A person who can write with this account. */
  contact(phone: Phone, options?: ContactOptions): Promise<Contact>;
  group(phone: Phone, members: readonly Contact[], subject?: string): Promise<Group>;
  /** Puts a ciphertext on the media host, as a phone does. */
  keep(ciphertext: Buffer): Promise<{ readonly mediaUrl: string; readonly directPath: string }>;
  /** What was put there is gone, as after some weeks; the phones lose it too unless named otherwise. */
  forgetMedia(phone?: PhoneFiles): void;
  /** The media host takes nothing while it is true; an address: it redirects uploads to it. */
  refuseUploads(refused: boolean | URL): void;
  fault(fault: Fault): void;
  clearFaults(): void;
  /** Moves the server's clock: message timestamps, not its timers. Epoch milliseconds; undefined: the real time. */
  setTime(at: number | undefined): void;
  /**
   * Stanzas that no handler knew. Disposing throws when there are any, so that a new version of the
   * client shows its new stanzas as failed tests.
   */
  readonly unhandled: readonly string[];
}
