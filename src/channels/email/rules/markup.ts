// Markdown as the HTML part of a mail. Every text is escaped, raw HTML is shown as written, and only web and
// mail addresses become links, so that nothing a model writes can act in a mail reader.

import { safeHref } from '../../../lib/markup/markup.ts';
import {
  decodeReferences,
  escapeHtml,
  lexMarkdown,
  type MarkedToken,
  strictTokens,
  type Tokens,
} from '../../../lib/markup/writer.ts';

const CELL = 'border:1px solid #ccc;padding:4px 8px';
const CODE = 'background:#f5f5f5;padding:8px;white-space:pre-wrap';

/** A fragment without `<html>` or `<body>`. */
export function renderEmailHtml(markdown: string): string {
  return blocks(lexMarkdown(markdown));
}

const blocks = (tokens: readonly MarkedToken[]) => tokens.map(block).join('');

function block(token: MarkedToken): string {
  switch (token.type) {
    case 'space':
      return '';
    case 'heading':
      return `<h${token.depth}>${inline(strictTokens(token.tokens))}</h${token.depth}>\n`;
    case 'code':
      return `<pre style="${CODE}"><code>${escapeHtml(token.text)}</code></pre>\n`;
    case 'blockquote':
      return `<blockquote>${blocks(strictTokens(token.tokens))}</blockquote>\n`;
    case 'list':
      return list(token);
    case 'table':
      return table(token);
    case 'hr':
      return '<hr>\n';
    case 'html':
    case 'def':
      return `<p>${lines(token.raw.trimEnd())}</p>\n`;
    case 'paragraph':
      return `<p>${inline(strictTokens(token.tokens))}</p>\n`;
    default:
      return inline([token]);
  }
}

function list(token: Tokens.List): string {
  const tag = token.ordered ? 'ol' : 'ul';
  const start = token.ordered && token.start !== '' && token.start !== 1;
  const items = token.items.map((item) => `<li>${blocks(strictTokens(item.tokens))}</li>\n`);
  return `<${tag}${start ? ` start="${token.start}"` : ''}>\n${items.join('')}</${tag}>\n`;
}

function table(token: Tokens.Table): string {
  const row = (cells: readonly Tokens.TableCell[], tag: 'th' | 'td') => {
    const html = cells.map((cell) => {
      const align = cell.align === null ? '' : `;text-align:${cell.align}`;
      return `<${tag} style="${CELL}${align}">${inline(strictTokens(cell.tokens))}</${tag}>`;
    });
    return `<tr>${html.join('')}</tr>\n`;
  };
  const body = token.rows.map((cells) => row(cells, 'td')).join('');
  return `<table style="border-collapse:collapse">\n${row(token.header, 'th')}${body}</table>\n`;
}

const lines = (text: string) => escapeHtml(text).replaceAll('\n', '<br>\n');

const inline = (tokens: readonly MarkedToken[]): string => tokens.map(span).join('');

function span(token: MarkedToken): string {
  switch (token.type) {
    case 'strong':
      return `<strong>${inline(strictTokens(token.tokens))}</strong>`;
    case 'em':
      return `<em>${inline(strictTokens(token.tokens))}</em>`;
    case 'del':
      return `<del>${inline(strictTokens(token.tokens))}</del>`;
    case 'codespan':
      return `<code>${escapeHtml(token.text)}</code>`;
    case 'link':
    case 'image':
      return link(token);
    case 'br':
      return '<br>\n';
    case 'checkbox':
      return token.checked ? '☑ ' : '☐ ';
    case 'escape':
      return lines(token.text);
    case 'text':
      if (token.tokens !== undefined) return inline(strictTokens(token.tokens));
      return lines(token.escaped ? token.text : decodeReferences(token.text));
    default:
      return /^<br *\/?>$/i.test(token.raw) ? '<br>\n' : lines(token.raw);
  }
}

/** An image becomes a link to it: mail must not load anything by being opened. */
function link(token: Tokens.Link | Tokens.Image): string {
  const href = safeHref(token.href);
  const label = inline(strictTokens(token.tokens)) || lines(token.text || token.href);
  if (href === undefined) return token.href === '' ? label : `${label} (${lines(token.href)})`;
  return `<a href="${escapeHtml(href)}">${label}</a>`;
}
