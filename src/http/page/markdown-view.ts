// Shows growing Markdown: complete blocks stay, only the end is lexed and built again.

import { cleanText, lexMarkdown } from './markdown-lexer.ts';
import { blockNodes } from './markdown-nodes.ts';

/**
 * The next text can still change this many blocks at the end: a list may continue after a
 * paragraph.
 */
const OPEN_BLOCKS = 2;

export function createMarkdownView(container: HTMLElement) {
  let standing = '';
  let standingNodes = 0;

  function reset() {
    container.replaceChildren();
    standing = '';
    standingNodes = 0;
  }

  return {
    /** The text so far; a text that does not continue the last one replaces it. */
    grow(text: string) {
      if (!text.startsWith(standing)) reset();
      const tokens = lexMarkdown(cleanText(text.slice(standing.length)));
      const nodes = blockNodes(tokens);
      const open = [...container.childNodes].slice(standingNodes);
      for (const node of open) node.remove();
      container.append(...nodes);
      const blocks = tokens.filter(({ type }) => type !== 'space');
      const firstOpen = blocks.at(-OPEN_BLOCKS);
      if (firstOpen === undefined || blocks.length <= OPEN_BLOCKS) return;
      const closed = tokens
        .slice(0, tokens.indexOf(firstOpen))
        .map(({ raw }) => raw)
        .join('');
      // The lexer rewrites some white space; a border is safe only where its text equals the
      // source.
      if (!text.startsWith(closed, standing.length)) return;
      standing += closed;
      standingNodes += blocks.length - OPEN_BLOCKS;
    },
    /** The whole text, built anew: a reference defined at its end may change its beginning. */
    finish(text: string) {
      reset();
      container.append(...blockNodes(lexMarkdown(cleanText(text))));
    },
  };
}
