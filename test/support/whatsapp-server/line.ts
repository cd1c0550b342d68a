// The Signal sessions between one device of a person and the linked device of an account: seals what
// goes there, opens what comes, begins anew when a side lost its session.

import type { BinaryNode, proto } from '@whiskeysockets/baileys';
import type { Account, KeyBundle, LinkedDevice } from './seams.ts';
import { type SavedSignalDevice, type Sealed, SignalDevice } from './signal-device.ts';
import { createTurns } from './turns.ts';

export type GroupParts = {
  readonly enc: BinaryNode;
  /** Message with the sender key, for a linked device that does not have it. */
  readonly senderKey: proto.IMessage;
};

const UNKNOWN_SENDER = '1:1@lid';

export class Line {
  readonly device: SignalDevice;
  readonly #account: Account;
  readonly #turns = createTurns();
  /** With whom there is a session: another one where the account was linked anew. */
  #partner: LinkedDevice | undefined;

  /** @param saved has its sessions with the device that is linked now */
  constructor(account: Account, saved?: SavedSignalDevice) {
    this.device = new SignalDevice(saved);
    this.#account = account;
    this.#partner = saved && account.device;
  }

  /** Opens a session with one of the linked device's pre-keys where there is none. @throws while none is linked */
  seal(message: proto.IMessage): Promise<BinaryNode> {
    return this.#turns(async () => {
      const to = this.#linked();
      const isKnown = this.#partner === to && (await this.device.hasSession(to.lidJid));
      if (!isKnown) await this.#begin(to);
      return encNode(await this.device.encrypt(to.lidJid, message));
    });
  }

  /** In a fresh session: from the bundle of a retry receipt, or with another pre-key. */
  sealAnew(message: proto.IMessage, count: number, bundle?: KeyBundle): Promise<BinaryNode> {
    return this.#turns(async () => {
      const to = this.#linked();
      await this.#begin(to, bundle);
      return encNode(await this.device.encrypt(to.lidJid, message), count);
    });
  }

  sealForGroup(group: string, self: string, message: proto.IMessage): Promise<GroupParts> {
    return this.#turns(async () => {
      const { ciphertext, senderKey } = await this.device.encryptForGroup(group, self, message);
      const item = { groupId: group, axolotlSenderKeyDistributionMessage: senderKey };
      return {
        enc: { tag: 'enc', attrs: { v: '2', type: 'skmsg' }, content: ciphertext },
        senderKey: { senderKeyDistributionMessage: item },
      };
    });
  }

  /** @throws where no session fits */
  open(sealed: Sealed): Promise<proto.Message> {
    return this.#turns(async () => {
      const from = this.#linked();
      const message = await this.device.decrypt(from.lidJid, sealed);
      this.#partner = from;
      const senderKey = message.senderKeyDistributionMessage;
      if (senderKey) await this.device.learnSenderKey(from.lidJid, senderKey);
      return message;
    });
  }

  /** @throws where the linked device's sender key did not come before */
  openFromGroup(group: string, ciphertext: Uint8Array): Promise<proto.Message> {
    return this.#turns(() =>
      this.device.decryptFromGroup(group, this.#linked().lidJid, ciphertext),
    );
  }

  /** Both sides are out of step: neither can read the other's next message. */
  lose(): Promise<void> {
    return this.#turns(async () => {
      const to = this.#linked();
      await this.device.forgetSession(to.lidJid);
      await settleWithUnknownSender(this.device, to.lidJid);
      this.#partner = to;
    });
  }

  #linked(): LinkedDevice {
    const { device, number } = this.#account;
    if (device === undefined) throw new Error(`${number} has no linked device`);
    return device;
  }

  async #begin(to: LinkedDevice, bundle = linkedBundle(this.#account, to)): Promise<void> {
    await this.device.startSession(to.lidJid, bundle);
    this.#partner = to;
  }
}

/** A session that is past its opening, but with somebody else: as after a phone's restored backup. */
async function settleWithUnknownSender(device: SignalDevice, address: string): Promise<void> {
  const stranger = new SignalDevice();
  await device.startSession(address, stranger.bundle());
  await stranger.decrypt(UNKNOWN_SENDER, await device.encrypt(address, {}));
  await device.decrypt(address, await stranger.encrypt(UNKNOWN_SENDER, {}));
}

/** What the linked device offers to whoever writes to it; one of its pre-keys is used up. */
export function linkedBundle(account: Account, device: LinkedDevice): KeyBundle {
  const { registrationId, identityKey, signedPreKey } = device;
  return { registrationId, identityKey, signedPreKey, preKey: account.takePreKey() };
}

function encNode({ type, ciphertext }: Sealed, count?: number): BinaryNode {
  const attempt = count === undefined ? {} : { count: String(count) };
  return { tag: 'enc', attrs: { v: '2', type, ...attempt }, content: ciphertext };
}
