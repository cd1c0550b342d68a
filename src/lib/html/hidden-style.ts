// Whether a piece of CSS hides text from people: text that only a model reads is where instructions
// to models are hidden. Pure; the tricks are those seen in mail and on pages (case E23, J04).

type Declarations = readonly (readonly [property: string, value: string])[];
type Test = (value: string) => boolean;

/** Longer values are never needed. */
const MAX_VALUE_CHARS = 200;
const MIN_FONT_PX = 2;
const MIN_OPACITY = 0.05;
const FAR_OFF_PX = -400;
/** Approximate: it only matters whether a length is zero, tiny or far away. */
const PX_PER_UNIT: Readonly<Record<string, number>> = {
  '': 1,
  px: 1,
  pt: 1.33,
  em: 16,
  rem: 16,
  ex: 8,
  ch: 8,
  cm: 38,
  mm: 3.8,
  in: 96,
  vw: 10,
  vh: 8,
  '%': 10,
};
/** Units that do not depend on the surrounding size. */
const ABSOLUTE = /(?:px|pt|rem|cm|mm|in|vw|vh)$/;
const SEE_THROUGH =
  /^(?:transparent|#(?:[0-9a-f]{3}0|[0-9a-f]{6}00)|(?:rgba?|hsla?)\([^)]*[,/]\s*0?\.?0+%?\s*\))$/;

/** Tricks of one property; a later value that a client may not know does not undo them. */
const TRICKS: ReadonlyMap<string, Test> = new Map<string, Test>([
  ['display', (value) => value === 'none'],
  ['visibility', (value) => value === 'hidden' || value === 'collapse'],
  ['content-visibility', (value) => value === 'hidden'],
  ['mso-hide', (value) => value === 'all'],
  [
    'clip',
    (value) =>
      /^rect\(\s*(?:0|1)(?:px)?[\s,]+(?:0|1)(?:px)?[\s,]+(?:0|1)(?:px)?[\s,]+(?:0|1)(?:px)?\s*\)$/.test(
        value,
      ),
  ],
  [
    'clip-path',
    (value) =>
      /^(?:inset\(\s*(?:[5-9]\d|100)%|circle\(\s*0|polygon\(\s*0(?:px)?\s+0(?:px)?\s*\))/.test(
        value,
      ),
  ],
  [
    'transform',
    (value) => /scale[xy]?\(\s*0(?:\.0+)?\s*[,)]|translate[xy]?\(\s*-\d{4,}px/.test(value),
  ],
  ['filter', (value) => /opacity\(\s*0(?:\.0+)?%?\s*\)/.test(value)],
  ['color', (value) => SEE_THROUGH.test(value)],
  ['-webkit-text-fill-color', (value) => SEE_THROUGH.test(value)],
  ['opacity', (value) => number(value) < MIN_OPACITY],
  ['max-height', (value) => length(value) <= 0],
  ['text-indent', (value) => length(value) <= FAR_OFF_PX],
]);

/** `size`: by the size of its letters, which an element inside it may enlarge. */
export type Hiding = 'all' | 'size' | undefined;

export function hidingOf(style: string): Hiding {
  const declarations = readDeclarations(style);
  if (declarations.some(([property, value]) => TRICKS.get(property)?.(value) === true))
    return 'all';
  const last = new Map(declarations);
  if (isOffTheScreen(last) || isShutIn(last) || isOnItsOwnColor(last)) return 'all';
  return fontSizes(declarations).some((size) => length(size) < MIN_FONT_PX) ? 'size' : undefined;
}

export const hidesText = (style: string): boolean => hidingOf(style) !== undefined;

/** Whether its letters are large enough whatever the surrounding size. */
export function setsReadableSize(style: string): boolean {
  const sizes = fontSizes(readDeclarations(style));
  return (
    sizes.length > 0 && sizes.every((size) => ABSOLUTE.test(size) && length(size) >= MIN_FONT_PX)
  );
}

const fontSizes = (declarations: Declarations) =>
  declarations.filter(([property]) => property === 'font-size').map(([, value]) => value);

function readDeclarations(style: string): Declarations {
  return withoutComments(style)
    .replace(/\\(?:([0-9a-f]{1,6})\s?|(.))/gis, (_, hex?: string, other = '') =>
      hex === undefined ? other : characterOf(Number.parseInt(hex, 16)),
    )
    .split(';')
    .flatMap((part) => {
      const colon = part.indexOf(':');
      if (colon < 0) return [];
      const value = part
        .slice(colon + 1)
        .replace(/!\s*important\s*$/i, '')
        .trim();
      const property = part.slice(0, colon).trim().toLowerCase();
      return [[property, value.slice(0, MAX_VALUE_CHARS).toLowerCase()] as const];
    });
}

const characterOf = (code: number) => (code <= 0x10ffff ? String.fromCodePoint(code) : '');

/** Without a regular expression, which takes quadratic time if comments stay open. */
function withoutComments(style: string): string {
  const [first = '', ...rest] = style.split('/*');
  return first + rest.map((part) => part.split('*/').slice(1).join('*/')).join('');
}

/** NaN if there is none; no comparison holds for it. */
function number(value: string): number {
  if (value === '') return Number.NaN;
  return value.endsWith('%') ? Number(value.slice(0, -1)) / 100 : Number(value);
}

function length(value: string | undefined): number {
  const found = /^(-?(?:\d+\.?\d*|\.\d+))([a-z%]*)$/.exec(value ?? '');
  return Number(found?.[1] ?? Number.NaN) * (PX_PER_UNIT[found?.[2] ?? ''] ?? 1);
}

type LastValues = ReadonlyMap<string, string>;

function isOffTheScreen(style: LastValues): boolean {
  const position = style.get('position') ?? '';
  if (!['absolute', 'fixed', 'relative'].includes(position)) return false;
  const sides = ['left', 'top', 'right', 'bottom'];
  return sides.some((side) => length(style.get(side)) <= FAR_OFF_PX);
}

function isShutIn(style: LastValues): boolean {
  if (!/hidden|clip/.test(style.get('overflow') ?? '')) return false;
  const sizes = ['width', 'height', 'max-width', 'max-height'];
  return sizes.some((size) => length(style.get(size)) <= 1);
}

function isOnItsOwnColor(style: LastValues): boolean {
  const ground = style.get('background-color') ?? style.get('background');
  return ground !== undefined && ground !== 'inherit' && ground === style.get('color');
}
