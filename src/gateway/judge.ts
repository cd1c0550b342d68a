// Brings together what the gate decides from: the configuration in force and what was decided about
// the sender. The decision itself is core's.

import { type AdmissionPolicy, admit, type Verdict } from '../core/admission.ts';
import { type InboundMessage, idsOf } from '../core/message.ts';
import type { Pairing } from './pairing.ts';

export type JudgeDeps = {
  readonly pairing: Pairing;
  /** The configured part of the gate, per channel. */
  policy(channel: string): Omit<AdmissionPolicy, 'role'>;
};

/** What the gate says of a message now. */
export type Judge = (message: InboundMessage) => Promise<Verdict>;

export function createJudge({ pairing, policy }: JudgeDeps): Judge {
  return async (message) => {
    const { sender, chat } = message;
    const ids = sender.kind === 'person' ? idsOf(sender) : [];
    const role = await pairing.roleOf(chat.channel, ids);
    return admit(message, { ...policy(chat.channel), role });
  };
}
