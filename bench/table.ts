// Tables in Markdown, as docs/benchmarks.md shows them.

export type Cell = string | number;

export function row(...cells: readonly Cell[]): void {
  console.log(`| ${cells.join(' | ')} |`);
}

export function header(...titles: readonly string[]): void {
  row(...titles);
  row(...titles.map(() => '---'));
}

/** Three digits are more than a measurement on a shared machine is worth. */
export function figure(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: value < 100 ? 1 : 0 });
}
