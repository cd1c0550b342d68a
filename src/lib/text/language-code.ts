// The code of a language that engines name now by its English name, now by its code.

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';

/** `german`, `German`, `de`, `de-DE` -> `de`; undefined where it is no language that is known. */
export function languageCode(named: string): string | undefined {
  const plain = named.trim().toLowerCase();
  const [, code] = /^([a-z]{2,3})(?:[-_][a-z]{2,4})?$/.exec(plain) ?? [];
  if (code !== undefined) return code;
  if (!/^[a-z ]{4,40}$/.test(plain)) return undefined;
  const inEnglish = namesIn('en');
  return codes().find((code) => inEnglish(code) === plain);
}

/** `german`, `Deutsch` -> `de`: by the English name, or the one the language has itself. */
export function languageNamed(typed: string): string | undefined {
  const plain = typed.normalize('NFC').toLowerCase();
  const inEnglish = namesIn('en');
  return codes().find((code) => {
    const name = inEnglish(code);
    return name !== undefined && (name === plain || namesIn(code)(code) === plain);
  });
}

/** Codes of two letters, but for those that the standard replaced. */
function codes(): readonly string[] {
  const pairs = [...LETTERS].flatMap((first) => [...LETTERS].map((second) => `${first}${second}`));
  return pairs.filter((pair) => Intl.getCanonicalLocales(pair)[0] === pair);
}

function namesIn(locale: string): (code: string) => string | undefined {
  const names = new Intl.DisplayNames(locale, { type: 'language', fallback: 'none' });
  return (code) => names.of(code)?.toLowerCase();
}
