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
