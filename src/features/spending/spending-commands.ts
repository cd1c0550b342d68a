// The chat commands about what models cost: one's own for everybody, all of it and the limits for owners.

import { CONVERSATION, OWNER_ONLY } from '../../kernel/access/command-access.ts';
import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command.ts';
import { budgetLine, conversationLines } from './rules/budget-words.ts';
import type { SpendingDesk } from './spending-desk.ts';

const MAX_LINES = 15;
const MAX_PERCENT = 1000;

export const SPENDING_COMMANDS = {
  usage: {
    summary: 'show what was spent on models today',
    access: CONVERSATION,
    timing: 'immediate',
  },
  cost: {
    summary: 'show what this conversation cost, and today',
    access: CONVERSATION,
    timing: 'immediate',
  },
  budget: {
    summary: 'show today’s budgets, or allow more for today',
    usage: '/budget [more <percent> [budget]]',
    access: OWNER_ONLY,
    timing: 'immediate',
  },
} satisfies CommandTable;

export function spendingCommands(spending: SpendingDesk): readonly Command[] {
  return commandsOf(SPENDING_COMMANDS, {
    usage: (origin) => showUsage(origin, spending),
    cost: (origin) => showCost(origin, spending),
    budget: (_origin, argument) => changeBudget(argument, spending),
  });
}

/** The widest budget that the person may see, in one line. */
export async function spentToday(origin: CommandOrigin, spending: SpendingDesk): Promise<string> {
  const [view] = await shownTo(origin, spending);
  return view === undefined ? 'nothing spent' : budgetLine(view, spending.currency);
}

function shownTo({ message, role }: CommandOrigin, spending: SpendingDesk) {
  const isForOwner = role === 'owner' && message.addressing === 'direct';
  return isForOwner ? spending.all() : spending.of(message);
}

async function showUsage(origin: CommandOrigin, spending: SpendingDesk): Promise<string> {
  const spent = (await shownTo(origin, spending)).filter(({ ledger }) => ledger.calls > 0);
  if (spent.length === 0) return 'Nothing was spent today.';
  const lines = spent.slice(0, MAX_LINES).map((view) => `- ${budgetLine(view, spending.currency)}`);
  const left = spent.length - lines.length;
  return [...lines, ...(left > 0 ? [`and ${left} more: \`nanobot usage\``] : [])].join('\n');
}

/** What was summed up or begun anew is in view no more, and not counted. */
async function showCost(origin: CommandOrigin, spending: SpendingDesk): Promise<string> {
  const conversation = await spending.inConversation(origin.session);
  return [
    `This conversation, as far as I still see it: ${conversationLines(conversation, spending.currency)}`,
    `Today:\n${await showUsage(origin, spending)}`,
  ].join('\n\n');
}

async function changeBudget(argument: string, spending: SpendingDesk): Promise<string> {
  if (argument === '') {
    const limited = (await spending.all()).filter(({ cap }) => cap.tokens > 0 || cap.micros > 0);
    if (limited.length === 0) {
      return 'No budget limits what was used today; limits.budget in the configuration sets one.';
    }
    const lines = limited.slice(0, MAX_LINES);
    return lines.map((view) => `- ${budgetLine(view, spending.currency)}`).join('\n');
  }
  const match = /^more\s+(\d+)\s*%?(?:\s+(\S.*))?$/.exec(argument);
  const percent = Number(match?.[1] ?? 0);
  if (match === null || percent < 1 || percent > MAX_PERCENT) {
    return `Say /budget more with a number of percent, at most ${MAX_PERCENT}.`;
  }
  const key = match[2];
  const raised = await spending.raise(percent, key === undefined ? {} : { key });
  if (raised.length === 0) {
    return key === undefined
      ? `No budget is nearly used up. To raise one all the same, name it: \`/budget more ${percent} total\`; /budget lists them.`
      : 'Nothing was charged to a budget of that name today; /usage lists them.';
  }
  return `${percent} % more for today: ${raised.join(', ')}.`;
}
