// Tables in Markdown for docs/benchmarks.md.

export type Cell = string | number;

export function row(...cells: readonly Cell[]): void {
  console.log(`| ${cells.join(' | ')} |`);
}

export function header(...titles: readonly string[]): void {
  row(...titles);
  row(...titles.map(() => '---'));
}

/** More than three digits exceed the precision of a measurement on a shared machine. */
export function figure(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: value < 100 ? 1 : 0 });
}
