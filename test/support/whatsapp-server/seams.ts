// What the parts of the WhatsApp server know of each other: the plumbing (noise, login, queries,
// faults) carries stanzas for the people (Signal devices, messages, receipts, groups, media).

import type { BinaryNode } from '@whiskeysockets/baileys';
import type { Ending } from './contract.ts';

/** The linked device as the server stored it at pairing and key upload; it survives reconnects. */
export type LinkedDevice = {
  readonly jid: string;
  readonly lidJid: string;
  readonly noiseKey: Uint8Array;
  readonly identityKey: Uint8Array;
  registrationId: number;
  signedPreKey: { readonly id: number; readonly key: Uint8Array; readonly signature: Uint8Array };
  /** Not yet handed out; each is given away once. */
  readonly preKeys: Map<number, Uint8Array>;
};

/** One logged-in connection of the linked device. `send` passes the faults. */
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
  device: LinkedDevice | undefined;
  /** The connection that asked for its messages (passive -> active); undefined while offline. */
  connection: DeviceConnection | undefined;
  /** Stanzas not yet receipted, oldest first; sent with `offline="1"` at the next login. */
  readonly queue: BinaryNode[];
  /** Sends now or, while offline, at the next login; kept until a receipt drops it. */
  deliver(stanza: BinaryNode): Promise<void>;
  /** The receipt or ack came: not delivered again. */
  settle(stanzaId: string): void;
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

/** What the people part gives the plumbing. */
export interface People {
  readonly directory: Directory;
  readonly handlers: readonly StanzaHandler[];
  /** A device was paired: the phone prepares its first sync (app state keys, bootstrap history). */
  paired(account: Account): Promise<void>;
  /** The phone's Signal identity: signs the device and encrypts peer messages. */
  phoneIdentity(account: Account): { readonly public: Uint8Array; readonly private: Uint8Array };
}
