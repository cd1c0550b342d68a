// Character references of XML and HTML: numbers, the names of HTML 4, and the names of the signs by
// which a style could be written.

const LATIN_1 =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 ' +
  'acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde ' +
  'Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute ' +
  'Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde ' +
  'auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ' +
  'ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml';
const GREEK =
  'Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau ' +
  'Upsilon Phi Chi Psi Omega - - - - - - - alpha beta gamma delta epsilon zeta eta theta iota kappa lambda ' +
  'mu nu xi omicron pi rho sigmaf sigma tau upsilon phi chi psi omega';
const OTHERS =
  'quot:" amp:& lt:< gt:> apos:\' ndash:– mdash:— hellip:… bull:• lsquo:‘ rsquo:’ sbquo:‚ ldquo:“ rdquo:” ' +
  'bdquo:„ lsaquo:‹ rsaquo:› dagger:† Dagger:‡ permil:‰ prime:′ Prime:″ trade:™ euro:€ larr:← uarr:↑ ' +
  'rarr:→ darr:↓ harr:↔ rArr:⇒ hArr:⇔ minus:− infin:∞ asymp:≈ ne:≠ le:≤ ge:≥ radic:√ sum:∑ prod:∏ part:∂ ' +
  'int:∫ check:✓ fnof:ƒ OElig:Œ oelig:œ Scaron:Š scaron:š Yuml:Ÿ circ:ˆ tilde:˜ colon:: semi:; comma:, ' +
  'period:. num:# percnt:% lpar:( rpar:) excl:! sol:/ bsol:\\';

const inOrder = (names: string, from: number): readonly (readonly [string, string])[] =>
  names.split(' ').map((name, index) => [name, String.fromCodePoint(from + index)]);
const NAMED: ReadonlyMap<string, string> = new Map([
  ...inOrder(LATIN_1, 0xa0),
  ...inOrder(GREEK, 0x391),
  ...OTHERS.split(' ').map(
    (pair) => [pair.split(':', 1)[0] ?? '', pair.slice(pair.indexOf(':') + 1)] as const,
  ),
  ...(['nbsp', 'ensp', 'emsp', 'thinsp', 'Tab', 'NewLine'] as const).map(
    (name) => [name, ' '] as const,
  ),
  ['shy', ''],
  ['zwnj', '\u200c'],
  ['zwj', '\u200d'],
]);

const REFERENCE = /&(?:#(\d{1,7});?|#[xX]([0-9a-fA-F]{1,6});?|([A-Za-z][A-Za-z0-9]{1,9});)/g;
const LAST_CODE_POINT = 0x10ffff;

export function decodeCharacters(text: string): string {
  if (!text.includes('&')) return text;
  return text.replace(REFERENCE, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return NAMED.get(name) ?? whole;
    return characterOf(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16));
  });
}

function characterOf(code: number): string {
  // Old programs number characters as Windows does (HTML Standard, 13.2.5.80).
  if (code >= 0x80 && code < 0xa0)
    return new TextDecoder('windows-1252').decode(Uint8Array.of(code));
  const isCharacter = code > 0 && code <= LAST_CODE_POINT && (code < 0xd800 || code > 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : '\ufffd';
}
