// The life of a message as spans of time, for a chart: from its arrival over the model calls and tools of
// its turn to the delivery of the answers. A call lasts from the end of what came before it.

import type { TranscriptEntry } from '../../../kernel/message/transcript.ts';

type Step = { readonly at: number; readonly what: string };
type Steps = { readonly steps: readonly Step[] };

export type SpanKind = 'admitted' | 'waited' | 'model' | 'tool' | 'closed' | 'queued' | 'sent';

/** Epoch milliseconds. `name`: of a model or tool. */
export type Span = {
  readonly kind: SpanKind;
  readonly from: number;
  readonly to: number;
  readonly name?: string;
};

/** `entries`: those of the turn that answered it, as far as they are stored. */
export function timelineOf(
  { steps, answers }: Steps & { readonly answers: readonly Steps[] },
  entries: readonly TranscriptEntry[],
): readonly Span[] {
  const named = timesOf(steps);
  const started = named('turn started');
  const work = started === undefined ? [] : workSpans(entries, started);
  const worked = work.at(-1)?.to ?? started;
  const deliveries = answers.flatMap((answer) => {
    const named = timesOf(answer.steps);
    return [
      ...between('queued', named('queued'), named('sending')),
      ...between('sent', named('sending'), named('sent')),
    ];
  });
  return [
    ...between('admitted', named('received'), named('accepted')),
    ...between('waited', named('accepted'), started),
    ...work,
    ...between('closed', worked, named('turn finished')),
    ...deliveries,
  ];
}

/** The last time of each kind of step: a retried one counts from its last try. */
const timesOf = (steps: readonly Step[]) => (wanted: string) =>
  steps.findLast(({ what }) => what === wanted)?.at;

function between(
  kind: SpanKind,
  from: number | undefined,
  to: number | undefined,
): readonly Span[] {
  return from === undefined || to === undefined || to < from ? [] : [{ kind, from, to }];
}

function workSpans(entries: readonly TranscriptEntry[], started: number): readonly Span[] {
  const spans: Span[] = [];
  let now = started;
  let called = started;
  for (const entry of entries) {
    if (entry.role === 'user') now = Math.max(now, entry.at);
    if (entry.role === 'assistant') {
      spans.push({ kind: 'model', name: entry.model, from: now, to: Math.max(now, entry.at) });
      now = Math.max(now, entry.at);
      called = now;
    }
    // Tools of one answer may run at the same time.
    if (entry.role === 'tool') {
      const to = Math.max(called, entry.at);
      spans.push({ kind: 'tool', name: entry.name, from: called, to });
      now = Math.max(now, to);
    }
  }
  return spans;
}
