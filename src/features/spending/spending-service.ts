// The chat commands about costs: everybody sees their own, owners see and change all limits.

import type { MessageBus } from '../../kernel/bus/bus.ts';
import {
  CONVERSATION,
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
  OWNER_ONLY,
  tracedMessage,
} from '../../kernel/commands/command-access.ts';
import { messageId, type SessionKey } from '../../kernel/message/ids.ts';
import type { ChatRef, Payer } from '../../kernel/message/message.ts';
import { namesOf } from '../../kernel/message/message-limits.ts';
import type { TranscriptEntry } from '../../kernel/message/transcript.ts';
import { gauge } from '../../kernel/observe/metrics.ts';
import type { Gauge } from '../../kernel/observe/telemetry.ts';
import type { Question, QuestionHandler } from '../../kernel/questions/question-rows.ts';
import type { SessionStore } from '../../kernel/sessions/store.ts';
import { t } from '../../lib/texts.ts';
import { MORE_PERCENT, type UsedUp } from './budget-notes.ts';
import {
  type BudgetView,
  budgetCap,
  budgetLine,
  chargedFor,
  conversationLines,
  TOTAL,
} from './rules/budget-limits.ts';
import type { ConversationCost } from './rules/conversation-cost.ts';
import { isLimited, isNearlyUsed, shareUsed } from './rules/spending.ts';
import type { Spending, SpendingSettings } from './spending.ts';
import type { BudgetOwners, LedgerRow } from './spending-day.ts';

const MAX_LINES = 15;
const MAX_PERCENT = 1000;

export const SPENDING_COMMANDS = {
  usage: {
    summary: t`show today’s spending on models`,
    access: CONVERSATION,
    timing: 'immediate',
  },
  cost: {
    summary: t`show the cost and time of the last answer, the cost of this conversation and of today`,
    access: CONVERSATION,
    timing: 'immediate',
  },
  budget: {
    summary: t`show today’s budgets, or raise them for today`,
    usage: '/budget [more <percent> [budget]]',
    access: OWNER_ONLY,
    timing: 'immediate',
  },
} satisfies CommandTable;

export function spendingCommands(spending: SpendingService): readonly Command[] {
  return commandsOf(SPENDING_COMMANDS, {
    usage: (origin) => showUsage(origin, spending),
    cost: (origin) => showCost(origin, spending),
    budget: (_origin, argument) => changeBudget(argument, spending),
  });
}

/** The widest budget that the person may see, in one line. */
export async function spentToday(
  origin: CommandOrigin | undefined,
  spending: SpendingService,
): Promise<string> {
  const [view] = await (origin === undefined ? spending.all() : shownTo(origin, spending));
  return view === undefined ? t`nothing spent` : budgetLine(view, spending.currency);
}

function shownTo({ message, role }: CommandOrigin, spending: SpendingService) {
  const isForOwner = role === 'owner' && message.addressing === 'direct';
  return isForOwner ? spending.all() : spending.of(message);
}

async function showUsage(origin: CommandOrigin, spending: SpendingService): Promise<string> {
  const spent = (await shownTo(origin, spending)).filter(({ ledger }) => ledger.calls > 0);
  if (spent.length === 0) return t`Nothing was spent today.`;
  const lines = spent.slice(0, MAX_LINES).map((view) => `- ${budgetLine(view, spending.currency)}`);
  const left = spent.length - lines.length;
  return [...lines, ...(left > 0 ? [t`and ${left} more: \`nanobot usage\``] : [])].join('\n');
}

/** Entries that were summarised or cleared are no longer in the conversation and do not count. */
async function showCost(origin: CommandOrigin, spending: SpendingService): Promise<string> {
  const conversation = await spending.inConversation(origin.session);
  const receipt = await spending.ofAnswer(origin);
  return [
    ...(receipt === undefined ? [] : [receipt]),
    t`This conversation, since its last summary or restart: ${conversationLines(conversation, spending.currency)}`,
    `Today:\n${await showUsage(origin, spending)}`,
  ].join('\n\n');
}

async function changeBudget(argument: string, spending: SpendingService): Promise<string> {
  if (argument === '') {
    const limited = (await spending.all()).filter(({ cap }) => cap.tokens > 0 || cap.micros > 0);
    if (limited.length === 0) {
      return t`No budget is set. Set one with limits.budget in the configuration.`;
    }
    const lines = limited.slice(0, MAX_LINES);
    return lines.map((view) => `- ${budgetLine(view, spending.currency)}`).join('\n');
  }
  const match = /^more\s+(\d+)\s*%?(?:\s+(\S.*))?$/.exec(argument);
  const percent = Number(match?.[1] ?? 0);
  if (match === null || percent < 1 || percent > MAX_PERCENT) {
    return t`Usage: /budget more <percent>, at most ${MAX_PERCENT}.`;
  }
  const key = match[2];
  const raised = await spending.raise(percent, key === undefined ? {} : { key });
  if (raised.length === 0) {
    return key === undefined
      ? t`No budget is nearly used up. To raise one anyway, name it: \`/budget more ${percent} total\`; /budget lists them.`
      : t`No budget with that name was used today; /usage lists them.`;
  }
  return t`${percent} % more for today: ${raised.join(', ')}.`;
}

// Shows today's spending and changes limits on behalf of an owner.

/**
 * `day`: `YYYY-MM-DD`, if it has to be that day. `extraPercent`: the earlier increase, if it must
 * not have changed.
 */
type MeantBudget = {
  readonly key?: string;
  readonly day?: string;
  readonly extraPercent?: number;
};

export type SpendingService = ReturnType<typeof createSpendingService>;

export function createSpendingService(
  spending: Spending,
  settings: () => Pick<SpendingSettings, 'limits' | 'prices'>,
  ownerOf: BudgetOwners,
  sessions: Pick<SessionStore, 'load' | 'turn'>,
  { bus, metrics }: { readonly bus: Pick<MessageBus, 'trace'>; metrics(): string },
) {
  async function viewOf(row: LedgerRow): Promise<BudgetView> {
    const { name, limits } = await ownerOf(namesOf(row));
    const cap = budgetCap(namesOf(row), settings().limits, limits);
    return { key: row.key, ledger: row.value, cap, ...(name === undefined ? {} : { name }) };
  }

  return {
    get currency(): string {
      return settings().limits.budget.currency;
    },
    /** What the sender and the chat spent today. */
    async of(payer: Payer): Promise<readonly BudgetView[]> {
      const { ledgers } = await spending.shown();
      const charged = chargedFor(payer, settings().limits);
      const own = charged.filter(({ whose }) => whose !== TOTAL);
      return Promise.all(own.map(({ names }) => viewOf(ledgers.at(names))));
    },
    /** The cost of the entries that the model still gets. */
    async inConversation(session: SessionKey): Promise<ConversationCost> {
      const { prices, limits } = settings();
      const { conversationCost } = await import('./rules/conversation-cost.ts');
      return conversationCost(await sessions.load(session), prices, limits.budget.currency);
    },
    /** Cost and time of the last answer, or of the one that the command replies to. */
    async ofAnswer(origin: CommandOrigin): Promise<string | undefined> {
      const { session, message } = origin;
      const isMeant = message.replyTo !== undefined || message.group !== undefined;
      // A decision may have begun the turn that answered, not the last message.
      const newest = isMeant ? undefined : (await sessions.load(session)).findLast(isAnswer);
      const trace = await (newest === undefined
        ? tracedMessage(origin, bus)
        : bus.trace(messageId(newest.turnId)));
      if (trace?.turnId === undefined) return undefined;
      const entries = await sessions.turn(trace.session, trace.turnId);
      const { receiptLines } = await import('./receipt.ts');
      return receiptLines({ trace, entries, metrics: metrics(), settings: settings() });
    },
    /** All of today: the total first, then by amount. */
    async all(): Promise<readonly BudgetView[]> {
      const { ledgers } = await spending.shown();
      const rank = ({ key, ledger }: BudgetView) =>
        key === TOTAL ? Number.POSITIVE_INFINITY : ledger.spent.tokens;
      const views = await Promise.all(ledgers.rows.map(viewOf));
      return views.toSorted((one, other) => rank(other) - rank(one));
    },
    /**
     * Raises today's limit of this budget by so many percent; without a key, of all that are used
     * up, otherwise of all that nearly are. Returns the keys of the raised budgets; none where the
     * given day is over or the limit was raised since.
     */
    async raise(
      percent: number,
      { key, day: of, extraPercent: before }: MeantBudget = {},
    ): Promise<readonly string[]> {
      const day = await spending.shown();
      if (of !== undefined && of !== day.day) return [];
      // 100 % is also reported where the rest is too little for an answer.
      const isAnyUsedUp = day.ledgers.rows.some((row) => row.value.told === 100);
      const isShort = (view: BudgetView) =>
        isAnyUsedUp ? view.ledger.told === 100 : isNearlyUsed(view);
      const isMeant = (row: LedgerRow, view: BudgetView) =>
        key === undefined ? isShort(view) : row.key === key || row.names.has(key);
      const isAsBefore = ({ value }: LedgerRow) =>
        before === undefined || value.extraPercent === before;
      const raisedRows: LedgerRow[] = [];
      for (const row of day.ledgers.rows) {
        const view = await viewOf(row);
        const { cap } = view;
        if (!isMeant(row, view) || !isAsBefore(row)) continue;
        day.change(row, (ledger) => {
          if (before !== undefined && ledger.extraPercent !== before) return ledger;
          // A limit may have been lowered below what was used before.
          const used = Math.ceil(100 * shareUsed({ ledger: { ...ledger, extraPercent: 0 }, cap }));
          const extraPercent = Math.max(ledger.extraPercent, used - 100) + percent;
          const raised = { ...ledger, extraPercent, told: 0 } as const;
          return { ...raised, told: isNearlyUsed({ ledger: raised, cap }) ? 80 : 0 };
        });
        raisedRows.push(row);
      }
      await day.store();
      day.announceRoom();
      return raisedRows.map((row) => row.key);
    },
  };
}

/** By kind of budget, so that it names nobody: the one of that kind that is used most. */
export function budgetGauge(views: readonly BudgetView[]): Gauge {
  const used = new Map<string, number>();
  for (const { key, ledger, cap } of views) {
    const [kind = key] = key.split(' ');
    if (isLimited(cap)) {
      used.set(kind, Math.max(used.get(kind) ?? 0, shareUsed({ ledger, cap })));
    }
  }
  const values = [...used].map(([budget, share]) => [{ budget }, share] as const);
  return gauge('budget_used_ratio', 'Used share of the fullest daily budget.', values);
}
const isAnswer = (entry: TranscriptEntry) => entry.role === 'assistant';

// The question to an owner about a budget that is used up, and the effect of the answer.

/** The subject kind of the question. */
export const BUDGET_SUBJECT = 'budget';

export function budgetQuestion(usedUp: UsedUp, chat: ChatRef): Question {
  const { id, text, key, day, extraPercent, leftMs } = usedUp;
  return {
    ...{ id, chat },
    markdown: text,
    choices: [
      { label: t`Allow ${MORE_PERCENT} % more today`, action: 'more' },
      { label: t`Keep the limit`, action: 'keep' },
    ],
    approvers: 'owners',
    subject: `${BUDGET_SUBJECT}:${day}|${extraPercent}|${key}`,
    expiresInMs: leftMs,
  };
}

export function createBudgetAnswers(service: SpendingService): QuestionHandler {
  return {
    async answer({ rest }, { action }) {
      if (action !== 'more') return t`The limit stays as it is.`;
      // Must not raise the limit twice when it is repeated after a crash.
      const raised = await service.raise(MORE_PERCENT, meantBy(rest));
      return raised.length === 0
        ? t`Nothing changed: it was already raised, or that day is over.`
        : t`${MORE_PERCENT} % more for today: ${raised.join(', ')}.`;
    },
    /** By /budget, or in the configuration. */
    async settled({ rest }) {
      const { key, extraPercent } = meantBy(rest);
      const budget = (await service.all()).find((one) => one.key === key);
      if (budget === undefined) return undefined;
      const isAsBefore = budget.ledger.extraPercent === extraPercent;
      if (isAsBefore && isLimited(budget.cap) && isNearlyUsed(budget)) return undefined;
      return t`The limit has been changed.`;
    },
  };
}

function meantBy(rest: string) {
  const [day = '', extra, ...key] = rest.split('|');
  return { key: key.join('|'), day, extraPercent: Number(extra) };
}
