// Tables in a chat: aligned fixed-width text while it fits a phone, else one paragraph per row. The
// header lines are repeated where the text is cut inside an aligned table.

import type { MarkedToken, Tokens } from 'marked';
import { strictTokens } from './lex.ts';
import { displayWidth } from './text.ts';
import { MarkupWriter, runsText, type Style } from './writer.ts';

/** A phone shows about this many fixed-width columns before lines wrap. */
const MAX_COLUMNS = 42;

type WriteInline = (
  tokens: readonly MarkedToken[],
  styles: readonly Style[],
  writer: MarkupWriter,
) => void;

export function writeTable(
  table: Tokens.Table,
  styles: readonly Style[],
  writer: MarkupWriter,
  writeInline: WriteInline,
): void {
  const rows = [table.header, ...table.rows].map((row) =>
    row.map((cell) => plainCell(cell, writeInline)),
  );
  const widths = table.header.map((_, column) =>
    rows.reduce((widest, row) => Math.max(widest, displayWidth(row[column]?.text ?? '')), 1),
  );
  const totalWidth = widths.reduce((sum, width) => sum + width + 3, -3);
  const hasLinks = rows.some((row) => row.some((cell) => cell.hasLink));
  if (totalWidth > MAX_COLUMNS || hasLinks) {
    writeRows(table, styles, writer, writeInline);
    return;
  }
  const lines = rows.map((row) =>
    alignedLine(
      row.map((cell) => cell.text),
      widths,
      table.align,
    ),
  );
  const rule = widths.map((width) => '-'.repeat(width)).join('-+-');
  const heading = `${lines[0]}\n${rule}\n`;
  const quotes = styles.filter(({ kind }) => kind === 'quote');
  writer.write(heading + lines.slice(1).join('\n'), [...quotes, { kind: 'pre', heading }]);
}

type Cell = { readonly text: string; readonly hasLink: boolean };

function plainCell(cell: Tokens.TableCell, writeInline: WriteInline): Cell {
  const scratch = new MarkupWriter();
  writeInline(strictTokens(cell.tokens), [], scratch);
  const { runs } = scratch.finish();
  return {
    text: runsText(runs).replaceAll('\n', ' '),
    hasLink: runs.some((run) => run.styles.some(({ kind }) => kind === 'link')),
  };
}

function alignedLine(
  cells: readonly string[],
  widths: readonly number[],
  align: readonly (string | null)[],
): string {
  const padded = widths.map((width, column) => {
    const text = cells[column] ?? '';
    const space = Math.max(0, width - displayWidth(text));
    if (align[column] === 'right') return ' '.repeat(space) + text;
    const left = align[column] === 'center' ? Math.floor(space / 2) : 0;
    return ' '.repeat(left) + text + ' '.repeat(space - left);
  });
  return padded.join(' | ').trimEnd();
}

/** Wide tables: the first cell as a title, the others below it under their column's name. */
function writeRows(
  table: Tokens.Table,
  styles: readonly Style[],
  writer: MarkupWriter,
  writeInline: WriteInline,
) {
  if (table.rows.length === 0) return writeCells(table.header, styles, writer, writeInline);
  for (const row of table.rows) {
    writer.gap(1);
    for (const [column, cell] of row.entries()) {
      const isTitle = column === 0;
      const header = table.header[column];
      if (!isTitle) writer.write('\n• ', styles);
      if (header !== undefined && header.text !== '') {
        writeInline(strictTokens(header.tokens), [...styles, { kind: 'bold' }], writer);
        writer.write(': ', styles);
      }
      writeInline(
        strictTokens(cell.tokens),
        isTitle ? [...styles, { kind: 'bold' }] : styles,
        writer,
      );
    }
  }
}

function writeCells(
  cells: readonly Tokens.TableCell[],
  styles: readonly Style[],
  writer: MarkupWriter,
  writeInline: WriteInline,
) {
  for (const [column, cell] of cells.entries()) {
    if (column > 0) writer.write(' | ', styles);
    writeInline(strictTokens(cell.tokens), [...styles, { kind: 'bold' }], writer);
  }
}
