// Markdown as components. Raw HTML is shown as written, pictures become links that load nothing, and only
// addresses that a reader can judge become links.

import { useSignal } from '@preact/signals';
import type { MarkedToken, Token, Tokens } from 'marked';
import { type ComponentChildren, h, type VNode } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import { decodeReferences } from '../../../lib/markup/writer.ts';
import { cleanText, lexMarkdown } from '../markdown-lexer.ts';
import { CodeBlock } from './code-block.tsx';
import { type Formula, isFormula } from './formula-syntax.ts';
import { useWhenShown } from './when-shown.ts';

/**
 * The next text can still change this many blocks at the end: a list may continue after a
 * paragraph.
 */
const OPEN_BLOCKS = 2;

type TextProps = { readonly text: string };

/** The whole text, lexed once: a reference defined at its end may change its beginning. */
export function Markdown({ text }: TextProps) {
  return useMemo(() => <>{blocks(lexMarkdown(cleanText(text)))}</>, [text]);
}

type Grown = {
  /** What the complete blocks were made of. */
  readonly standing: string;
  readonly complete: readonly VNode[];
  readonly open: readonly VNode[];
};
const NOTHING: Grown = { standing: '', complete: [], open: [] };

/** A text that grows: complete blocks stay, only the end is lexed and built again. */
export function GrowingMarkdown({ text }: TextProps) {
  const last = useRef(NOTHING);
  const grown = useMemo(() => grow(last.current, text), [text]);
  last.current = grown;
  return (
    <>
      {grown.complete}
      {grown.open}
    </>
  );
}

/** A text that does not continue the last one replaces it. */
function grow(last: Grown, text: string): Grown {
  const { standing, complete } = text.startsWith(last.standing) ? last : NOTHING;
  const tokens = lexMarkdown(cleanText(text.slice(standing.length)));
  const built = blocks(tokens, complete.length);
  const firstOpen = withoutSpace(tokens).at(-OPEN_BLOCKS);
  const closed =
    firstOpen === undefined || built.length <= OPEN_BLOCKS
      ? ''
      : tokens
          .slice(0, tokens.indexOf(firstOpen))
          .map(({ raw }) => raw)
          .join('');
  // The lexer rewrites some white space; a border is safe only where its text equals the source.
  if (closed === '' || !text.startsWith(closed, standing.length))
    return { standing, complete, open: built };
  return {
    standing: standing + closed,
    complete: [...complete, ...built.slice(0, -OPEN_BLOCKS)],
    open: built.slice(-OPEN_BLOCKS),
  };
}

const withoutSpace = (tokens: readonly Token[]) => tokens.filter(({ type }) => type !== 'space');

/** One for each block, in the direction of its own script. */
const blocks = (tokens: readonly Token[], before = 0): readonly VNode[] =>
  withoutSpace(tokens).map((token, index) => block(token, before + index, 'auto'));

const HEADINGS = ['h3', 'h4', 'h5', 'h6'] as const;

function block(given: Token, key: number, dir?: 'auto'): VNode {
  if (isFormula(given)) return formula(given, key, dir && 'ltr');
  const token = given as MarkedToken;
  switch (token.type) {
    case 'heading': {
      // The page has its own title; a message's headings rank below it.
      const Heading = HEADINGS[token.depth - 1] ?? 'h6';
      return <Heading {...{ key, dir }}>{inline(token.tokens)}</Heading>;
    }
    case 'code':
      return code(token, key, dir && 'ltr');
    case 'blockquote':
      return (
        <blockquote {...{ key, dir }}>
          {withoutSpace(token.tokens).map((inner, index) => block(inner, index))}
        </blockquote>
      );
    case 'list':
      return list(token, key, dir);
    case 'table':
      return table(token, key, dir);
    case 'hr':
      return <hr {...{ key, dir }} />;
    case 'paragraph':
      return <p {...{ key, dir }}>{inline(token.tokens)}</p>;
    case 'html':
    case 'def':
      return (
        <p {...{ key, dir }} class="verbatim">
          {token.raw.trimEnd()}
        </p>
      );
    default:
      return <p {...{ key, dir }}>{inline([token])}</p>;
  }
}

const CLOSED_FENCE = /\n {0,3}(?:`{3,}|~{3,})\s*$/;

function code({ text, lang = '', raw }: Tokens.Code, key: number, dir: 'ltr' | undefined) {
  const language = /^[\w+#.-]+/.exec(lang)?.[0];
  if (language === 'math')
    return formula({ type: 'formula', raw, text, isDisplay: true }, key, dir);
  // While it is written it is no diagram yet.
  const isDiagram = language === 'mermaid' && CLOSED_FENCE.test(raw);
  return <CodeBlock {...{ key, text, language, isDiagram, dir }} />;
}

const formula = ({ text, isDisplay }: Formula, key: number, dir?: 'ltr') => (
  <FormulaText key={`${key} ${text}`} {...{ text, isDisplay, dir }} />
);

type FormulaProps = Pick<Formula, 'isDisplay'> & TextProps & { readonly dir: 'ltr' | undefined };

/** Its source until it is drawn, and where it cannot be. */
function FormulaText({ text, isDisplay, dir }: FormulaProps) {
  const place = useRef<HTMLSpanElement>(null);
  const isDrawn = useSignal(false);
  useWhenShown(place, text, async () => {
    const { formulaNodes } = await import('./formula.ts');
    place.current?.append(...formulaNodes(text, isDisplay));
    isDrawn.value = true;
  });
  return (
    <span ref={place} class={isDisplay ? 'formula display' : 'formula'} dir={dir}>
      {!isDrawn.value && <code>{text}</code>}
    </span>
  );
}

function list({ ordered, start, items }: Tokens.List, key: number, dir: 'auto' | undefined) {
  const shown = items.map(({ tokens }, index) => (
    // Items of a list have no name.
    <li key={index}>
      {tokens.map((token, place) => {
        if (token.type === 'space') return undefined;
        const isInline = token.type === 'text' || token.type === 'checkbox';
        return isInline ? inline([token]) : block(token, place);
      })}
    </li>
  ));
  if (!ordered) return <ul {...{ key, dir }}>{shown}</ul>;
  return (
    <ol {...{ key, dir }} start={Number(start) || (start === 0 ? 0 : 1)}>
      {shown}
    </ol>
  );
}

function table({ header, rows }: Tokens.Table, key: number, dir: 'auto' | undefined) {
  const row = (Cell: 'th' | 'td', cells: readonly Tokens.TableCell[], place = 0) => (
    <tr key={place}>
      {cells.map(({ tokens, align }, index) => (
        <Cell key={index} class={align ? `align-${align}` : undefined}>
          {inline(tokens)}
        </Cell>
      ))}
    </tr>
  );
  return (
    // biome-ignore lint/a11y/useSemanticElements: a group that scrolls is no set of fields
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by the keyboard
    <div {...{ key, dir }} class="table-scroll" tabIndex={0} role="group" aria-label={t`Table`}>
      <table>
        <thead>{row('th', header)}</thead>
        <tbody>{rows.map((cells, index) => row('td', cells, index))}</tbody>
      </table>
    </div>
  );
}

const inline = (tokens: readonly Token[] = []): ComponentChildren => tokens.map(inlinePart);

function inlinePart(given: Token, place: number): ComponentChildren {
  if (isFormula(given)) return formula(given, place);
  const token = given as MarkedToken;
  switch (token.type) {
    case 'strong':
    case 'em':
    case 'del':
      return h(token.type, null, inline(token.tokens));
    case 'codespan':
      return <code>{token.text}</code>;
    case 'br':
      return <br />;
    case 'checkbox':
      return token.checked ? '☑ ' : '☐ ';
    case 'link':
      return link(token, inline(token.tokens));
    case 'image':
      return link(token, `🖼 ${token.text || token.href}`);
    case 'escape':
      return token.text;
    case 'text':
      if (token.tokens !== undefined) return <span>{inline(token.tokens)}</span>;
      return token.escaped ? token.text : decodeReferences(token.text);
    case 'html':
      return /^<br *\/?>$/i.test(token.raw) ? <br /> : token.raw;
    default:
      return token.raw;
  }
}

type Linked = Pick<Tokens.Link, 'href' | 'title'>;

function link({ href, title }: Linked, label: ComponentChildren) {
  if (!isSafeHref(href)) return <span>{[label, href && ` (${href})`]}</span>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={title ?? href}>
      {label}
    </a>
  );
}

function isSafeHref(href: string): boolean {
  return /^(?:https?:\/\/|mailto:)[^\s<>"]+$/i.test(href) && URL.canParse(href);
}
