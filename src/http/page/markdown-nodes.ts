// Markdown tokens to DOM nodes. Raw HTML is shown as written, pictures become links that load
// nothing, and only addresses that a reader can judge become links.

import type { MarkedToken, Token, Tokens } from 'marked';
import { t } from '/texts.js';
import { decodeReferences } from '../../lib/markup/writer.ts';
import { type Formula, isFormula } from './chat/formula-syntax.ts';
import { whenShown } from './chat/when-shown.ts';
import { codeBlock } from './code-block.ts';
import { type Child, element } from './element.ts';

/** Nodes of the block tokens, one per block. Each has the direction of its own script. */
export function blockNodes(tokens: readonly Token[]): readonly HTMLElement[] {
  return withoutSpace(tokens).map(directed);
}

const withoutSpace = (tokens: readonly Token[]) => tokens.filter(({ type }) => type !== 'space');

function directed(token: Token): HTMLElement {
  const isLeftToRight = token.type === 'code' || token.type === 'formula';
  return Object.assign(blockNode(token), { dir: isLeftToRight ? 'ltr' : 'auto' });
}

const HEADINGS = ['h3', 'h4', 'h5', 'h6'] as const;

function blockNode(given: Token): HTMLElement {
  if (isFormula(given)) return formulaNode(given);
  const token = given as MarkedToken;
  switch (token.type) {
    case 'heading':
      // The page has its own title; a message's headings rank below it.
      return element(HEADINGS[token.depth - 1] ?? 'h6', {}, ...inlineNodes(token.tokens));
    case 'code':
      return codeNode(token);
    case 'blockquote':
      return element('blockquote', {}, ...withoutSpace(token.tokens).map(blockNode));
    case 'list':
      return listNode(token);
    case 'table':
      return tableNode(token);
    case 'hr':
      return element('hr');
    case 'paragraph':
      return element('p', {}, ...inlineNodes(token.tokens));
    case 'html':
    case 'def':
      return element('p', { className: 'verbatim' }, token.raw.trimEnd());
    default:
      return element('p', {}, ...inlineNodes([token]));
  }
}

const CLOSED_FENCE = /\n {0,3}(?:`{3,}|~{3,})\s*$/;

function codeNode({ text, lang = '', raw }: Tokens.Code): HTMLElement {
  const language = /^[\w+#.-]+/.exec(lang)?.[0];
  if (language === 'math') return formulaNode({ type: 'formula', raw, text, isDisplay: true });
  const block = codeBlock(text, language);
  // While it is written it is no diagram yet.
  if (language === 'mermaid' && CLOSED_FENCE.test(raw))
    whenShown(block, async () => {
      const { drawDiagram } = await import('./chat/diagram.ts');
      await drawDiagram(block, text);
    });
  return block;
}

/** Its source until it is drawn, and where it cannot be. */
function formulaNode({ text, isDisplay }: Formula): HTMLElement {
  const node = element('span', { className: isDisplay ? 'formula display' : 'formula' });
  node.append(element('code', {}, text));
  whenShown(node, async () => {
    const { drawFormula } = await import('./chat/formula.ts');
    drawFormula(node, text, isDisplay);
  });
  return node;
}

function listNode({ ordered, start, items }: Tokens.List): HTMLElement {
  const nodes = items.map((item) => element('li', {}, ...itemNodes(item)));
  if (!ordered) return element('ul', {}, ...nodes);
  return element('ol', { start: Number(start) || (start === 0 ? 0 : 1) }, ...nodes);
}

function itemNodes({ tokens }: Tokens.ListItem): readonly Child[] {
  return tokens.flatMap((token) => {
    if (token.type === 'space') return [];
    if (token.type === 'text' || token.type === 'checkbox') return inlineNodes([token]);
    return [blockNode(token)];
  });
}

function tableNode({ header, rows }: Tokens.Table): HTMLElement {
  const cell = (tag: 'th' | 'td') => (token: Tokens.TableCell) => {
    const node = element(tag, {}, ...inlineNodes(token.tokens));
    if (token.align) node.classList.add(`align-${token.align}`);
    return node;
  };
  return element(
    'div',
    { className: 'table-scroll', tabIndex: 0, role: 'group', aria: { label: t`Table` } },
    element(
      'table',
      {},
      element('thead', {}, element('tr', {}, ...header.map(cell('th')))),
      element('tbody', {}, ...rows.map((row) => element('tr', {}, ...row.map(cell('td'))))),
    ),
  );
}

function inlineNodes(tokens: readonly Token[] = []): readonly Child[] {
  return tokens.map(inlineNode);
}

function inlineNode(given: Token): Child {
  if (isFormula(given)) return formulaNode(given);
  const token = given as MarkedToken;
  switch (token.type) {
    case 'strong':
    case 'em':
    case 'del':
      return element(token.type, {}, ...inlineNodes(token.tokens));
    case 'codespan':
      return element('code', {}, token.text);
    case 'br':
      return element('br');
    case 'checkbox':
      return document.createTextNode(token.checked ? '☑ ' : '☐ ');
    case 'link':
      return linkNode(token, inlineNodes(token.tokens));
    case 'image':
      return linkNode(token, [`🖼 ${token.text || token.href}`]);
    case 'escape':
      return document.createTextNode(token.text);
    case 'text':
      return textNode(token);
    case 'html':
      return /^<br *\/?>$/i.test(token.raw) ? element('br') : document.createTextNode(token.raw);
    default:
      return document.createTextNode(token.raw);
  }
}

function textNode(token: Tokens.Text): Node {
  if (token.tokens !== undefined) return element('span', {}, ...inlineNodes(token.tokens));
  return document.createTextNode(token.escaped ? token.text : decodeReferences(token.text));
}

type Linked = Pick<Tokens.Link, 'href' | 'title'>;

function linkNode({ href, title }: Linked, label: readonly Child[]): HTMLElement {
  if (!isSafeHref(href)) return element('span', {}, ...label, href === '' ? '' : ` (${href})`);
  const props = {
    href,
    target: '_blank',
    rel: 'noopener noreferrer nofollow',
    title: title ?? href,
  };
  return element('a', props, ...label);
}

function isSafeHref(href: string): boolean {
  return /^(?:https?:\/\/|mailto:)[^\s<>"]+$/i.test(href) && URL.canParse(href);
}
