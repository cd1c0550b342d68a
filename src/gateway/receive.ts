// The way in: every message a channel hands over passes the gate, becomes durable together with the
// channel's cursor, and only then may the channel acknowledge it. Commands that must not wait are
// carried out here.

import type { AcceptResult, ChannelCursor, InboundEntry, MessageBus } from '../bus/bus.ts';
import { parseCommand } from '../core/command.ts';
import { messageId } from '../core/ids.ts';
import type { InboundMessage, OutboundDraft } from '../core/message.ts';
import type { Logger } from '../lib/logger.ts';
import type { CommandDeps } from './command.ts';
import { findCommand, runCommand } from './commands.ts';
import type { Gated, GroupIntake } from './group-intake.ts';
import type { Judge } from './judge.ts';
import type { Pairing } from './pairing.ts';

export type ReceiveDeps = {
  readonly bus: MessageBus;
  readonly pairing: Pairing;
  readonly commands: CommandDeps;
  readonly log: Logger;
  readonly judge: Judge;
  readonly groups: GroupIntake;
};

export interface Receiver {
  /** @throws BusFullError: nothing was stored. */
  receive(
    batch: readonly InboundEntry[],
    options?: { readonly cursor?: ChannelCursor },
  ): Promise<void>;
}

export function createReceiver(deps: ReceiveDeps): Receiver {
  const { bus, pairing, log } = deps;

  async function reply(message: InboundMessage, markdown: string) {
    const draft: OutboundDraft = { chat: message.chat, markdown, replyTo: message.id };
    await bus.send({ ...draft, id: messageId(`${message.id}/reply`) });
  }

  async function gate(entry: InboundEntry): Promise<Gated> {
    const { message } = entry;
    if (entry.kind === 'record') return { entry };
    const verdict = await deps.judge(message);
    if (verdict.kind === 'redeem') return redeem(message, verdict.code);
    if (verdict.kind === 'hear') return deps.groups.heard(message, verdict.gate);
    if (verdict.kind === 'refuse') {
      if (verdict.wasCalled) return deps.groups.called(message, verdict.gate);
      return refused(message, verdict.gate, verdict.stranger);
    }
    const command = findCommand(parseCommand(message.text));
    if (command?.timing !== 'immediate') return { entry };
    return {
      entry: { kind: 'record', message, gate: `command /${command.name}` },
      afterwards: async () => {
        const { role } = verdict;
        await reply(message, await runCommand(command, { message, role }, deps.commands));
      },
    };
  }

  function refused(message: InboundMessage, reason: string, stranger: boolean): Gated {
    return {
      entry: { kind: 'record', message, gate: reason },
      afterwards: async () => {
        const { sender, chat } = message;
        const fields = { channel: chat.channel, messageId: message.id, reason };
        // Talk in groups that are not ours may be a lot.
        if (message.addressing === 'ambient') log.debug('message refused', fields);
        else log.info('message refused', fields);
        if (stranger && sender.kind === 'person') await pairing.noteStranger(chat.channel, sender);
      },
    };
  }

  async function redeem(message: InboundMessage, code: string): Promise<Gated> {
    const { sender, chat } = message;
    const isGood =
      sender.kind === 'person' && (await pairing.redeem(chat.channel, sender, chat.chat, code));
    if (!isGood) return refused(message, 'pairing code not valid', true);
    log.info('sender paired', { channel: chat.channel });
    return {
      entry: { kind: 'record', message, gate: 'paired by code' },
      afterwards: () => reply(message, 'You are paired: I answer you from now on. Try /help.'),
    };
  }

  return {
    async receive(batch, options = {}) {
      const gated = await deps.groups.withTalk(await Promise.all(batch.map(gate)));
      const results: readonly AcceptResult[] = await bus.accept(
        gated.map((item) => item.entry),
        options,
      );
      for (const [index, item] of gated.entries()) {
        if (results[index] === 'accepted') await item.afterwards?.();
      }
    },
  };
}
