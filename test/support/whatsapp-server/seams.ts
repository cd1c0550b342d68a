// What the parts of the WhatsApp server know of each other: the plumbing (noise, login, queries,
// faults) carries stanzas for the people (Signal devices, messages, receipts, groups, media).

import type { BinaryNode } from '@whiskeysockets/baileys';
import type { Contact, ContactOptions, Ending, Group, Phone } from './contract.ts';
import type { PhoneFiles } from './media-host.ts';
import type { SavedSignalDevice } from './signal-device.ts';

/** The linked device as the server stored it at pairing and key upload; it survives reconnects. */
export type LinkedDevice = {
  /** Device number, never 0: that is the phone. */
  readonly id: number;
  readonly jid: string;
  readonly lidJid: string;
  readonly noiseKey: Uint8Array;
  readonly identityKey: Uint8Array;
  registrationId: number;
  signedPreKey: { readonly id: number; readonly key: Uint8Array; readonly signature: Uint8Array };
  /** Not yet handed out; each is given away once. */
  readonly preKeys: Map<number, Uint8Array>;
};

/**
 * One logged-in connection of the linked device. `send` passes the faults; a stanza that a fault
 * delays or holds back does not hold up the caller.
 */
export interface DeviceConnection {
  readonly account: Account;
  send(stanza: BinaryNode): Promise<void>;
  end(ending: Ending): Promise<void>;
}

/** An account with its phone, as the plumbing keeps it. */
export interface Account {
  readonly number: string;
  readonly lid: string;
  readonly name: string;
  /** Its phone at an earlier server. */
  readonly saved: SavedSignalDevice | undefined;
  device: LinkedDevice | undefined;
  /** A device without pre-keys is told so. */
  readonly wantsAllPreKeys: boolean;
  /** The connection that asked for its messages (passive -> active); undefined while offline. */
  connection: DeviceConnection | undefined;
  /** Stanzas not yet receipted, oldest first; sent with `offline="1"` at the next login. */
  readonly queue: BinaryNode[];
  /** Sends now or, while offline, at the next login; kept until a receipt drops it. */
  deliver(stanza: BinaryNode): Promise<void>;
  /**
   * The receipt or ack came: not delivered again. The oldest of that tag and id goes: a message that
   * was encrypted anew stands in the queue beside its first version until each was answered.
   */
  settle(tag: string, stanzaId: string): void;
  /**
   * One pre-key of the linked device, given away once; the device is told when few are left.
   * Use this and not `device.preKeys`.
   */
  takePreKey(): { readonly id: number; readonly key: Uint8Array } | undefined;
}

/** Handles a stanza from the linked device; false: not mine. */
export type StanzaHandler = (stanza: BinaryNode, from: DeviceConnection) => Promise<boolean>;

/** What a person's device offers to whoever wants to write to it; one pre-key is used up per call. */
export type KeyBundle = {
  readonly registrationId: number;
  readonly identityKey: Uint8Array;
  readonly signedPreKey: {
    readonly id: number;
    readonly key: Uint8Array;
    readonly signature: Uint8Array;
  };
  readonly preKey: { readonly id: number; readonly key: Uint8Array } | undefined;
};

/** Everybody the server knows, the phones among them: answers usync and key queries. */
export interface Directory {
  /** By number or LID, digits; undefined: no such account. */
  find(
    user: string,
  ):
    | { readonly number: string; readonly lid: string; readonly devices: readonly number[] }
    | undefined;
  keyBundle(user: string, device: number): Promise<KeyBundle | undefined>;
}

/** What the plumbing gives the people: `createPeople(plumbing: Plumbing): People` in `people.ts`. */
export interface Plumbing {
  /** The server's clock, epoch milliseconds; `setTime` moves it. */
  now(): number;
  /** A fresh id for a stanza of the server (not a message id). */
  stanzaId(): string;
  /** A number (the wanted one, or one nobody has) and a LID that nobody has. @throws where the number is taken */
  assignNumber(wanted?: string): { readonly number: string; readonly lid: string };
  /** By number or LID, digits. */
  account(user: string): Account | undefined;
  /** A stanza that breaks a rule: the server's dispose throws with all of these. */
  violation(text: string): void;
}

/** What the people part knows of a phone; the rest of `Phone` is the plumbing's. */
export type PhoneChats = Pick<Phone, 'writesTo' | 'writesToSelf' | 'selfChat' | 'ownSent'>;

/** What the people part gives the plumbing. */
export interface People extends AsyncDisposable {
  chats(account: Account): PhoneChats;
  contact(account: Account, options: ContactOptions): Promise<Contact>;
  group(account: Account, members: readonly Contact[], subject: string | undefined): Promise<Group>;
  /** Contacts and the accounts' phones (device 0); the plumbing adds the linked device of an account. */
  readonly directory: Directory;
  /**
   * Asked in order before the plumbing's own. They take: message, receipt, ack, chatstate, presence
   * with `to`, iq w:g2, iq w:m. The plumbing nacks messages by fault before they come here, and
   * keeps `Phone.outbound` from the messages and acks that pass.
   */
  readonly handlers: readonly StanzaHandler[];
  /** A device was paired: the phone owes it the first sync (app state keys, bootstrap history). */
  paired(account: Account): Promise<void>;
  /**
   * The device asked for its messages; called once per login, after the queue and the offline
   * marker were sent. An owed first sync goes out now: history that comes before the marker leaves
   * Baileys waiting 20 s for it.
   */
  online(account: Account): Promise<void>;
  /** The phone's Signal identity: signs the device and encrypts peer messages. */
  phoneIdentity(account: Account): { readonly public: Uint8Array; readonly private: Uint8Array };
  /** PEM of the media host's certificate, for `tls.setDefaultCACertificates` of a client. */
  readonly mediaCertificate: string;
  keep(ciphertext: Buffer): Promise<{ readonly mediaUrl: string; readonly directPath: string }>;
  forgetMedia(phone?: PhoneFiles): void;
  refuseUploads(refused: boolean | URL): void;
}
