// Text with styles: what every chat dialect is written from. A run is a piece of text under a list
// of styles, outermost first; a style is one object for its whole extent, so cutting a text cuts
// the runs and every part is whole again by itself.

export type Style =
  | { readonly kind: 'bold' | 'italic' | 'strike' | 'code' | 'quote' }
  | { readonly kind: 'link'; readonly href: string }
  | {
      readonly kind: 'pre';
      readonly language?: string;
      /** Lines repeated on top of every further part when the text is cut inside. */
      readonly heading?: string;
    };

export type Run = { readonly text: string; readonly styles: readonly Style[] };

export type Markup = {
  readonly runs: readonly Run[];
  /** Offsets, UTF-16 units, where a block begins; ascending. */
  readonly borders: readonly number[];
};

/** Collects runs; line breaks between blocks belong to the styles that both sides share. */
export class MarkupWriter {
  readonly #runs: Run[] = [];
  readonly #borders: number[] = [];
  #length = 0;
  #gapLines = 0;

  /** The next text begins a block, this many line breaks below the last one. */
  gap(lines: 1 | 2): void {
    this.#gapLines = Math.max(this.#gapLines, lines);
  }

  write(text: string, styles: readonly Style[]): void {
    if (text === '') return;
    if (this.#gapLines > 0 && this.#length > 0) {
      this.#push(
        '\n'.repeat(this.#gapLines),
        sharedStyles(this.#runs.at(-1)?.styles ?? [], styles),
      );
      this.#borders.push(this.#length);
    }
    this.#gapLines = 0;
    this.#push(text, styles);
  }

  finish(): Markup {
    return { runs: this.#runs, borders: this.#borders };
  }

  #push(text: string, styles: readonly Style[]) {
    this.#runs.push({ text, styles });
    this.#length += text.length;
  }
}

/** The styles two neighbours have in common, by identity. */
export function sharedStyles(left: readonly Style[], right: readonly Style[]): readonly Style[] {
  let count = 0;
  while (count < left.length && left[count] === right[count]) count += 1;
  return left.slice(0, count);
}

/** The text as a reader sees it, without styles. */
export function runsText(runs: readonly Run[]): string {
  return runs.map((run) => run.text).join('');
}
