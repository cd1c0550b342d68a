// All results as one self-contained page: a comparison of runs of the same tasks, then each run
// with figures, inline SVG plots and errors.

import { shortened } from '../../lib/text/cut.ts';
import {
  costText,
  figureText,
  kindOf,
  percent,
  type StoredResult,
  scoreText,
} from './report-text.ts';
import type { EvalPlot, EvalResult } from './rules/result.ts';

const WIDTH = 560;
const LEFT = 110;
const RIGHT = 70;
const TOP = 12;
const ROW = 26;
const BAR = 16;
const LINE_HEIGHT = 200;
const BOTTOM = 40;
const TICKS = 4;

type Bars = Extract<EvalPlot, { readonly kind: 'bars' }>['bars'];

export const escaped = (text: string) =>
  text.replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`).replace(/\p{Cc}/gu, ' ');

function plotHtml(plot: EvalPlot): string {
  if (plot.kind === 'bars') return barsSvg(plot.title, plot.bars);
  return plot.kind === 'grid' ? gridTable(plot) : lineSvg(plot);
}

const svg = (title: string, height: number, width: number, inner: readonly string[]) =>
  `<svg role="img" aria-label="${escaped(title)}" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">${inner.join('')}</svg>`;

const text = (x: number, y: number, words: string, anchor: 'start' | 'middle' | 'end', kind = '') =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}"${kind === '' ? '' : ` class="${kind}"`}>${escaped(words)}</text>`;

const line = (x1: number, y1: number, x2: number, y2: number, kind: string) =>
  `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" class="${kind}"/>`;

/** Shares with their confidence intervals. */
function barsSvg(title: string, bars: Bars): string {
  const longest = Math.max(0, ...bars.map(({ label }) => label.length));
  const left = Math.max(LEFT, Math.min(460, longest * 7.4 + 16));
  const width = Math.max(WIDTH, left + 320);
  const span = width - left - RIGHT;
  const height = TOP + bars.length * ROW + 24;
  const ticks = Array.from({ length: TICKS + 1 }, (_, at) => {
    const x = left + (span * at) / TICKS;
    const label = text(x, height - 4, `${(100 * at) / TICKS} %`, 'middle', 'small');
    return line(x, TOP, x, height - 20, 'rule') + label;
  });
  const drawn = bars.map(({ label, value, low, high }, at) => {
    const y = TOP + at * ROW + ROW / 2;
    const to = (share: number) => left + span * share;
    return [
      text(left - 8, y + 4, label, 'end'),
      `<rect x="${left}" y="${y - BAR / 2}" width="${(span * value).toFixed(1)}" height="${BAR}" class="bar"/>`,
      line(to(low), y, to(high), y, 'whisker'),
      line(to(low), y - 4, to(low), y + 4, 'whisker'),
      line(to(high), y - 4, to(high), y + 4, 'whisker'),
      text(width - RIGHT + 8, y + 4, percent(value), 'start'),
    ].join('');
  });
  return svg(title, height, width, [...ticks, ...drawn]);
}

type Grid = Extract<EvalPlot, { readonly kind: 'grid' }>;

function gridTable({ rows, columns, cells }: Grid): string {
  const cellOf = (row: string, column: string) => {
    const found = cells.find((cell) => cell.row === row && cell.column === column);
    const fill = found === undefined ? '#e5e5e5' : shade(found.value);
    const words = found === undefined ? 'not tried' : percent(found.value);
    return `<td class="cell" style="background: ${fill}">${words}</td>`;
  };
  const heads = ['', ...columns].map((column) => `<th class="small">${escaped(column)}</th>`);
  const lines = rows.map((row) => {
    const shown = columns.map((column) => cellOf(row, column));
    return `<tr><th class="small">${escaped(row)}</th>${shown.join('')}</tr>`;
  });
  return `<table><tr>${heads.join('')}</tr>${lines.join('')}</table>`;
}

/** From red over yellow to green. */
const shade = (share: number) => `hsl(${Math.round(share * 120)} 65% 72%)`;

function lineSvg({
  title,
  xLabel,
  yLabel,
  points,
}: Extract<EvalPlot, { readonly kind: 'line' }>): string {
  const height = TOP + LINE_HEIGHT + BOTTOM;
  const xs = points.map(({ x }) => x);
  const [first, last] = [Math.min(...xs), Math.max(...xs)];
  const highest = Math.max(1, ...points.map(({ y }) => y));
  const span = WIDTH - LEFT - 20;
  const atX = (x: number) => LEFT + (span * (x - first)) / Math.max(1, last - first);
  const atY = (y: number) => TOP + LINE_HEIGHT * (1 - y / highest);
  const rules = Array.from({ length: TICKS + 1 }, (_, at) => {
    const value = (highest * at) / TICKS;
    const y = atY(value);
    return (
      line(LEFT, y, WIDTH - 20, y, 'rule') +
      text(LEFT - 8, y + 4, figureText(value), 'end', 'small')
    );
  });
  const path = points.map(({ x, y }) => `${atX(x).toFixed(1)},${atY(y).toFixed(1)}`).join(' ');
  return svg(title, height, WIDTH, [
    ...rules,
    `<polyline points="${path}" class="line"/>`,
    ...points.map(
      ({ x, y }) =>
        `<circle cx="${atX(x).toFixed(1)}" cy="${atY(y).toFixed(1)}" r="2.5" class="dot"/>`,
    ),
    text(LEFT, height - 22, figureText(first), 'middle', 'small'),
    text(WIDTH - 20, height - 22, figureText(last), 'middle', 'small'),
    text(LEFT + span / 2, height - 6, xLabel, 'middle', 'small'),
    text(0, TOP + 4, yLabel, 'start', 'small'),
  ]);
}

const MAX_SHOWN_FAULTS = 20;
const MAX_FAULT_CHARS = 300;

const STYLE = `
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1d1d1f; background: #fff; }
h1 { font-size: 1.5rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; } h3 { margin-top: 2rem; }
table { border-collapse: collapse; margin: .5rem 0 1rem; } td, th { text-align: left; vertical-align: top; padding: .2rem .9rem .2rem 0; }
th { font-weight: 600; } figure { margin: 1rem 0; overflow-x: auto; } figcaption { color: #555; }
.partial { color: #9a3b00; font-weight: 600; } .small, small { font-size: 12px; color: #555; fill: #555; }
svg { font: 13px system-ui, sans-serif; max-width: none; } .bar { fill: #7aa6d8; } .whisker { stroke: #24405f; stroke-width: 1.5; }
.rule { stroke: #e3e3e3; } .line { fill: none; stroke: #24609c; stroke-width: 2; } .dot { fill: #24609c; } .cell { padding: .4rem 1rem; border: 1px solid #fff; text-align: center; font-size: 12px; }
td.answer { max-width: 24rem; overflow-wrap: anywhere; }`;

export function reportPage(results: readonly StoredResult[]): string {
  const kinds = [...Map.groupBy(results, ({ result }) => kindOf(result))];
  const sections = kinds.map(
    ([kind, runs]) =>
      `<h2>${escaped(kind)}</h2>\n${comparison(runs)}\n${runs
        .toReversed()
        .map(({ name, result }) => section(name, result))
        .join('\n')}`,
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>nanobot evaluations</title><style>${STYLE}
</style></head><body>
<h1>nanobot evaluations</h1>
<p>Shares are shown with the interval in which the true share lies with 95 % certainty. Errors of a model's service are no wrong answers and are counted apart.</p>
${sections.join('\n')}
</body></html>
`;
}

function comparison(runs: readonly StoredResult[]): string {
  const bars = runs.flatMap(({ result: { model, startedAt, score, status } }) => {
    const { rate, low, high } = score;
    const label = `${model} ${startedAt.slice(5, 16).replace('T', ' ')}${status === 'partial' ? ' (partial)' : ''}`;
    return rate === undefined ? [] : [{ label, value: rate, low, high }];
  });
  return figure('right answers by run', barsSvg('right answers by run', bars));
}

const figure = (caption: string, svg: string) =>
  `<figure><figcaption>${escaped(caption)}</figcaption>${svg}</figure>`;

function section(name: string, result: EvalResult): string {
  const { model, startedAt, endedAt, status, because = '', figures, score, cost, plots } = result;
  const rows = [
    ['right', scoreText(score)],
    ...Object.entries(figures).map(([figureName, value]) => [figureName, figureText(value)]),
    ['cost', costText(cost)],
    ['from, to', `${startedAt}, ${endedAt}`],
    ['file', `${name}, written by nanobot ${result.program}`],
  ];
  const partial = status === 'partial' ? `<p class="partial">Partial: ${escaped(because)}</p>` : '';
  return `<h3>${escaped(model)}</h3>${partial}
${tableOf(rows)}
${plots.map((plot) => figure(plot.title, plotHtml(plot))).join('\n')}
${faults(result)}`;
}

const tableOf = (rows: readonly (readonly string[])[]) =>
  `<table>${rows.map(([head = '', value = '']) => `<tr><th>${escaped(head)}</th><td>${escaped(value)}</td></tr>`).join('')}</table>`;

function faults({ items }: EvalResult): string {
  const wrong = items.filter(({ state }) => state !== 'right');
  if (wrong.length === 0) return '';
  const rows = wrong
    .slice(0, MAX_SHOWN_FAULTS)
    .map(
      ({ id, state, wanted, got }) =>
        `<tr><td>${escaped(id)}</td><td>${state}</td><td class="answer">${escaped(cut(wanted))}</td><td class="answer">${escaped(cut(got))}</td></tr>`,
    );
  const more =
    wrong.length > rows.length
      ? `<p><small>and ${wrong.length - rows.length} more</small></p>`
      : '';
  return `<details><summary>${wrong.length} not right</summary><table><tr><th>item</th><th></th><th>wanted</th><th>given</th></tr>${rows.join('')}</table>${more}</details>`;
}

const cut = (text: string) => shortened(text, MAX_FAULT_CHARS, ' [...]');
