// Some local models write their thinking into the text, between think tags at its very beginning.
// This takes it apart while it streams, wherever the pieces are cut.

const OPEN = '<think>';
const CLOSE = '</think>';

export type Split = { readonly text: string; readonly thinking: string };

export interface ThinkSplitter {
  push(delta: string): Split;
  /** What was held back because it might have become a tag. */
  flush(): Split;
}

type State = 'start' | 'thinking' | 'text';

export function createThinkSplitter(): ThinkSplitter {
  let state: State = 'start';
  let held = '';

  function push(delta: string): Split {
    if (state === 'text') return { text: delta, thinking: '' };
    held += delta;
    if (state === 'start') {
      const begun = held.trimStart();
      if (OPEN.startsWith(begun)) return { text: '', thinking: '' };
      if (!begun.startsWith(OPEN)) return release('text');
      state = 'thinking';
      held = begun.slice(OPEN.length);
    }
    return pushThinking();
  }

  function pushThinking(): Split {
    const end = held.indexOf(CLOSE);
    if (end < 0) {
      const keep = partialLength(held, CLOSE);
      const thinking = held.slice(0, held.length - keep);
      held = held.slice(held.length - keep);
      return { text: '', thinking };
    }
    const thinking = held.slice(0, end);
    held = held.slice(end + CLOSE.length).trimStart();
    return { text: release('text').text, thinking };
  }

  function release(next: 'text'): Split {
    state = next;
    const text = held;
    held = '';
    return { text, thinking: '' };
  }

  return {
    push,
    flush() {
      const rest = held;
      held = '';
      return state === 'thinking' ? { text: '', thinking: rest } : { text: rest, thinking: '' };
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
