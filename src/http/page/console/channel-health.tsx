// How each channel was over the last days: a bar, the share of the time it ran, and the interruptions.

import { t } from '/texts.js';
import type { OperationsState } from '../../../features/health/rules/views.ts';
import { Moment } from './parts.tsx';

type Channel = OperationsState['channels'][number];
type Span = Channel['spans'][number];

const DAYS = 7;
const SPAN_MS = DAYS * 86_400_000;
const WIDTH = 1000;
const MIN_WIDTH = 2;
const HEIGHT = 12;
const SHOWN = 20;
const MINUTE_MS = 60_000;

export function ChannelHealth(props: {
  readonly channels: readonly Channel[];
  readonly since: number;
}) {
  const used = props.channels.filter(({ kind, spans }) => kind !== 'off' || spans.length > 0);
  return (
    <section class="card" aria-label={t`Channels`}>
      <h2>{t`Channels`}</h2>
      {used.length === 0 && (
        <p class="soft">
          {t`Only this page and the terminal are connected.`}{' '}
          <a href="#/setup">{t`Connect a channel`}</a>
        </p>
      )}
      {used.map((channel) => (
        <ChannelBar key={channel.name} channel={channel} />
      ))}
    </section>
  );
}

const lengthOf = (spans: readonly Span[]) =>
  spans.reduce((sum, { from, to }) => sum + to - from, 0);

function ChannelBar({
  channel: { name, label, kind, text, spans },
}: {
  readonly channel: Channel;
}) {
  const end = spans.at(-1)?.to ?? 0;
  const start = end - SPAN_MS;
  const all = lengthOf(spans);
  const up = lengthOf(spans.filter((span) => span.kind === 'running'));
  const share = all === 0 ? 0 : Math.floor((1000 * up) / all) / 10;
  const breaks = spans.filter((span) => span.kind === 'degraded' || span.kind === 'stopped');
  const place = (at: number) => (WIDTH * Math.max(0, at - start)) / SPAN_MS;
  const about =
    all < MINUTE_MS ? t`recorded from now on` : t`up for ${share} % of the recorded time`;
  return (
    <div class="channel-health" data-channel={name}>
      <p>
        <strong>{label}</strong>
        {name.includes('@') && <span class="soft"> {name}</span>}{' '}
        <span class={kind === 'degraded' || kind === 'stopped' ? 'problem' : 'soft'}>
          <bdi>{text}</bdi>
        </span>
      </p>
      <svg
        class="health-bar"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={t`${label} in the last ${DAYS} days: ${about}`}
      >
        {spans.map((span) => (
          <rect
            key={span.from}
            class={span.kind}
            x={Math.min(WIDTH - MIN_WIDTH, place(span.from))}
            y={0}
            width={Math.max(MIN_WIDTH, place(span.to) - place(span.from))}
            height={HEIGHT}
          />
        ))}
      </svg>
      <p class="soft ends">
        <span>{t`${DAYS} days ago`}</span>
        <span>{about}</span>
        <span>{t`now`}</span>
      </p>
      {breaks.length > 0 && (
        <details>
          <summary>{t`Interruptions: ${breaks.length}`}</summary>
          <ul class="runs">
            {breaks
              .toReversed()
              .slice(0, SHOWN)
              .map((span) => (
                <li key={span.from}>
                  <Moment at={span.from} />,{' '}
                  {t`${Math.max(1, Math.round((span.to - span.from) / MINUTE_MS))} min`}
                  {span.reason !== undefined && (
                    <span class="detail">
                      <bdi>{span.reason}</bdi>
                    </span>
                  )}
                </li>
              ))}
          </ul>
        </details>
      )}
    </div>
  );
}
