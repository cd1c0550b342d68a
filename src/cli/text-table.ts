// Rows of text in columns, for people. Control characters of names that strangers chose never reach
// the terminal.

const GAP = '  ';

export function textTable(rows: readonly (readonly string[])[]): readonly string[] {
  const clean = rows.map((row) => row.map(printable));
  const widths = clean.reduce<readonly number[]>(
    (known, row) => row.map((cell, column) => Math.max(cell.length, known[column] ?? 0)),
    [],
  );
  return clean.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
}

/** Line ends and other control characters become spaces. */
export function printable(text: string): string {
  return text.replace(/\p{C}+/gu, ' ');
}
