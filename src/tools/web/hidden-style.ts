// Whether a piece of CSS takes text out of a person's sight: what only a model would read is where
// orders to models are hidden. Pure; the tricks are those seen in mail and on pages (case E23, J04).

type Declarations = ReadonlyMap<string, string>;
type Trick = (style: Declarations) => boolean;

const MAX_STYLE_CHARS = 5000;
const MIN_FONT_PX = 2;
const MIN_OPACITY = 0.05;
const FAR_OFF_PX = -400;
/** Rough: what matters is whether a length is nothing, a hair or far away. */
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
const SEE_THROUGH =
  /^(?:transparent|#(?:[0-9a-f]{3}0|[0-9a-f]{6}00)|(?:rgba?|hsla?)\([^)]*[,/]\s*0?\.?0+%?\s*\))$/;

const TRICKS: readonly Trick[] = [
  is('display', /^none$/),
  is('visibility', /^(?:hidden|collapse)$/),
  is('content-visibility', /^hidden$/),
  is('mso-hide', /^all$/),
  is(
    'clip',
    /^rect\(\s*(?:0|1)(?:px)?[\s,]+(?:0|1)(?:px)?[\s,]+(?:0|1)(?:px)?[\s,]+(?:0|1)(?:px)?\s*\)$/,
  ),
  is(
    'clip-path',
    /^(?:inset\(\s*(?:[5-9]\d|100)%|circle\(\s*0|polygon\(\s*0(?:px)?\s+0(?:px)?\s*\))/,
  ),
  is('transform', /scale[xy]?\(\s*0(?:\.0+)?\s*[,)]|translate[xy]?\(\s*-\d{4,}px/),
  is('filter', /opacity\(\s*0(?:\.0+)?%?\s*\)/),
  is('color', SEE_THROUGH),
  is('-webkit-text-fill-color', SEE_THROUGH),
  (style) => number(style.get('opacity')) < MIN_OPACITY,
  (style) => length(style.get('font-size')) < MIN_FONT_PX,
  (style) => length(style.get('text-indent')) <= FAR_OFF_PX,
  isOffTheScreen,
  isShutIn,
  isOnItsOwnColor,
];

export function readDeclarations(style: string): Declarations {
  const declarations = new Map<string, string>();
  for (const part of style
    .slice(0, MAX_STYLE_CHARS)
    .replace(/\/\*.*?\*\//gs, '')
    .split(';')) {
    const colon = part.indexOf(':');
    if (colon < 0) continue;
    const value = part.slice(colon + 1).replace(/!\s*important\s*$/i, '');
    declarations.set(part.slice(0, colon).trim().toLowerCase(), value.trim().toLowerCase());
  }
  return declarations;
}

export function hidesText(style: Declarations): boolean {
  return TRICKS.some((trick) => trick(style));
}

function is(property: string, pattern: RegExp): Trick {
  return (style) => pattern.test(style.get(property) ?? '');
}

/** NaN where there is none, which no comparison takes. */
function number(value: string | undefined): number {
  if (value === undefined || value === '') return Number.NaN;
  return value.endsWith('%') ? Number(value.slice(0, -1)) / 100 : Number(value);
}

function length(value: string | undefined): number {
  const found = /^(-?(?:\d+\.?\d*|\.\d+))([a-z%]*)$/.exec(value ?? '');
  return Number(found?.[1] ?? Number.NaN) * (PX_PER_UNIT[found?.[2] ?? ''] ?? 1);
}

function isOffTheScreen(style: Declarations): boolean {
  const position = style.get('position') ?? '';
  if (!['absolute', 'fixed', 'relative'].includes(position)) return false;
  const sides = ['left', 'top', 'right', 'bottom'];
  return sides.some((side) => length(style.get(side)) <= FAR_OFF_PX);
}

function isShutIn(style: Declarations): boolean {
  if (!/hidden|clip/.test(style.get('overflow') ?? '')) return false;
  const sizes = ['width', 'height', 'max-width', 'max-height'];
  return sizes.some((size) => length(style.get(size)) <= 1);
}

function isOnItsOwnColor(style: Declarations): boolean {
  const ground = style.get('background-color') ?? style.get('background');
  return ground !== undefined && ground !== 'inherit' && ground === style.get('color');
}
