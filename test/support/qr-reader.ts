// Reads QR codes as a camera does, so that tests know that what is shown can be read: from the lines
// of a terminal or from modules of a picture. Written from ISO/IEC 18004; clean codes of level L only,
// nothing is corrected.

type Modules = readonly (readonly boolean[])[];

const COLORS = '\u001B[38;5;16;48;5;231m';
const RESET = '\u001B[0m';
const LEVEL_L = 1;
/** Error correction words per block and number of blocks of level L, by version (table 9). */
const CORRECTION = [0, 7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28];
const BLOCKS = [0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7];

const MASKS: readonly ((row: number, column: number) => boolean)[] = [
  (row, column) => (row + column) % 2 === 0,
  (row) => row % 2 === 0,
  (_row, column) => column % 3 === 0,
  (row, column) => (row + column) % 3 === 0,
  (row, column) => (Math.floor(row / 2) + Math.floor(column / 3)) % 2 === 0,
  (row, column) => ((row * column) % 2) + ((row * column) % 3) === 0,
  (row, column) => (((row * column) % 2) + ((row * column) % 3)) % 2 === 0,
  (row, column) => (((row + column) % 2) + ((row * column) % 3)) % 2 === 0,
];

/** The text of the last code in what a terminal printed; undefined where there is none. */
export function readPrintedQr(printed: string): string | undefined {
  const codes = codesIn(printed);
  const last = codes.at(-1);
  return last === undefined ? undefined : readQr(last);
}

/** How many codes were printed. */
export function countPrintedQr(printed: string): number {
  return codesIn(printed).length;
}

/** The text of a code in an SVG made of one path of rows, as a text or as a `data:` address. */
export function readSvgQr(svg: string): string {
  const base64 = /^data:image\/svg\+xml;base64,(.*)$/.exec(svg)?.[1];
  const drawing = base64 === undefined ? svg : Buffer.from(base64, 'base64').toString();
  const side = Number(/viewBox="0 0 (\d+) /.exec(drawing)?.[1]);
  const modules = Array.from({ length: side }, () => Array.from({ length: side }, () => false));
  for (const [, column, row, length] of drawing.matchAll(/M(\d+) (\d+)h(\d+)v1/g)) {
    modules[Number(row)]?.fill(true, Number(column), Number(column) + Number(length));
  }
  return readQr(modules);
}

/** The text of a code; `dark` covers at least all of it, with or without light around. */
export function readQr(dark: Modules): string {
  const modules = trimmed(dark);
  const size = modules.length;
  const version = (size - 17) / 4;
  if (!Number.isInteger(version) || modules[0]?.length !== size) throw new Error('no QR code');
  return decode(dataWords(words(modules, version), version), version);
}

function codesIn(printed: string): readonly Modules[] {
  const codes: boolean[][][] = [];
  let open: boolean[][] | undefined;
  for (const line of printed.split('\n')) {
    const halves = halvesOf(line);
    if (halves === undefined) {
      open = undefined;
      continue;
    }
    if (open === undefined) {
      open = [];
      codes.push(open);
    }
    open.push(...halves);
  }
  return codes.filter((code) => code.length >= 21);
}

/** The two rows of modules in a line of half blocks; what stands beside them is left out. */
function halvesOf(line: string): boolean[][] | undefined {
  const colored = line.split(COLORS)[1]?.split(RESET)[0];
  const plain = /[█▀▄][█▀▄ ]{20,}[█▀▄]/u.exec(line)?.[0];
  const text = colored ?? plain;
  if (text === undefined) return undefined;
  const drawn = (blocks: string) =>
    [...text].map((one) => blocks.includes(one) === (colored !== undefined));
  return [drawn('█▀'), drawn('█▄')];
}

function trimmed(dark: Modules): Modules {
  const rows = dark.filter((row) => row.includes(true));
  const starts = rows.map((row) => row.indexOf(true));
  const ends = rows.map((row) => row.lastIndexOf(true));
  return rows.map((row) => row.slice(Math.min(...starts), Math.max(...ends) + 1));
}

function words(modules: Modules, version: number): readonly number[] {
  const size = modules.length;
  const at = (row: number, column: number) => modules[row]?.[column] === true;
  const mask = maskOf(at);
  const bits: boolean[] = [];
  let upwards = true;
  for (let right = size - 1; right > 0; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step += 1) {
      const row = upwards ? size - 1 - step : step;
      for (const column of [right, right - 1]) {
        if (isFunction(row, column, size, version)) continue;
        bits.push(at(row, column) !== mask(row, column));
      }
    }
    upwards = !upwards;
  }
  const count = Math.floor(bits.length / 8);
  return Array.from({ length: count }, (_, index) => numberOf(bits, index * 8, 8));
}

function maskOf(at: (row: number, column: number) => boolean) {
  const places = [0, 1, 2, 3, 4, 5, 7, 8].map((column) => at(8, column));
  const rest = [7, 5, 4, 3, 2, 1, 0].map((row) => at(row, 8));
  const format = numberOf([...places, ...rest], 0, 15) ^ 0x5412;
  if (format >> 13 !== LEVEL_L) throw new Error('this reader knows level L only');
  const mask = MASKS[(format >> 10) & 7];
  if (mask === undefined) throw new Error('no such mask');
  return mask;
}

function isFunction(row: number, column: number, size: number, version: number): boolean {
  const far = size - 8;
  if (row <= 8 && (column <= 8 || column >= far)) return true;
  if (row >= far && column <= 8) return true;
  if (row === 6 || column === 6) return true;
  const isVersion = (a: number, b: number) => a < 6 && b >= size - 11 && b < far;
  if (version >= 7 && (isVersion(row, column) || isVersion(column, row))) return true;
  const centers = alignment(version);
  const near = (value: number) => centers.find((center) => Math.abs(center - value) <= 2);
  const [centerRow, centerColumn] = [near(row), near(column)];
  if (centerRow === undefined || centerColumn === undefined) return false;
  const last = size - 7;
  const isCorner = [
    [6, 6],
    [6, last],
    [last, 6],
  ].some(([a, b]) => a === centerRow && b === centerColumn);
  return !isCorner;
}

function alignment(version: number): readonly number[] {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const step = Math.ceil((version * 4 + 4) / (count * 2 - 2)) * 2;
  const last = version * 4 + 10;
  return [6, ...Array.from({ length: count - 1 }, (_, index) => last - step * index).reverse()];
}

/** Takes the blocks apart again; correction words are left out. */
function dataWords(all: readonly number[], version: number): readonly number[] {
  const count = BLOCKS[version] ?? Number.NaN;
  const correction = CORRECTION[version] ?? Number.NaN;
  const short = Math.floor(all.length / count) - correction;
  const longer = all.length % count;
  const blocks: number[][] = Array.from({ length: count }, () => []);
  let next = 0;
  for (let index = 0; index <= short; index += 1) {
    for (const [number, block] of blocks.entries()) {
      if (index === short && number < count - longer) continue;
      block.push(all[next] ?? 0);
      next += 1;
    }
  }
  return blocks.flat();
}

function decode(data: readonly number[], version: number): string {
  const bits = data.flatMap((word) => [...word.toString(2).padStart(8, '0')].map((b) => b === '1'));
  if (numberOf(bits, 0, 4) !== 4) throw new Error('this reader knows byte mode only');
  const lengthBits = version < 10 ? 8 : 16;
  const length = numberOf(bits, 4, lengthBits);
  const bytes = Array.from({ length }, (_, index) => numberOf(bits, 4 + lengthBits + index * 8, 8));
  return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(bytes));
}

function numberOf(bits: readonly boolean[], start: number, length: number): number {
  return bits.slice(start, start + length).reduce((value, bit) => value * 2 + (bit ? 1 : 0), 0);
}
