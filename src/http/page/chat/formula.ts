// TeX as MathML nodes. Loaded with the first formula.

import temml from 'temml';

/** Steps of a macro, and the size of a box in em and points: a formula must not stop the page. */
const MAX_EXPAND = 500;
const MAX_SIZE: [number, number] = [40, 400];

/** @throws ParseError for what is no TeX */
export function formulaNodes(tex: string, isDisplay: boolean): readonly Node[] {
  const drawn = document.createElement('span');
  temml.render(tex, drawn, {
    displayMode: isDisplay,
    // No links, pictures, classes or styles of the text's own.
    trust: false,
    strict: false,
    throwOnError: true,
    maxExpand: MAX_EXPAND,
    maxSize: MAX_SIZE,
  });
  return [...drawn.childNodes];
}
