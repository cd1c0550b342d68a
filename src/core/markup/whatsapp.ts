// Styled text in WhatsApp's marks: *bold* _italic_ ~strike~ `code` ```block``` and `> ` before a
// quoted line. A mark counts there only between a non-letter and a non-space, within one line, so
// each line is marked by itself and read back (core/markup/whatsapp-reader.ts); WhatsApp has no escapes.

import { parseMarkup } from '../markup.ts';
import { splitMarkup, truncateMarkup } from './split.ts';
import { type MarkedLine, renderLine, type Span } from './whatsapp-line.ts';
import { fenced } from './whatsapp-reader.ts';
import type { Markup, Run, Style } from './writer.ts';

/** A beginning is shortened until its marks fit as well. */
const SHORTER = 0.8;

/** Messages of at most `maxUnits` UTF-16 units, marks included; none for a text without any. */
export function splitForWhatsApp(markdown: string, maxUnits: number): readonly string[] {
  const markup = withAddresses(parseMarkup(markdown));
  const unitsOf = (runs: readonly Run[]) => renderWhatsApp(runs).length;
  return splitMarkup(markup, maxUnits, unitsOf).map(({ runs }) => renderWhatsApp(runs));
}

/** As much as one message holds, with an ellipsis where something is left out. */
export function beginningForWhatsApp(markdown: string, maxUnits: number): string {
  const markup = withAddresses(parseMarkup(markdown));
  for (let units = maxUnits; ; units = Math.floor(units * SHORTER)) {
    const text = renderWhatsApp(truncateMarkup(markup, units));
    if (text.length <= maxUnits) return text;
  }
}

/** Writes out the addresses of links, so that they are cut and counted like any text. */
export function withAddresses({ runs, borders }: Markup): Markup {
  const written: Run[] = [];
  const moved: number[] = [];
  let offset = 0;
  let added = 0;
  for (const [index, run] of runs.entries()) {
    while (borders[moved.length] === offset) moved.push(offset + added);
    written.push(run);
    offset += run.text.length;
    const link = linkOf(run);
    if (link === undefined || linkOf(runs[index + 1]) === link) continue;
    const address = addressBehind(link, runs, index);
    written.push({ text: address, styles: run.styles.filter(({ kind }) => kind === 'quote') });
    added += address.length;
  }
  return { runs: written.filter(({ text }) => text !== ''), borders: moved };
}

type LinkStyle = Extract<Style, { kind: 'link' }>;

const linkOf = (run: Run | undefined) =>
  run?.styles.find((style): style is LinkStyle => style.kind === 'link');

/** Nothing where the label says it already: WhatsApp makes bare addresses links by itself. */
function addressBehind(link: LinkStyle, runs: readonly Run[], last: number): string {
  let label = '';
  for (let at = last; linkOf(runs[at]) === link; at -= 1) label = runs[at]?.text + label;
  const bare = (address: string) => address.replace(/^(?:https?:\/\/|mailto:)/i, '');
  const isSame = bare(label.trim()).replace(/\/$/, '') === bare(link.href).replace(/\/$/, '');
  return isSame ? '' : ` (${link.href.replace(/^mailto:/i, '')})`;
}

/** The text of one message. Links must have been written out before. */
function renderWhatsApp(runs: readonly Run[]): string {
  const blocks: string[] = [];
  for (const { pre, runs: inside } of gathered(runs)) {
    blocks.push(pre === 'block' ? codeBlock(inside) : textLines(inside, pre === 'quoted'));
  }
  return blocks.join('').trimEnd().replace(/^\n+/, '');
}

type Gathered = { readonly pre: 'none' | 'block' | 'quoted'; readonly runs: readonly Run[] };

/** Neighbours that are written the same way: code blocks (in a quote: line by line) and the rest. */
function gathered(runs: readonly Run[]): readonly Gathered[] {
  const groups: { pre: Gathered['pre']; runs: Run[] }[] = [];
  for (const run of runs) {
    const isPre = run.styles.some(({ kind }) => kind === 'pre');
    const pre = isPre ? (isQuoted(run) ? 'quoted' : 'block') : 'none';
    const last = groups.at(-1);
    if (last?.pre === pre) last.runs.push(run);
    else groups.push({ pre, runs: [run] });
  }
  return groups;
}

const isQuoted = (run: Run) => run.styles.some(({ kind }) => kind === 'quote');

/** Line breaks at its edges stay outside: the fences hug the code. */
function codeBlock(runs: readonly Run[]): string {
  const text = runs.map((run) => run.text).join('');
  if (text.trim() === '') return text;
  const code = text.trimEnd().replace(/^\n+/, '');
  const start = text.length - text.replace(/^\n+/, '').length;
  return text.slice(0, start) + fenced(code) + text.slice(start + code.length);
}

function textLines(runs: readonly Run[], isCode: boolean): string {
  return linesOf(runs, isCode).map(renderLine).join('\n');
}

function linesOf(runs: readonly Run[], isCode: boolean): readonly MarkedLine[] {
  type Line = { isQuoted: boolean; spans: Span[] };
  let line: Line = { isQuoted: false, spans: [] };
  const lines: Line[] = [line];
  for (const run of runs) {
    const styles = isCode ? (['code'] as const) : marksOf(run);
    for (const [index, text] of run.text.split('\n').entries()) {
      if (index > 0) {
        line = { isQuoted: false, spans: [] };
        lines.push(line);
      }
      if (text === '') continue;
      line.spans.push({ text, styles });
      line.isQuoted ||= isQuoted(run);
    }
  }
  return lines;
}

const RANK = ['bold', 'italic', 'strike', 'code'] as const;

/** Outermost first, each kind once. */
const marksOf = (run: Run) =>
  RANK.filter((kind) => run.styles.some((style) => style.kind === kind));
