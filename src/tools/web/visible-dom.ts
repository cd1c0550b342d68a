// Takes out of a page what a person would not see: hidden parts, comments, texts of pictures, what
// only programs read. Walks without recursion, as a page may be nested a million deep.

import { hidesText } from '../../lib/html/hidden-style.ts';
import { UNSEEN_ELEMENTS } from '../../lib/html/html-text.ts';

/** Beside those that are never text: what a page works with. */
const CONTROLS = new Set('link meta embed picture img map area input button'.split(' '));
/** A page that hides these shows them by a program that we do not run. */
const NEVER_HIDDEN = new Set(['html', 'body', 'main', 'article']);
const KEPT_ATTRIBUTES = new Set([
  'href',
  'class',
  'id',
  'dir',
  'lang',
  'start',
  'value',
  'reversed',
  'colspan',
  'rowspan',
  'role',
]);
/** Rules of a style sheet that are looked at: each costs a walk over the page. */
const MAX_RULES = 300;
const ELEMENT = 1;
const TEXT = 3;

/** Removes what is not seen; returns how deep the rest is nested. */
export function keepVisible(document: Document): number {
  for (const hidden of hiddenByRules(document)) hidden.remove();
  const root = document.documentElement;
  let deepest = 0;
  let depth = 0;
  let node: Node | null = root;
  while (node !== null) {
    deepest = Math.max(deepest, depth);
    const isSeen =
      node.nodeType === TEXT || (node.nodeType === ELEMENT && isVisible(node as Element));
    if (isSeen && node.nodeType === ELEMENT) stripAttributes(node as Element);
    if (isSeen && node.firstChild !== null) {
      node = node.firstChild;
      depth += 1;
      continue;
    }
    const [next, climbed] = following(node, root);
    if (!isSeen) (node as ChildNode).remove();
    node = next;
    depth -= climbed;
  }
  return deepest;
}

/** The next node that is not below this one, and how many levels higher it stands. */
function following(node: Node, root: Node): readonly [Node | null, number] {
  let climbed = 0;
  for (let at: Node | null = node; at !== null && at !== root; at = at.parentNode) {
    if (at.nextSibling !== null) return [at.nextSibling, climbed];
    climbed += 1;
  }
  return [null, climbed];
}

function isVisible(element: Element): boolean {
  const name = element.localName;
  if (name === 'head') return false;
  if (UNSEEN_ELEMENTS.has(name) || CONTROLS.has(name)) return false;
  if (name === 'dialog' && !element.hasAttribute('open')) return false;
  if (NEVER_HIDDEN.has(name)) return true;
  if (element.hasAttribute('hidden') || element.getAttribute('aria-hidden') === 'true')
    return false;
  const style = element.getAttribute('style');
  if (style !== null && hidesText(style)) return false;
  const [width, height] = [element.getAttribute('width'), element.getAttribute('height')];
  return !(isHair(width) && isHair(height)) && !isWhite(element.getAttribute('color'));
}

const isHair = (size: string | null) => size !== null && /^[01](px)?$/.test(size.trim());
/** `<font color=white>`: the page's ground is white unless it says otherwise. */
const isWhite = (color: string | null) => color !== null && /^(#?fff(fff)?|white)$/i.test(color);

function stripAttributes(element: Element): void {
  for (const { name } of [...element.attributes]) {
    if (!KEPT_ATTRIBUTES.has(name)) element.removeAttribute(name);
  }
}

function hiddenByRules(document: Document): readonly Element[] {
  const selectors: string[] = [];
  for (const sheet of document.styleSheets) {
    for (const rule of sheet.cssRules) {
      if (selectors.length >= MAX_RULES || !('selectorText' in rule) || !('style' in rule))
        continue;
      const style = (rule as CSSStyleRule).style.cssText;
      if (hidesText(style)) selectors.push(String(rule.selectorText));
    }
  }
  return selectors.flatMap((selector) => matching(document, selector));
}

function matching(document: Document, selector: string): readonly Element[] {
  try {
    const found = [...document.querySelectorAll(selector)];
    return found.filter((element) => !NEVER_HIDDEN.has(element.localName));
  } catch {
    // A selector that the parser does not know hides nothing here.
    return [];
  }
}
