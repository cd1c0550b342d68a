// Which elements are open at a place of a page, as a browser sees it where end tags are left out or
// stand in the wrong order (HTML Standard, 13.2.6), as far as that decides what is seen and what
// belongs into which cell.

/** Stand on lines of their own. */
export const BLOCKS: ReadonlySet<string> = new Set([
  ...'address article aside blockquote body center caption dd details dialog dir div dl dt'.split(
    ' ',
  ),
  ...'fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup html legend li'.split(
    ' ',
  ),
  ...'main menu nav ol p pre search section summary table tbody td tfoot th thead tr ul xmp'.split(
    ' ',
  ),
]);
export const VOID: ReadonlySet<string> = new Set(
  'area base basefont bgsound br col embed frame hr img input link meta param source track wbr'.split(
    ' ',
  ),
);
/** What an end tag of another element cannot reach across. */
const BORDERS: ReadonlySet<string> = new Set([
  ...BLOCKS,
  ...'applet button iframe marquee noscript object select template'.split(' '),
]);
const TABLE_PARTS = new Set('caption colgroup tbody td tfoot th thead tr'.split(' '));
const ROW_GROUPS = new Set(['tbody', 'tfoot', 'thead', 'table']);
/** An end tag inside of them closes nothing outside. */
const SCOPES = new Set('table td th caption template object button'.split(' '));
/** Their end may stand outside of a block that began in them. */
const FORMATTING = new Set('a b big code em font i nobr s small strike strong tt u'.split(' '));
const LEAVES_OPEN = new Set(['body', 'html']);
const HEADING = /^h[1-6]$/;
/** Deeper than any page is written; a browser has such a limit too. */
const MAX_DEPTH = 256;

export type OpenElement = {
  readonly name: string;
  /** Hidden by itself or by one around it. */
  readonly hidden: 'all' | 'size' | undefined;
  /** Called once, when it is closed. */
  readonly end: () => void;
};

export class OpenElements {
  readonly #open: OpenElement[] = [];
  readonly #counts = new Map<string, number>();
  /** Hidden content was nested too deep to tell where it ends. */
  #isLost = false;

  get hidden(): OpenElement['hidden'] {
    return this.#isLost ? 'all' : this.#open.at(-1)?.hidden;
  }

  has(name: string): boolean {
    return (this.#counts.get(name) ?? 0) > 0;
  }

  /** Elements in it are not followed any more, their text is. */
  get isFull(): boolean {
    return this.#open.length >= MAX_DEPTH;
  }

  /** Something hidden begins, or goes on, where its end cannot be told. */
  hideRest(): void {
    this.#isLost = true;
  }

  push(element: OpenElement): void {
    this.#open.push(element);
    this.#counts.set(element.name, (this.#counts.get(element.name) ?? 0) + 1);
  }

  /** Closes what cannot hold an element of this name. Whether a row has to be opened before it. */
  makeRoomFor(name: string): 'ready' | 'row' {
    if (TABLE_PARTS.has(name)) return this.#makeRoomInTable(name);
    if (name === 'li') this.#closeItem(['li']);
    else if (name === 'dt' || name === 'dd') this.#closeItem(['dt', 'dd']);
    if (HEADING.test(name) && HEADING.test(this.#open.at(-1)?.name ?? '')) this.#pop();
    if (BLOCKS.has(name)) this.#closeInScope('p');
    else if (name === 'a') this.#closeInScope('a');
    return 'ready';
  }

  close(name: string): void {
    if (LEAVES_OPEN.has(name)) return;
    if (name === 'table') this.#closeTo(this.#lastOf('table'));
    else if (TABLE_PARTS.has(name)) {
      const at = this.#lastOf(name);
      if (at > this.#lastOf('table')) this.#closeTo(at);
    } else if (FORMATTING.has(name)) this.#closeFormatting(name);
    else if (BORDERS.has(name)) this.#closeInScope(name);
    else {
      const at = this.#find(name, BORDERS);
      if (at >= 0) this.#closeTo(at);
    }
  }

  closeAll(): void {
    this.#closeTo(0);
  }

  #makeRoomInTable(name: string): 'ready' | 'row' {
    const isCell = name === 'td' || name === 'th';
    const table = this.#lastOf('table');
    if (table < 0) {
      const names = isCell ? ['td', 'th'] : [...TABLE_PARTS];
      this.#closeTo(this.#open.findIndex((open) => names.includes(open.name)));
      return 'ready';
    }
    const isHolder = (open: string) =>
      isCell
        ? open === 'tr' || ROW_GROUPS.has(open)
        : name === 'tr'
          ? ROW_GROUPS.has(open)
          : open === 'table';
    while (this.#open.length > table + 1 && !isHolder(this.#open.at(-1)?.name ?? '')) this.#pop();
    return isCell && this.#open.at(-1)?.name !== 'tr' ? 'row' : 'ready';
  }

  /** An item of the innermost list. */
  #closeItem(names: readonly string[]): void {
    for (let at = this.#open.length - 1; at >= 0; at -= 1) {
      const name = this.#open[at]?.name ?? '';
      if (names.includes(name)) {
        this.#closeTo(at);
        return;
      }
      if (BLOCKS.has(name) && !['address', 'div', 'p'].includes(name)) return;
    }
  }

  #closeInScope(name: string): void {
    const isHeading = HEADING.test(name);
    const at = isHeading
      ? this.#findIn((open) => HEADING.test(open), SCOPES)
      : this.#find(name, SCOPES);
    if (at >= 0) this.#closeTo(at);
  }

  /** What began inside of it stays open. */
  #closeFormatting(name: string): void {
    const at = this.#find(name, SCOPES);
    if (at < 0) return;
    const holdsBlock = this.#open.slice(at + 1).some((open) => BORDERS.has(open.name));
    if (!holdsBlock) this.#closeTo(at);
    else for (const element of this.#open.splice(at, 1)) this.#ended(element);
  }

  #find(name: string, border: ReadonlySet<string>): number {
    return this.has(name) ? this.#findIn((open) => open === name, border) : -1;
  }

  #findIn(isWanted: (name: string) => boolean, border: ReadonlySet<string>): number {
    for (let at = this.#open.length - 1; at >= 0; at -= 1) {
      const name = this.#open[at]?.name ?? '';
      if (isWanted(name)) return at;
      if (border.has(name)) return -1;
    }
    return -1;
  }

  #lastOf(name: string): number {
    return this.has(name) ? this.#open.findLastIndex((open) => open.name === name) : -1;
  }

  #closeTo(at: number): void {
    while (at >= 0 && this.#open.length > at) this.#pop();
  }

  #pop(): void {
    const element = this.#open.pop();
    if (element !== undefined) this.#ended(element);
  }

  #ended({ name, end }: OpenElement): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 1) - 1);
    end();
  }
}
