// All results as one page that needs nothing else: a comparison of the runs of the same tasks, then each
// run with its figures, its plots and what went wrong in it.

import { shortened } from '../../lib/text/cut.ts';
import { barsSvg, escaped, plotSvg } from './plot-svg.ts';
import { costText, figureText, kindOf, scoreText } from './report-text.ts';
import type { StoredResult } from './results.ts';
import type { EvalResult } from './rules/result.ts';

const MAX_SHOWN_FAULTS = 20;
const MAX_FAULT_CHARS = 300;

const STYLE = `
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1d1d1f; background: #fff; }
h1 { font-size: 1.5rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; } h3 { margin-top: 2rem; }
table { border-collapse: collapse; margin: .5rem 0 1rem; } td, th { text-align: left; vertical-align: top; padding: .2rem .9rem .2rem 0; }
th { font-weight: 600; } figure { margin: 1rem 0; overflow-x: auto; } figcaption { color: #555; }
.partial { color: #9a3b00; font-weight: 600; } .small, small { font-size: 12px; color: #555; fill: #555; }
svg { font: 13px system-ui, sans-serif; max-width: none; } .bar { fill: #7aa6d8; } .whisker { stroke: #24405f; stroke-width: 1.5; }
.rule { stroke: #e3e3e3; } .line { fill: none; stroke: #24609c; stroke-width: 2; } .dot { fill: #24609c; } .cell { fill: #222; }
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
${plots.map((plot) => figure(plot.title, plotSvg(plot))).join('\n')}
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
