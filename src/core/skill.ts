// A skill in one line of the system prompt: what it is called, what it is for and the file that
// says how. The model reads the file when it needs it.

const HEADER = /^---\r?\n([\s\S]*?)\r?\n---(?:\r?\n|$)/;
const MAX_DESCRIPTION_CHARS = 300;

/** `path` is that of the SKILL.md; undefined where its front matter names no purpose. */
export function skillLine(path: string, text: string): string | undefined {
  const header = HEADER.exec(text)?.[1];
  if (header === undefined) return undefined;
  const description = headerValue(header, 'description').slice(0, MAX_DESCRIPTION_CHARS);
  if (description === '') return undefined;
  const name = headerValue(header, 'name') || (path.split('/').at(-2) ?? path);
  return `- ${name}: ${description.toWellFormed()} (${path})`;
}

/** One key of the front matter; a value on indented lines below its key is joined into one line. */
function headerValue(header: string, key: string): string {
  const lines = header.split(/\r?\n/);
  const start = lines.findIndex((line) => line.startsWith(`${key}:`));
  if (start === -1) return '';
  const first = (lines[start] ?? '').slice(key.length + 1).trim();
  const below = lines.slice(start + 1);
  const end = below.findIndex((line) => !/^\s+\S/.test(line));
  const folded = below.slice(0, end === -1 ? below.length : end).map((line) => line.trim());
  const inline = /^[>|][+-]?$/.test(first) ? '' : first.replace(/^(["'])(.*)\1$/, '$2');
  return [inline, ...folded].join(' ').trim();
}
