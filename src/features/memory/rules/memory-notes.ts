// The text of MEMORY.md: facts as dated bullets under one heading, each only once. The text of a
// day's notes: bullets with the time of day.

const HEADING = '## Remembered';
const DATE_PREFIX = /^(?:\[\d{4}-\d{2}-\d{2}\]|\d{2}:\d{2})\s*/;
const BULLET = /^\s*[-*+]\s+/;

/** The text with the fact added at the end of its section; undefined when it stands there already. */
export function addFact(text: string, fact: string, day: string): string | undefined {
  const line = oneLine(fact);
  const lines = text.split('\n');
  const wanted = comparable(line);
  if (lines.some((existing) => BULLET.test(existing) && comparable(existing) === wanted)) {
    return undefined;
  }
  const bullet = `- [${day}] ${line}`;
  const heading = lines.findIndex((existing) => existing.trim() === HEADING);
  if (heading < 0) {
    const before = text.trimEnd();
    return `${before === '' ? '# Memory' : before}\n\n${HEADING}\n\n${bullet}\n`;
  }
  return insertBullet(lines, heading, bullet);
}

/** The notes of a day with one more; undefined when it stands there already. `time` as `HH:MM`. */
export function addNote(
  text: string,
  note: string,
  { day, time }: { readonly day: string; readonly time: string },
): string | undefined {
  const line = oneLine(note);
  const wanted = comparable(line);
  const isKnown = (each: string) => BULLET.test(each) && comparable(each) === wanted;
  if (text.split('\n').some(isKnown)) return undefined;
  const before = text.trim() === '' ? `# ${day}\n` : text.trimEnd();
  return `${before}\n- ${time} ${line}\n`;
}

function insertBullet(lines: readonly string[], heading: number, bullet: string): string {
  const following = lines.findIndex((line, index) => index > heading && /^#{1,2}\s/.test(line));
  const sectionEnd = following < 0 ? lines.length : following;
  const last = lines.findLastIndex((line, index) => index < sectionEnd && line.trim() !== '');
  const gap = last === heading ? [''] : [];
  const rest = lines.slice(last + 1);
  const isAtEnd = rest.every((line) => line.trim() === '');
  return [...lines.slice(0, last + 1), ...gap, bullet, ...(isAtEnd ? [''] : rest)].join('\n');
}

const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim();

function comparable(line: string): string {
  const bare = line.replace(BULLET, '').replace(DATE_PREFIX, '');
  return oneLine(bare)
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[.!]+$/, '');
}
