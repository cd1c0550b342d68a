// The way in: every message a channel hands over passes the gate (gate.ts), becomes durable together with
// the channel's cursor, and only then may the channel acknowledge it.

import type { ShowOutcome } from '../../channels/channel.ts';
import type { AcceptResult, ChannelCursor, InboundEntry } from '../bus/bus.ts';
import { messageId } from '../message/ids.ts';
import type { InboundMessage, OutboundDraft } from '../message/message.ts';
import type { FairUse, Weighed } from './fair-use.ts';
import { createGate, type GateDeps } from './gate.ts';
import type { Gated, GroupIntake } from './group-intake.ts';

export type ReceiveDeps = Omit<GateDeps, 'reply'> & {
  readonly groups: GroupIntake;
  readonly fairUse: FairUse;
  /** A message was taken in. */
  arrived(message: InboundMessage): void;
};

const WENT_WRONG = 'Something went wrong with that. Please try it again.';

type AcceptOptions = { readonly cursor?: ChannelCursor };
type ReceiveOptions = AcceptOptions & { readonly pressed?: ShowOutcome };

export interface Receiver {
  /** @throws BusFullError: nothing was stored. */
  receive(batch: readonly InboundEntry[], options?: ReceiveOptions): Promise<void>;
}

export function createReceiver(deps: ReceiveDeps): Receiver {
  const { bus, people, log } = deps;

  async function reply(message: InboundMessage, markdown: string) {
    const draft: OutboundDraft = { chat: message.chat, markdown, replyTo: message.id };
    await bus.send({ ...draft, id: messageId(`${message.id}/reply`) });
  }

  const gate = createGate({ ...deps, reply });

  /** The counts are stored with the messages, and taken back with them. */
  async function store({ batch, store: storeCounts, settle }: Weighed, options: AcceptOptions) {
    let results: readonly AcceptResult[] = [];
    try {
      for (const item of batch) await item.before?.();
      const gated = await deps.groups.withTalk(await routed(batch));
      const entries = gated.map(({ entry }) => entry);
      [results] = await Promise.all([bus.accept(entries, options), storeCounts()]);
      return gated.filter((_item, index) => results[index] === 'accepted');
    } finally {
      settle(results);
    }
  }

  /** In order, behind the gate: what a command of the batch changed holds for those behind it. */
  async function routed(gated: readonly Gated[]): Promise<readonly Gated[]> {
    const result: Gated[] = [];
    for (const item of gated) {
      const message = await people.routes.route(item.entry.message);
      result.push({ ...item, entry: { ...item.entry, message } });
    }
    return result;
  }

  /** It is stored and never comes again: what fails is said, and keeps nothing from the others. */
  async function followed({ entry: { message }, afterwards }: Gated, show?: ShowOutcome) {
    try {
      await afterwards?.(show);
    } catch (error) {
      log.error('message not dealt with', { messageId: message.id, error });
      if (message.addressing !== 'direct') return;
      await reply(message, WENT_WRONG).catch((unsaid) => log.warn('not said', { error: unsaid }));
    }
  }

  return {
    async receive(batch, { pressed: show, ...options } = {}) {
      const weighed = await deps.fairUse.weigh(await Promise.all(batch.map(gate)));
      for (const item of await store(weighed, options)) {
        if (item.entry.kind === 'queue') deps.arrived(item.entry.message);
        await followed(item, show);
      }
    },
  };
}
