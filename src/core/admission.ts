// The gate: who may talk to the agent. Decided from stable ids alone, before anything costs a model
// call. An empty allow list lets nobody in.

import { parseCommand } from './command.ts';
import { type InboundMessage, idsOf } from './message.ts';

/** Lets everybody in; has to be written on purpose. */
export const EVERYBODY = '*';

export type AdmissionPolicy = {
  /** Stable sender ids, spelled as the channel spells them. */
  readonly allowFrom: readonly string[];
  /** Whether the machine's user let this sender in by a code or by hand. */
  readonly approved: boolean;
  /** Whether a sender whom nothing verifies may be answered. */
  readonly acceptUnverified: boolean;
};

export type Verdict =
  | { readonly kind: 'admit' }
  /** Not let in; `gate` is the reason that `nanobot trace` shows. */
  | { readonly kind: 'refuse'; readonly gate: string; readonly stranger: boolean }
  /** Not known yet, but shows a pairing code. */
  | { readonly kind: 'redeem'; readonly code: string };

const refuse = (gate: string, stranger = false): Verdict => ({ kind: 'refuse', gate, stranger });

export function admit(message: InboundMessage, policy: AdmissionPolicy): Verdict {
  const { sender } = message;
  if (sender.kind === 'system') return { kind: 'admit' };
  if (message.addressing !== 'direct') return refuse('groups are off');
  const isListed = [EVERYBODY, ...idsOf(sender)].some((id) => policy.allowFrom.includes(id));
  const allowed = policy.approved || isListed;
  if (sender.verified === 'unverified' && !(allowed && policy.acceptUnverified)) {
    return refuse('sender not verified');
  }
  if (allowed) return { kind: 'admit' };
  const command = parseCommand(message.text);
  if (command?.name === 'start' && command.argument !== '') {
    return { kind: 'redeem', code: command.argument };
  }
  return refuse('sender not on the allow list', true);
}
