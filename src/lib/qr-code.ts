// QR codes as a matrix, as lines of a terminal and as an SVG picture. The caller decides about the
// content and how long it is valid.

import { create } from 'qrcode';

export type QrMatrix = {
  /** Modules per side, without the quiet zone. */
  readonly size: number;
  /** Outside of the matrix everything is light. */
  isDark(row: number, column: number): boolean;
};

/** Light modules around the code (ISO/IEC 18004, 5.3.8). */
const QUIET_ZONE = 4;
/** Fixed colours of the 256: the theme defines the first sixteen. */
const BLACK_ON_WHITE = '\u001B[38;5;16;48;5;231m';
const RESET = '\u001B[0m';

/** @throws Error if the text is longer than a QR code holds (2,953 bytes). */
export function qrMatrix(text: string): QrMatrix {
  const data = new TextEncoder().encode(text);
  // A screen needs little error correction, which makes larger modules.
  const { modules } = create([{ data, mode: 'byte' }], { errorCorrectionLevel: 'L' });
  const { size } = modules;
  const isInside = (index: number) => index >= 0 && index < size;
  return {
    size,
    isDark: (row, column) =>
      isInside(row) && isInside(column) && modules.data[row * size + column] === 1,
  };
}

/** The size of the code in lines of a terminal. */
export function qrTerminalSize({ size }: QrMatrix): {
  readonly columns: number;
  readonly rows: number;
} {
  const side = size + 2 * QUIET_ZONE;
  return { columns: side, rows: Math.ceil(side / 2) };
}

/**
 * Two modules per character. With `colors` black on white, whatever the terminal's colours;
 * without, light modules are drawn, for a dark terminal.
 */
export function qrTerminalLines(
  matrix: QrMatrix,
  { colors }: { readonly colors: boolean },
): readonly string[] {
  const { columns, rows } = qrTerminalSize(matrix);
  return Array.from({ length: rows }, (_, line) => {
    const halves = Array.from({ length: columns }, (_, position) => {
      const column = position - QUIET_ZONE;
      const row = 2 * line - QUIET_ZONE;
      const upper = matrix.isDark(row, column) === colors;
      const lower = matrix.isDark(row + 1, column) === colors;
      return halfBlock(upper, lower);
    });
    return colors ? `${BLACK_ON_WHITE}${halves.join('')}${RESET}` : halves.join('');
  });
}

function halfBlock(upper: boolean, lower: boolean): string {
  if (upper) return lower ? '█' : '▀';
  return lower ? '▄' : ' ';
}

/** A standalone picture: black on white with the quiet zone, scalable. */
export function qrSvg(matrix: QrMatrix): string {
  const side = matrix.size + 2 * QUIET_ZONE;
  const rows = Array.from({ length: matrix.size }, (_, row) => darkRuns(matrix, row));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${side} ${side}" shape-rendering="crispEdges">`,
    `<path fill="#fff" d="M0 0h${side}v${side}H0z"/>`,
    `<path d="${rows.join('')}"/>`,
    '</svg>',
  ].join('');
}

/** The dark modules of a row as path commands, neighbours joined. */
function darkRuns(matrix: QrMatrix, row: number): string {
  let path = '';
  for (let column = 0; column < matrix.size; column += 1) {
    if (!matrix.isDark(row, column)) continue;
    const start = column;
    while (matrix.isDark(row, column + 1)) column += 1;
    const length = column - start + 1;
    path += `M${start + QUIET_ZONE} ${row + QUIET_ZONE}h${length}v1h-${length}z`;
  }
  return path;
}
