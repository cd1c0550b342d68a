// The Signal sessions between one person's phone and the linked device of an account: seals what
// goes there, opens what comes, begins anew when a side lost its session.

import type { BinaryNode, proto } from '@whiskeysockets/baileys';
import type { Account, KeyBundle, LinkedDevice } from './seams.ts';
import { createSignalDevice, type Sealed, type SignalDevice } from './signal-device.ts';
import { createTurns } from './turns.ts';

export interface Line {
  readonly device: SignalDevice;
  /** Opens a session with one of the linked device's pre-keys where there is none. @throws while none is linked */
  seal(message: proto.IMessage): Promise<BinaryNode>;
  /** In a fresh session: from the bundle of a retry receipt, or with another pre-key. */
  sealAnew(message: proto.IMessage, count: number, bundle?: KeyBundle): Promise<BinaryNode>;
  sealForGroup(group: string, self: string, message: proto.IMessage): Promise<GroupParts>;
  /** @throws where no session fits */
  open(sealed: Sealed): Promise<proto.Message>;
  openFromGroup(group: string, ciphertext: Uint8Array): Promise<proto.Message>;
  /** Both sides are out of step: neither can read the other's next message. */
  lose(): Promise<void>;
}

export type GroupParts = {
  readonly enc: BinaryNode;
  /** Message with the sender key, for a linked device that does not have it. */
  readonly senderKey: proto.IMessage;
};

const STRANGER = '1:1@lid';

export function createLine(account: Account): Line {
  const device = createSignalDevice();
  const turns = createTurns();
  let partner: LinkedDevice | undefined;

  const linked = (): LinkedDevice => {
    if (account.device === undefined) throw new Error(`${account.number} has no linked device`);
    return account.device;
  };
  const begin = async (to: LinkedDevice, bundle?: KeyBundle) => {
    await device.startSession(to.lidJid, bundle ?? linkedBundle(account, to));
    partner = to;
  };
  const encrypt = async (to: LinkedDevice, message: proto.IMessage, count?: number) =>
    encNode(await device.encrypt(to.lidJid, message), count);
  return {
    device,
    seal: (message) =>
      turns(async () => {
        const to = linked();
        if (partner !== to || !(await device.hasSession(to.lidJid))) await begin(to);
        return encrypt(to, message);
      }),
    sealAnew: (message, count, bundle) =>
      turns(async () => {
        await begin(linked(), bundle);
        return encrypt(linked(), message, count);
      }),
    sealForGroup: (group, self, message) =>
      turns(async () => {
        const sealed = await device.encryptForGroup(group, self, message);
        return {
          enc: { tag: 'enc', attrs: { v: '2', type: 'skmsg' }, content: sealed.ciphertext },
          senderKey: {
            senderKeyDistributionMessage: {
              groupId: group,
              axolotlSenderKeyDistributionMessage: sealed.senderKey,
            },
          },
        };
      }),
    open: (sealed) =>
      turns(async () => {
        const from = linked();
        const message = await device.decrypt(from.lidJid, sealed);
        partner = from;
        const senderKey = message.senderKeyDistributionMessage;
        if (senderKey) await device.learnSenderKey(from.lidJid, senderKey);
        return message;
      }),
    openFromGroup: (group, ciphertext) =>
      turns(() => device.decryptFromGroup(group, linked().lidJid, ciphertext)),
    lose: () =>
      turns(async () => {
        const to = linked();
        await device.forgetSession(to.lidJid);
        await settleWithStranger(device, to.lidJid);
        partner = to;
      }),
  };
}

/** A session that is past its opening, but with somebody else: as after a phone's restored backup. */
async function settleWithStranger(device: SignalDevice, address: string): Promise<void> {
  const stranger = createSignalDevice();
  await device.startSession(address, stranger.bundle());
  await stranger.decrypt(STRANGER, await device.encrypt(address, {}));
  await device.decrypt(address, await stranger.encrypt(STRANGER, {}));
}

/** What the linked device offers to whoever writes to it; one of its pre-keys is used up. */
export const linkedBundle = (account: Account, device: LinkedDevice): KeyBundle => ({
  registrationId: device.registrationId,
  identityKey: device.identityKey,
  signedPreKey: device.signedPreKey,
  preKey: account.takePreKey(),
});

export const encNode = ({ type, ciphertext }: Sealed, count?: number): BinaryNode => ({
  tag: 'enc',
  attrs: { v: '2', type, ...(count === undefined ? {} : { count: String(count) }) },
  content: ciphertext,
});
