// Some local models write their thinking into the text, between think tags at its very beginning.
// This takes it apart while it streams, so that it is recorded as thinking and a call that broke off
// in it may be tried again. What else a text may hide is left to core/hidden-text.ts.

const OPEN = '<think>';
const CLOSE = '</think>';

export type Split = { readonly text: string; readonly thinking: string };

export interface ThinkSplitter {
  push(delta: string): Split;
  /** What was held back because it might have become a tag. */
  flush(): Split;
}

type State = 'start' | 'thinking' | 'gap' | 'text';

const thought = (thinking: string): Split => ({ text: '', thinking });
const said = (text: string): Split => ({ text, thinking: '' });

export function createThinkSplitter(): ThinkSplitter {
  let state: State = 'start';
  let held = '';
  /** Blanks at the very beginning, which a tag may follow. */
  let blanks = '';

  function push(delta: string): Split {
    if (state === 'text') return said(delta);
    held += delta;
    if (state === 'start') readStart();
    const thinking = state === 'thinking' ? readThinking() : '';
    return { text: state === 'start' ? '' : readText(), thinking };
  }

  function readStart() {
    const begun = held.trimStart();
    blanks += held.slice(0, held.length - begun.length);
    held = begun;
    if (OPEN.startsWith(begun)) return;
    state = begun.startsWith(OPEN) ? 'thinking' : 'text';
    if (state === 'thinking') held = begun.slice(OPEN.length);
    else held = blanks + begun;
  }

  function readThinking(): string {
    const end = held.indexOf(CLOSE);
    const upTo = end < 0 ? held.length - partialLength(held, CLOSE) : end;
    const thinking = held.slice(0, upTo);
    held = held.slice(end < 0 ? upTo : end + CLOSE.length);
    if (end >= 0) state = 'gap';
    return thinking;
  }

  /** The blank lines after the thinking are no part of the answer. */
  function readText(): string {
    if (state === 'thinking') return '';
    if (state === 'gap') held = held.trimStart();
    if (held !== '') state = 'text';
    const text = held;
    held = '';
    return text;
  }

  return {
    push,
    flush() {
      const rest = state === 'start' ? blanks + held : held;
      held = '';
      return state === 'thinking' ? thought(rest) : said(rest);
    },
  };
}

/** Length of the longest end of `text` that is a beginning of `tag`. */
function partialLength(text: string, tag: string): number {
  for (let length = Math.min(text.length, tag.length - 1); length > 0; length -= 1) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}
