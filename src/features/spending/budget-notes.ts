// Reports the state of a budget: once per day and level, under ids derived from day and budget, so
// that a restart repeats nothing. Person and chat get it in their chat; the owner gets it for the
// total.

import type { MessageBus } from '../../kernel/bus/bus.ts';
import { messageId } from '../../kernel/message/ids.ts';
import type { ChatRef, Payer } from '../../kernel/message/message.ts';
import type { Logger } from '../../lib/logger.ts';
import {
  type BudgetView,
  cheaperText,
  nearlyUsedText,
  unpricedText,
  usedUpOwnerText,
} from './rules/budget-limits.ts';
import { isLimited, isNearlyUsed, type Price, type Told } from './rules/spending.ts';
import type { Account, SpendingDay } from './spending-day.ts';

/** The percentage that an owner is offered when a budget is used up. */
export const MORE_PERCENT = 25;

/** A budget of one day that is used up. */
export type UsedUp = {
  readonly id: string;
  readonly text: string;
  readonly key: string;
  readonly day: string;
  /** The increase that applied at that time. */
  readonly extraPercent: number;
  /** Until the day ends. */
  readonly leftMs: number;
};

type BudgetNotesDeps = {
  readonly bus: Pick<MessageBus, 'send'>;
  readonly log: Logger;
  ownerChat(): Promise<ChatRef>;
  now(): number;
  currency(): string;
  /** Asks an owner whether to raise the limit today. */
  askOwner(usedUp: UsedUp): Promise<void>;
};

export type BudgetNotes = ReturnType<typeof createBudgetNotes>;

export function createBudgetNotes(deps: BudgetNotesDeps) {
  const { bus, log, ownerChat, now, currency, askOwner } = deps;

  /** False where it was reported before. */
  function isFirst(day: SpendingDay, { row }: Account, told: Told): boolean {
    if (row.value.told >= told) return false;
    day.change(row, (ledger) => ({ ...ledger, told }));
    return true;
  }

  function inBackground(work: Promise<unknown>): void {
    work.catch((error) => log.warn('budget notice not sent', { error }));
  }

  async function send(id: string, chat: ChatRef, markdown: string) {
    await bus.send({ id: messageId(id), chat, markdown });
  }

  /** Raising the limit allows new notices. */
  const idOf = (day: SpendingDay, { row }: Account, told: Told) =>
    `budget/${day.day}/${told}+${row.value.extraPercent}/${row.key}`;

  return {
    /** Something was charged to the budget. */
    spent(day: SpendingDay, account: Account, payer: Payer): void {
      const view = viewOf(account);
      if (!isLimited(account.cap) || !isNearlyUsed(view)) return;
      if (!isFirst(day, account, 80)) return;
      const id = idOf(day, account, 80);
      const toOwner = account.whose === 'total' || payer.isUnseen === true;
      const text = nearlyUsedText(view, currency(), toOwner);
      const chat = toOwner ? ownerChat() : Promise.resolve(payer.chat);
      inBackground(chat.then((there) => send(id, there, text)));
    },

    /** A cheaper model answers now. */
    cheaper(day: SpendingDay, account: Account, payer: Payer, model: string): void {
      if (!isFirst(day, account, 95)) return;
      inBackground(send(idOf(day, account, 95), payer.chat, cheaperText(model)));
    },

    /** A call was refused. */
    usedUp(day: SpendingDay, account: Account): void {
      if (!isFirst(day, account, 100)) return;
      const text = usedUpOwnerText(viewOf(account), currency(), MORE_PERCENT);
      const id = idOf(day, account, 100);
      const leftMs = Math.max(0, day.endsAt - now());
      const { key, value } = account.row;
      const { extraPercent } = value;
      inBackground(askOwner({ id, text, key, day: day.day, extraPercent, leftMs }));
    },

    /**
     * A budget in money applies and the price of the model is unknown. `assumed`: the price that is
     * charged instead; undefined: the model was not called.
     */
    unpriced(day: SpendingDay, model: string, assumed: Price | undefined): void {
      if (day.unpriced.has(model)) return;
      day.unpriced.add(model);
      const id = `budget/${day.day}/unpriced/${model}`;
      const text = unpricedText(model, assumed, currency());
      inBackground(ownerChat().then((chat) => send(id, chat, text)));
    },
  };
}

const viewOf = ({ row, cap }: Account): BudgetView => ({ key: row.key, ledger: row.value, cap });
