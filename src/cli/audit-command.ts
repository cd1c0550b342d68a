// The commands `nanobot audit` and `nanobot trace`: the record of effects, and the life of one
// message. Both run beside the gateway.

import { Command } from 'commander';
import type { Trace } from '../kernel/bus/bus.ts';
import { messageId, type SessionKey } from '../kernel/message/ids.ts';
import type { AuditLine } from '../kernel/observe/audit.ts';
import { msgid, ngettext, t } from '../lib/texts.ts';
import { chatNames, chatText } from './chat-names.ts';
import { momentText, parseLimit } from './flag-values.ts';
import { CommandFailure, EXIT, printable, type Terminal, withState } from './terminal.ts';

const DEFAULT_SHOWN = 50;

export function auditCommand(terminal: Terminal): Command {
  const command = new Command('audit').description(t`the audit log: every action with effects`);
  command
    .command('verify')
    .description(t`check that no entry was changed, removed or inserted`)
    .action(() => verify(terminal));
  command
    .command('show')
    .description(t`show the newest entries`)
    .option('--limit <count>', t`show at most <count> entries`, parseLimit, DEFAULT_SHOWN)
    .option('--json', t`print as JSON, one object per line`)
    .action((flags: { readonly limit: number; readonly json?: boolean }) => show(terminal, flags));
  return command;
}

async function verify(terminal: Terminal) {
  const { verifyChains } = await import('../kernel/observe/build-telemetry.ts');
  const verdict = await withState(terminal, ({ store }) => verifyChains(terminal.home, store));
  if (verdict.kind === 'intact') {
    terminal.tell(t`${verdict.entries} entries, all unchanged.`);
    tellUnfinished(terminal, verdict.unfinished);
    return;
  }
  const { file, line, problem } = verdict;
  throw new CommandFailure(EXIT.failure, t`${file}, line ${line}: ${problem}`);
}

/** Calls without a recorded outcome: of a killed process, or still running. */
function tellUnfinished(terminal: Terminal, unfinished: readonly AuditLine[]): void {
  if (unfinished.length === 0) return;
  const { length } = unfinished;
  terminal.tell(
    ngettext(
      msgid`${length} call was started, but no outcome is recorded: still running, or interrupted when the gateway ended.`,
      `${length} calls were started, but no outcome is recorded: still running, or interrupted when the gateway ended.`,
      length,
    ),
  );
  for (const line of unfinished.slice(-DEFAULT_SHOWN)) terminal.print(entryText(line));
}

const sessionOf = (line: AuditLine | undefined): readonly string[] => {
  const session = line?.fields['session'];
  return typeof session === 'string' ? [session] : [];
};

const entryText = (line: AuditLine, names: ReadonlyMap<string, string> = new Map()) => {
  const { at, kind, fields } = line;
  const [session] = sessionOf(line);
  const shown = session === undefined ? fields : { ...fields, session: chatText(names, session) };
  const told = Object.entries(shown).map(([name, value]) => `${name}=${value}`);
  return printable(`${momentText(Date.parse(at))}  ${kind}  ${told.join(' ')}`);
};

async function show(
  terminal: Terminal,
  { limit, json }: { readonly limit: number; readonly json?: boolean },
) {
  const { readLine } = await import('../kernel/observe/audit.ts');
  const { newestEntries } = await import('../kernel/observe/build-telemetry.ts');
  const newest = await newestEntries(terminal.home, limit);
  const entries = newest.map((text) => (json === true ? undefined : readLine(text)));
  const names = await chatNames(terminal, entries.flatMap(sessionOf));
  for (const [at, entry] of entries.entries()) {
    terminal.print(entry === undefined ? printable(newest[at] ?? '') : entryText(entry, names));
  }
  if (newest.length === 0) terminal.note(t`The audit log is empty.`);
}

export function traceCommand(terminal: Terminal): Command {
  return new Command('trace')
    .description(t`show what happened to a message, and when`)
    .argument(
      '<message>',
      t`id of the message or of its turn, or "last" for the newest incoming message`,
    )
    .option('--json', t`print as JSON`)
    .action((id: string, { json }: { readonly json?: boolean }) =>
      trace(terminal, id, json === true),
    );
}

async function trace(terminal: Terminal, id: string, json: boolean) {
  const wanted = id === 'last' ? id : messageId(id);
  const found = await withState(terminal, ({ store }) => store.trace(wanted));
  if (found === undefined)
    throw new CommandFailure(EXIT.notFound, t`there is no message with the id ${id}`);
  if (json) return terminal.printJson(found);
  for (const line of traceLines(found)) terminal.print(line);
  if (found.turnId === undefined) return;
  for (const line of await turnLines(terminal, found.session, found.turnId)) terminal.print(line);
}

const MICROS = 1_000_000;

/** The model calls of the turn with their tokens and cost, and its tool calls, in order. */
async function turnLines(
  { home, env, clock }: Terminal,
  session: SessionKey,
  turnId: string,
): Promise<readonly string[]> {
  const { loadConfig } = await import('../kernel/config/files/config-file.ts');
  const { completeSessions } = await import('../kernel/home-state.ts');
  const { readSession } = await import('../kernel/sessions/catalog.ts');
  const { stemOf } = await import('../kernel/sessions/file-lines.ts');
  const { callLines, usageIn } = await import('../features/spending/call-lines.ts');
  const { priceOf } = await import('../providers/rules/model-names.ts');
  const { amountOf } = await import('../features/spending/rules/spending.ts');
  const { models, limits } = (await loadConfig(home, env)).config;
  const { currency } = limits.budget;
  const steps: { readonly at: number; readonly text: string }[] = [];
  for await (const call of callLines(home.metrics, turnId)) {
    if (call.request_id !== turnId) continue;
    const usage = usageIn(call);
    const price = priceOf(call.model, models.prices, currency);
    const { micros } = amountOf(price, usage);
    const cost =
      price === undefined ? t`price unknown` : `${(micros / MICROS).toFixed(4)} ${currency}`;
    const tokens = t`${usage.input} tokens in (${usage.cached} cached), ${usage.output} out, ${cost}`;
    const what = t`model ${call.model} (${call.role}) ${call.status} in ${call.elapsed_ms} ms`;
    steps.push({ at: Date.parse(call.timestamp), text: `${what}: ${tokens}` });
  }
  const unwritten = await completeSessions(home, clock);
  if (unwritten.has(session)) throw unwritten.get(session);
  for await (const entry of readSession(home.sessions, stemOf(session))) {
    if (entry.role !== 'tool' || entry.turnId !== turnId) continue;
    steps.push({ at: entry.at, text: t`tool ${entry.name}: ${entry.status}` });
  }
  return steps
    .toSorted((one, other) => one.at - other.at)
    .map(({ at, text }) => `  ${momentText(at)}  ${printable(text)}`);
}

function traceLines(trace: Trace): readonly string[] {
  const start = trace.steps.at(0)?.at ?? 0;
  return [
    `${trace.direction} ${trace.id}  ${trace.state}`,
    t`  in ${trace.session}${trace.turnId === undefined ? '' : t`, turn ${trace.turnId}`}`,
    ...trace.steps.map(({ at, what, detail }) => {
      const more = detail === undefined ? '' : `: ${printable(detail)}`;
      return t`  ${momentText(at)}  +${at - start} ms  ${what}${more}`;
    }),
    ...trace.answers.flatMap(traceLines).map((line) => `  ${line}`),
  ];
}
