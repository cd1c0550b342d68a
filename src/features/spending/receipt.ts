// What one answer cost and where its time went: joins the trace of its message, the entries of its
// turn, and the metrics of its model calls. Loaded with the first /cost.

import { open } from 'node:fs/promises';
import type { Trace } from '../../kernel/bus/bus.ts';
import type { TurnId } from '../../kernel/message/ids.ts';
import type { TokenUsage, TranscriptEntry } from '../../kernel/message/transcript.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import { callLine } from './call-lines.ts';
import { moneyText } from './rules/budget-limits.ts';
import { conversationCost } from './rules/conversation-cost.ts';
import type { SpendingSettings } from './spending.ts';

type ReceiptParts = {
  /** Of the message that was answered. */
  readonly trace: Trace;
  /** Of its turn. */
  readonly entries: readonly TranscriptEntry[];
  /** The file of the metrics, if there is one. */
  readonly metrics: string;
  readonly settings: Pick<SpendingSettings, 'limits' | 'prices'>;
};

/** A time span, epoch milliseconds. */
type Span = { readonly from: number; readonly to: number };

/** Undefined where no model was called. The time of the model is known from the metrics alone. */
export async function receiptLines(parts: ReceiptParts): Promise<string | undefined> {
  const { trace, entries, metrics, settings } = parts;
  const calls = entries.flatMap((entry) => {
    if (entry.role === 'turn_end') return entry.shared ?? [];
    return entry.role === 'assistant' ? [entry] : [];
  });
  if (calls.length === 0 || trace.turnId === undefined) return undefined;
  const { currency } = settings.limits.budget;
  const { spent, calls: count } = conversationCost(entries, settings.prices, currency);
  const sum = (of: (usage: TokenUsage) => number) =>
    calls
      .reduce((total, { usage }) => total + (usage === undefined ? 0 : of(usage)), 0)
      .toLocaleString('en-US');
  const models = [...new Set(calls.map(({ model }) => model))].join(', ');
  const tokens = t`${sum((usage) => usage.inputTokens)} tokens in (${sum((usage) => usage.cachedTokens)} cached), ${sum((usage) => usage.outputTokens)} out`;
  const money = spent.micros === 0 ? '' : t`, about ${moneyText(spent.micros, currency)}`;
  const times = timeText(trace, entries, await modelSpans(metrics, trace.turnId));
  const called = ngettext(msgid`${count} model call`, `${count} model calls`, count);
  return t`The last answer: ${models}, ${tokens}${money}, ${called}.\n${times}`;
}

function timeText(
  { steps, answers }: Trace,
  entries: readonly TranscriptEntry[],
  spans: readonly Span[],
): string {
  const named = (what: string) => steps.find((step) => step.what === what)?.at;
  const [came, started, finished] = [
    named('received'),
    named('turn started'),
    named('turn finished'),
  ];
  if (came === undefined || started === undefined || finished === undefined) return '';
  const sent = answers.flatMap((answer) => answer.steps.filter(({ what }) => what === 'sent'));
  const delivered = Math.max(finished, ...sent.map((step) => step.at));
  const model = coveredMs(spans);
  const tools = coveredMs(toolSpans(entries));
  const rest = Math.max(0, finished - started - model - tools);
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
  const sides = [delivered - came, started - came, tools, delivered - finished].map(seconds);
  const [whole, waiting, running, delivery] = sides;
  return spans.length === 0
    ? t`Time ${whole}: waiting ${waiting}, answering ${seconds(rest)}, tools ${running}, delivery ${delivery}.`
    : t`Time ${whole}: waiting ${waiting}, preparing ${seconds(rest)}, model ${seconds(model)}, tools ${running}, delivery ${delivery}.`;
}

/** From each answer with calls to the last of their results. */
function toolSpans(entries: readonly TranscriptEntry[]): readonly Span[] {
  return entries.flatMap((entry) => {
    if (entry.role !== 'assistant') return [];
    const ids = new Set(entry.toolCalls.map(({ id }) => id));
    const ends = entries.flatMap((each) =>
      each.role === 'tool' && ids.has(each.callId) ? [each.at] : [],
    );
    return ends.length === 0 ? [] : [{ from: entry.at, to: Math.max(...ends) }];
  });
}

/** Calls at the same time count once. */
function coveredMs(spans: readonly Span[]): number {
  let [total, end] = [0, 0];
  for (const { from, to } of spans.toSorted((one, other) => one.from - other.from)) {
    total += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return total;
}

/** The calls of the last answer are at the end of the file. */
const TAIL_BYTES = 1_000_000;

async function modelSpans(path: string, turn: TurnId): Promise<readonly Span[]> {
  const lines = (await tailOf(path)).split('\n').map(callLine);
  return lines.flatMap((line) => {
    if (line?.request_id !== turn) return [];
    const from = Date.parse(line.timestamp);
    return [{ from, to: from + line.elapsed_ms }];
  });
}

/** Empty where metrics are switched off. */
async function tailOf(path: string): Promise<string> {
  await using file = await open(path).catch(() => undefined);
  if (file === undefined) return '';
  const { size } = await file.stat();
  const from = Math.max(0, size - TAIL_BYTES);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
  return buffer.toString('utf8', 0, bytesRead);
}
