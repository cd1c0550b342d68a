// Charts in the colours of the stylesheet, drawn again in the other theme and at another width: bars for days,
// lines over the hours of a day. The code that draws is loaded with the first chart.

import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';
import { t } from '/texts.js';

const HEIGHT = 180;
const DARK = '(prefers-color-scheme: dark)';
const MIN_TOP = 1;
/** Beyond the highest value. */
const HEADROOM = 1.1;

type Colours = {
  readonly stroke: string;
  readonly other: string;
  readonly axis: uPlot.Axis;
  readonly grid: string;
};
type Drawn = Pick<uPlot.Options, 'scales' | 'axes' | 'series'>;

/** `data` and what `draw` makes of the colours; the figure says where the same is in words. */
function Plot(props: {
  readonly title: string;
  readonly label: string;
  readonly data: uPlot.AlignedData;
  readonly draw: (colours: Colours, paths: uPlot.Series.PathBuilderFactories) => Drawn;
}) {
  const place = useRef<HTMLDivElement>(null);
  const { title, label, data, draw } = props;
  useEffect(() => {
    const within = place.current;
    if (within === null) return;
    const ended = new AbortController();
    let plot: uPlot | undefined;
    const drawAgain = async () => {
      // Without it, the same is in words beneath.
      const code = await import('uplot').catch(() => undefined);
      if (code === undefined || ended.signal.aborted) return;
      const { default: Chart } = code;
      plot?.destroy();
      const options = {
        ...draw(coloursOf(within), Chart.paths),
        width: within.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { show: false },
      };
      plot = new Chart(options, data, within);
    };
    void drawAgain();
    const theme = matchMedia(DARK);
    theme.addEventListener('change', drawAgain);
    const resized = new ResizeObserver(() =>
      plot?.setSize({ width: within.clientWidth, height: HEIGHT }),
    );
    resized.observe(within);
    return () => {
      ended.abort();
      theme.removeEventListener('change', drawAgain);
      resized.disconnect();
      plot?.destroy();
    };
  }, [JSON.stringify(data)]);
  return (
    <figure class="chart">
      <figcaption class="soft">{title}</figcaption>
      <div ref={place} role="img" aria-label={label} />
    </figure>
  );
}

function coloursOf(within: HTMLElement): Colours {
  const { color, borderTopColor, outlineColor, font, columnRuleColor } = getComputedStyle(within);
  const axis = { stroke: outlineColor, font, ticks: { show: false } };
  return { stroke: color, other: columnRuleColor, axis, grid: borderTopColor };
}

const fromZero: uPlot.Scale = {
  range: (_plot, _low, high) => [0, Math.max(MIN_TOP, (high ?? 0) * HEADROOM)],
};

export function Bars(props: {
  readonly labels: readonly string[];
  readonly values: readonly number[];
  readonly title: string;
}) {
  const { labels, values, title } = props;
  return (
    <Plot
      title={title}
      label={t`${title}; the same figures are in the table beneath`}
      data={[labels.map((_label, at) => at), [...values]]}
      draw={({ stroke, axis, grid }, paths) => ({
        scales: {
          x: { time: false, range: [-0.7, labels.length - 0.3] },
          y: { range: (_plot, _low, high) => [0, high > 0 ? high * HEADROOM : 1] },
        },
        axes: [
          {
            ...axis,
            size: 28,
            grid: { show: false },
            values: (_plot, at) => at.map((index) => labels[index]?.slice('2026-'.length) ?? ''),
          },
          { ...axis, size: 64, grid: { stroke: grid, width: 1 } },
        ],
        series: [
          {},
          {
            ...{ fill: stroke, width: 0, points: { show: false } },
            ...(paths.bars === undefined ? {} : { paths: paths.bars({ size: [0.7, 40] }) }),
          },
        ],
      })}
    />
  );
}

/** Two counts over time: the first as an area, the second as a dashed line. */
export function Lines(props: {
  readonly title: string;
  readonly label: string;
  /** Epoch milliseconds. */
  readonly times: readonly number[];
  readonly first: readonly (number | null)[];
  readonly second: readonly (number | null)[];
}) {
  const { title, label, times, first, second } = props;
  const clock = (at: number) =>
    new Date(at * 1000).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
  return (
    <Plot
      title={title}
      label={label}
      data={[times.map((at) => at / 1000), [...first], [...second]]}
      draw={({ stroke, other, axis, grid }) => ({
        scales: { y: fromZero },
        axes: [
          {
            ...axis,
            size: 28,
            grid: { show: false },
            values: (_plot, at) => at.map(clock),
          },
          {
            ...{ ...axis, size: 40, grid: { stroke: grid, width: 1 } },
            values: (_plot, at) => at.map((value) => (Number.isInteger(value) ? `${value}` : '')),
          },
        ],
        series: [
          {},
          {
            stroke,
            fill: `${stroke.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.2)')}`,
            width: 2,
            points: { show: false },
          },
          { stroke: other, width: 2, dash: [6, 4], points: { show: false } },
        ],
      })}
    />
  );
}
