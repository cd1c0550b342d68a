// Markdown as the HTML part of a mail. Every text is escaped, raw HTML is shown as written, and only web and
// mail addresses become links, so that nothing a model writes can act in a mail reader.

import { safeHref } from '../../../lib/markup/markup.ts';
import {
  decodeReferences,
  escapeHtml,
  lexMarkdown,
  Parser,
  Renderer,
  type Tokens,
} from '../../../lib/markup/writer.ts';

const CELL = 'border:1px solid #ccc;padding:4px 8px';
const CODE = 'background:#f5f5f5;padding:8px;white-space:pre-wrap';

/** A fragment without `<html>` or `<body>`. */
export const renderEmailHtml = (markdown: string): string =>
  new Parser({ renderer: new MailRenderer() }).parse([...lexMarkdown(markdown)]);

const lines = (text: string) => escapeHtml(text).replaceAll('\n', '<br>\n');

class MailRenderer extends Renderer {
  override code({ text }: Tokens.Code): string {
    return `<pre style="${CODE}"><code>${escapeHtml(text)}</code></pre>\n`;
  }

  override codespan({ text }: Tokens.Codespan): string {
    return `<code>${escapeHtml(text)}</code>`;
  }

  override html({ raw, block }: Tokens.HTML | Tokens.Tag): string {
    if (block) return `<p>${lines(raw.trimEnd())}</p>\n`;
    return /^<br *\/?>$/i.test(raw) ? '<br>\n' : lines(raw);
  }

  override def({ raw }: Tokens.Def): string {
    return `<p>${lines(raw.trimEnd())}</p>\n`;
  }

  override table({ header, rows }: Tokens.Table): string {
    const row = (cells: readonly Tokens.TableCell[], tag: 'th' | 'td') => {
      const html = cells.map(({ align, tokens }) => {
        const aligned = align === null ? '' : `;text-align:${align}`;
        return `<${tag} style="${CELL}${aligned}">${this.parser.parseInline(tokens)}</${tag}>`;
      });
      return `<tr>${html.join('')}</tr>\n`;
    };
    const body = rows.map((cells) => row(cells, 'td')).join('');
    return `<table style="border-collapse:collapse">\n${row(header, 'th')}${body}</table>\n`;
  }

  override br(): string {
    return '<br>\n';
  }

  override checkbox({ checked }: Tokens.Checkbox): string {
    return checked ? '☑ ' : '☐ ';
  }

  override text(token: Tokens.Text | Tokens.Escape): string {
    if (token.type === 'escape') return lines(token.text);
    if (token.tokens !== undefined) return this.parser.parseInline(token.tokens);
    return lines(token.escaped ? token.text : decodeReferences(token.text));
  }

  override link(token: Tokens.Link | Tokens.Image): string {
    const href = safeHref(token.href);
    const label = this.parser.parseInline(token.tokens) || lines(token.text || token.href);
    if (href === undefined) return token.href === '' ? label : `${label} (${lines(token.href)})`;
    return `<a href="${escapeHtml(href)}">${label}</a>`;
  }

  /** A link to it: mail must not load anything by being opened. */
  override image(token: Tokens.Image): string {
    return this.link(token);
  }
}
