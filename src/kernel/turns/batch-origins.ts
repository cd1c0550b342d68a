// The senders of the messages of a turn: looks up, beside other work, what rights each of them has, and
// for whom owners are asked.

import type { TurnMessage } from '../../agent/agent.ts';
import type { AskingTurn } from '../../features/approvals/approvals.ts';
import { askerKey } from '../../features/approvals/standing.ts';
import { narrowed, type Rights } from '../access/rights.ts';
import type { QueuedMessage, Turn } from '../bus/bus.ts';
import { authorOf } from '../intake/rules/group-talk.ts';
import type { AgentEvent } from '../message/event.ts';
import type { InboundMessage } from '../message/message.ts';
import { personNames } from '../message/message-limits.ts';
import type { TurnPerson } from '../message/notes.ts';
import { verbatim } from '../message/untrusted.ts';
import type { Origin, Origins } from './origins.ts';
import type { TurnStages } from './stages.ts';
import { answered } from './turn-answers.ts';

type BatchOriginsDeps = {
  readonly origins: Origins;
  readonly stages: Pick<TurnStages, 'message'>;
};

export class BatchOrigins {
  readonly #turn: Turn;
  readonly #deps: BatchOriginsDeps;
  readonly #found = new Map<number, Promise<Origin>>();
  readonly #received = new Map<number, Promise<TurnMessage>>();

  constructor(turn: Turn, deps: BatchOriginsDeps) {
    this.#turn = turn;
    this.#deps = deps;
  }

  /** Begins to look; a failure shows where the answer is needed. */
  look(messages: readonly QueuedMessage[]): void {
    for (const queued of messages) this.#of(queued).catch(() => undefined);
  }

  /** The message as the agent gets it: with the rights of its sender, and passed through the stages once. */
  received(queued: QueuedMessage, show: (event: AgentEvent) => void): Promise<TurnMessage> {
    const known = this.#received.get(queued.seq) ?? this.#receive(queued, show);
    this.#received.set(queued.seq, known);
    return known;
  }

  /** As owners are asked on behalf of these messages. */
  async asking(messages: readonly QueuedMessage[], person: TurnPerson): Promise<AskingTurn> {
    const origins = await Promise.all(messages.map((queued) => this.#of(queued)));
    const { session, id: turnId } = this.#turn;
    // A conversation may go on in another chat than the one it is named after.
    const { message: newest } = messages.at(-1) ?? this.#turn.messages[0];
    const { chat } = newest;
    const isOwnerHere = origins.every((origin) => origin.isOwnerHere);
    return {
      ...{ session, turnId, chat, person },
      ...paidAs(newest),
      replyTo: answered(newest),
      asker: isOwnerHere ? `you on ${chat.channel}` : askerOf(newest),
      isOwnerHere,
      whose: askerKey(messages.map(({ message }) => message)),
    };
  }

  async #receive(queued: QueuedMessage, show: (event: AgentEvent) => void): Promise<TurnMessage> {
    const { session, signal } = this.#turn;
    const { rights, isForeign } = await this.#of(queued);
    return this.#deps.stages.message({ ...queued, rights, isForeign }, { session, signal, show });
  }

  #of(queued: QueuedMessage): Promise<Origin> {
    const known = this.#found.get(queued.seq) ?? this.#deps.origins(queued.message);
    this.#found.set(queued.seq, known);
    return known;
  }
}

/** A turn may do what everybody it answers may. */
export function narrowestOf(messages: readonly [TurnMessage, ...TurnMessage[]]): Rights {
  const [first, ...rest] = messages;
  return rest.reduce((rights, message) => narrowed(rights, message.rights), first.rights);
}

function paidAs({ sender, chat }: InboundMessage): Pick<AskingTurn, 'paidBy'> {
  const paidBy = sender.kind === 'person' ? personNames({ sender, chat }) : sender.paidBy;
  return paidBy === undefined ? {} : { paidBy };
}

function askerOf({ sender, chat, group }: InboundMessage): string {
  if (sender.kind === 'system' && sender.source === 'subagent') return `a helper (${chat.chat})`;
  if (sender.kind === 'system' && sender.source === 'workflow') return `a workflow (${chat.chat})`;
  const title = group?.title === undefined ? '' : ` (${verbatim(group.title)})`;
  const place = group === undefined ? '' : `, in the group ${verbatim(chat.chat)}${title}`;
  return `${verbatim(authorOf(sender))} on ${chat.channel}${place}`;
}
