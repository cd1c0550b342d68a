// How WhatsApp reads its marks, on the generous side: what a reader would still see of a line once
// every pair that may count as marks is taken away. Our own rendering is checked against this, so
// that no character of an answer can vanish as a mark.

/**
 * Parts a row of backticks, or a quote sign from the line's beginning, without being seen. It is not
 * put beside single marks: whether a client takes it for a letter or a space there is not known.
 */
export const ZERO_WIDTH = '\u200b';
const OPAQUE = /```(.+?)```|`([^`]+)`|https?:\/\/[^\s`]+/gu;
const MARKS = ['*', '_', '~'] as const;

/** One character, or code or an address as a whole: nothing inside those is a mark. */
type Atom = {
  readonly visible: string;
  readonly first: string;
  readonly last: string;
  readonly mayMark: boolean;
};

/** The text without any ```: no fence but ours opens or ends a block. */
export function withoutFences(text: string): string {
  return text.replaceAll(/``(?=`)/g, `\`\`${ZERO_WIDTH}`);
}

/** The text between fences, none of which is taken for longer than it is. */
export function fenced(text: string): string {
  const before = text.startsWith('`') ? ZERO_WIDTH : '';
  const after = text.endsWith('`') ? ZERO_WIDTH : '';
  return `\`\`\`${before}${withoutFences(text)}${after}\`\`\``;
}

/** The text where it would begin a quote at the beginning of a line. */
export function withoutQuoteSign(line: string): string {
  return line.startsWith('> ') ? ZERO_WIDTH + line : line;
}

/** Whether a reader sees all of the text in this rendered line, be it with or without styles. */
export function showsWhole(rendered: string, text: string): boolean {
  const plain = (value: string) => value.replaceAll(ZERO_WIDTH, '');
  return plain(visibleOf(rendered)) === plain(text);
}

function visibleOf(line: string): string {
  const atoms = atomsOf(line);
  const closers = new Map(MARKS.map((mark) => [mark as string, closersOf(mark, atoms)]));
  return read(atoms, closers, 0, atoms.length);
}

function atomsOf(line: string): readonly Atom[] {
  const atoms: Atom[] = [];
  const letters = (text: string) => {
    for (const char of text) {
      atoms.push({ visible: char, first: char, last: char, mayMark: true });
    }
  };
  let end = 0;
  for (const match of line.matchAll(OPAQUE)) {
    letters(line.slice(end, match.index));
    const [whole, block, code] = match;
    atoms.push({
      visible: block ?? code ?? whole,
      first: whole.slice(0, 1),
      last: [...whole].at(-1) ?? '',
      mayMark: false,
    });
    end = match.index + whole.length;
  }
  letters(line.slice(end));
  return atoms;
}

/** A mark opens what hugs it, unless a letter stands before it. */
const opens = (atoms: readonly Atom[], at: number) =>
  !isWord(atoms[at - 1]?.last) && !isSpace(atoms[at + 1]?.first);

const closes = (atoms: readonly Atom[], at: number) =>
  !isSpace(atoms[at - 1]?.last) && !isWord(atoms[at + 1]?.first);

export const isWord = (char: string | undefined) =>
  char !== undefined && /[\p{L}\p{N}]/u.test(char);
const isSpace = (char: string | undefined) => char === undefined || /\s/.test(char);

/** For each place the next one, itself included, that closes the mark. */
function closersOf(mark: string, atoms: readonly Atom[]): readonly number[] {
  const next: number[] = new Array(atoms.length + 1).fill(Number.POSITIVE_INFINITY);
  for (let at = atoms.length - 1; at >= 0; at -= 1) {
    const atom = atoms[at];
    const isCloser = atom?.mayMark === true && atom.visible === mark && closes(atoms, at);
    next[at] = isCloser ? at : (next[at + 1] ?? Number.POSITIVE_INFINITY);
  }
  return next;
}

function read(
  atoms: readonly Atom[],
  closers: ReadonlyMap<string, readonly number[]>,
  from: number,
  to: number,
): string {
  let text = '';
  for (let at = from; at < to; at += 1) {
    const { visible = '', mayMark = false } = atoms[at] ?? {};
    const closer = closers.get(visible)?.[at + 2] ?? Number.POSITIVE_INFINITY;
    if (mayMark && closer < to && opens(atoms, at)) {
      text += read(atoms, closers, at + 1, closer);
      at = closer;
    } else {
      text += visible;
    }
  }
  return text;
}
