// The command `nanobot usage`: tokens and cost of model calls by day, with or without a running
// gateway.

import { Command } from 'commander';
import { parseLimit } from '../../cli/flag-values.ts';
import { printable, type Terminal, withState } from '../../cli/terminal.ts';
import { t } from '../../lib/texts.ts';
import { createDayText } from '../../lib/time/zone-time.ts';
import { budgetCap, budgetLine } from './rules/budget-limits.ts';
import type { BudgetOwners, StoredDay } from './spending-day.ts';

const DAY_MS = 86_400_000;

type Options = { readonly days: number; readonly json?: boolean };

export function usageCommand(terminal: Terminal): Command {
  return new Command('usage')
    .description(t`show what models cost, by person, chat and in total`)
    .option('--days <n>', t`number of days, including today`, parseLimit, 1)
    .option('--json', t`print as JSON`)
    .action((options: Options) => showUsage(terminal, options));
}

async function showUsage(terminal: Terminal, { days, json }: Options) {
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { SPENDING_SCOPE } = await import('./spending-day.ts');
  const { createBudgetOwners } = await import('./spending-day.ts');
  const { storedDays } = await import('./spending-day.ts');
  const { config } = await loadConfig(terminal.home, terminal.env);
  const since = terminal.clock.now() - Math.max(0, days - 1) * DAY_MS;
  const from = createDayText()(since, config.sessions.timeZone);
  const found = await withState(terminal, async ({ store, people }) => {
    const ownerOf = createBudgetOwners(people.persons);
    const stored = await storedDays(store.scope(SPENDING_SCOPE), from);
    return Promise.all(stored.map((day) => withOwners(day, ownerOf)));
  });
  if (json === true) return terminal.printJson(found);
  if (found.length === 0) return terminal.tell(t`No model usage.`);
  const { currency } = config.limits.budget;
  for (const { day, rows } of found) {
    terminal.print(day);
    for (const { key, names, ledger, name, limits } of withoutOwnChats(rows)) {
      const cap = budgetCap(names, config.limits, limits);
      const named = name === undefined ? {} : { name };
      terminal.print(`  ${printable(budgetLine({ key, ledger, cap, ...named }, currency))}`);
    }
  }
}

type Row = Awaited<ReturnType<typeof withOwners>>['rows'][number];

/**
 * The private chat of a person has the same figures as the person, so it gets no line of its own.
 */
function withoutOwnChats(rows: readonly Row[]): readonly Row[] {
  const persons = rows.filter(({ key }) => key.startsWith('person '));
  const isTold = ({ key, name, ledger }: Row) =>
    key.startsWith('chat ') &&
    persons.some(
      (person) =>
        person.name === name &&
        person.ledger.calls === ledger.calls &&
        person.ledger.spent.tokens === ledger.spent.tokens,
    );
  return rows.filter((row) => !isTold(row));
}

async function withOwners({ day, rows }: StoredDay, ownerOf: BudgetOwners) {
  const owned = rows.map(async (row) => ({ ...row, ...(await ownerOf(row.names)) }));
  return { day, rows: await Promise.all(owned) };
}
