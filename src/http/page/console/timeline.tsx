// What happened to a message: how long each part took as a chart, and each step in words.

import { t } from '/texts.js';
import type { MessageTrace } from '../../../features/conversations/rules/views.ts';
import { ReadWhenOpen, type ViewProps } from './parts.tsx';
import { lengthText } from './tool-details.tsx';

/** Units of the chart's width; a bar is at least as wide as can be seen. */
const WIDTH = 1000;
const LEAST_WIDTH = 6;

type Span = MessageTrace['timeline'][number];

const KINDS: Readonly<Record<Span['kind'], string>> = {
  admitted: t`Admitted and stored`,
  waited: t`Waited`,
  model: t`Model`,
  tool: t`Tool`,
  closed: t`Answer recorded`,
  queued: t`Waited to be sent`,
  sent: t`Sent and confirmed`,
};

export function Life({ message, parts }: ViewProps & { readonly message: string }) {
  return (
    <ReadWhenOpen<MessageTrace>
      parts={parts}
      title={t`What happened to this message`}
      path={`/api/v1/messages/${encodeURIComponent(message)}/trace`}
      show={(trace) => (
        <>
          <Chart spans={trace.timeline} />
          <Steps trace={trace} />
        </>
      )}
    />
  );
}

function Chart({ spans }: { readonly spans: readonly Span[] }) {
  const from = Math.min(...spans.map((span) => span.from));
  const to = Math.max(...spans.map((span) => span.to));
  const whole = Math.max(1, to - from);
  if (spans.length === 0) return null;
  return (
    <ol class="timeline" aria-label={t`How long each part took`}>
      {spans.map((span, index) => {
        const width = Math.max(LEAST_WIDTH, ((span.to - span.from) / whole) * WIDTH);
        const x = Math.min(((span.from - from) / whole) * WIDTH, WIDTH - width);
        return (
          // Spans are only appended.
          <li key={index}>
            <span>
              {KINDS[span.kind]} {span.name !== undefined && <code>{span.name}</code>}
            </span>
            <svg viewBox={`0 0 ${WIDTH} 10`} preserveAspectRatio="none" aria-hidden="true">
              <rect class={span.kind} x={x} y="0" width={width} height="10" />
            </svg>
            <span class="soft">{lengthText(span.to - span.from)}</span>
          </li>
        );
      })}
    </ol>
  );
}

function Steps({ trace }: { readonly trace: MessageTrace }) {
  const begun = trace.steps[0]?.at ?? 0;
  return (
    <ol class="life">
      {[trace, ...trace.answers].map(({ steps }, index) =>
        steps.map(({ at, what, text, detail }) => (
          <li key={`${index} ${at} ${what}`}>
            <span class="soft">{t`after ${lengthText(at - begun)}`}</span>
            <span>
              {index === 0 ? t`Message` : t`Answer`}: {text}
              {detail !== undefined && <span class="detail soft">{detail}</span>}
            </span>
          </li>
        )),
      )}
    </ol>
  );
}
