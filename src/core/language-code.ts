// The code of a language that engines name now by its English name, now by its code.

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';

/** `german`, `German`, `de`, `de-DE` -> `de`; undefined where it is no language that is known. */
export function languageCode(named: string): string | undefined {
  const plain = named.trim().toLowerCase();
  const [, code] = /^([a-z]{2,3})(?:[-_][a-z]{2,4})?$/.exec(plain) ?? [];
  if (code !== undefined) return code;
  if (!/^[a-z ]{4,40}$/.test(plain)) return undefined;
  const names = new Intl.DisplayNames('en', { type: 'language', fallback: 'none' });
  for (const first of LETTERS) {
    for (const second of LETTERS) {
      const pair = `${first}${second}`;
      if (names.of(pair)?.toLowerCase() === plain) return pair;
    }
  }
  return undefined;
}
