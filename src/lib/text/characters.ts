// Characters in a text that nobody sees and that change what is read: marks of direction, tags,
// zero widths (case J04). Joiners between letters and the choice of a picture are in use by people.

/** Bidirectional controls (UAX 9), tags, zero widths, invisible operators, fillers, other controls. */
const HIDDEN =
  /(?!\t|\n|\r|\f|\u200C|\u200D)[\p{Cc}\u00AD\u061C\u180E\u200B-\u200F\u202A-\u202E\u2060-\u206F\u3164\uFFA0\uFFF9-\uFFFB\u{E0000}-\u{E007F}]|(?<!^)\uFEFF|\u{E0100}/u;
/** Joiners make sense between letters and signs only. */
const STRAY_JOINER = /(?<!\p{L}|\p{M}|\p{S}|\p{N}|\uFE0F)(?:\u200C|\u200D)|(?:\u200C|\u200D){2}/u;

/** The first one as `U+202E`; undefined where there is none. */
export function hiddenCharactersIn(text: string): string | undefined {
  const [found] = HIDDEN.exec(text) ?? STRAY_JOINER.exec(text) ?? [];
  if (found === undefined) return undefined;
  const code = (found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return `U+${code}`;
}

const BREAKS_LINE = /[\t\n\v\f\r\u0085\u2028\u2029]/;
/** Beside those that JSON escapes itself. */
const NOT_ESCAPED = /[\u007F-\u009F\u2028\u2029\p{Cf}\u3164\uFFA0]|\u{E0100}/gu;

/** A name of a file as part of one line: as it is, or as JSON where it would not look like what it is. */
export function nameOnLine(name: string): string {
  if (!BREAKS_LINE.test(name) && hiddenCharactersIn(name) === undefined) return name;
  return JSON.stringify(name).replace(NOT_ESCAPED, (found) => {
    return Array.from({ length: found.length }, (_, at) => unitEscape(found.charCodeAt(at))).join(
      '',
    );
  });
}

const unitEscape = (unit: number) => `\\u${unit.toString(16).padStart(4, '0')}`;

// A text that was cut off in the midst of a block of code: closed, so that what follows is none of it.

export function withFenceClosed(text: string): string {
  const fences = text.match(/^ {0,3}(?:`{3,}|~{3,})/gm) ?? [];
  return fences.length % 2 === 1 ? `${text}\n${fences.at(-1)?.trim() ?? ''}` : text;
}
