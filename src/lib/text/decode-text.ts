// Bytes as text, whatever their character set: a byte order mark, UTF-8, the text's own
// declaration, UTF-16, then East Asian and Windows sets by how well they fit. Valid UTF-8 is never
// read as anything else, and what is no text gives undefined.

const SAMPLE_BYTES = 65_536;
const DECLARED =
  /<\?xml[^>]{0,200}encoding\s*=\s*["']([\w-]{1,40})["']|<meta[^>]{0,200}charset\s*=\s*["']?([\w-]{1,40})/i;
const LAST_CODE_POINT = 0x10ffff;

export function decodeText(content: Uint8Array): string | undefined {
  const marked = decodeMarked(content);
  if (marked !== undefined) return marked;
  const utf8 = decodedAs('utf-8', content);
  // Seven bits that switch between sets by escapes (RFC 1468).
  if (utf8?.includes('\u001b$') === true) return decodedAs('iso-2022-jp', content) ?? utf8;
  if (utf8 !== undefined) return hasControls(utf8) ? undefined : utf8;
  const sample = content.subarray(0, SAMPLE_BYTES);
  const wide = wideOf(sample);
  if (wide !== undefined) return decodedAs(wide, content);
  const bytes = Array.from(sample, (byte) => String.fromCharCode(byte)).join('');
  if (hasControls(bytes)) return undefined;
  const declared = DECLARED.exec(bytes);
  const label = declared?.[1] ?? declared?.[2];
  const own = label === undefined ? undefined : decodedAs(label, content);
  const asian = own === undefined ? asianSetOf(sample) : undefined;
  const found = own ?? (asian === undefined ? undefined : decodedAs(asian, content));
  return found ?? decodedAs(singleByteSetOf(sample), content) ?? decodedAs('windows-1252', content);
}

/**
 * By its byte order mark; undefined if it has none, or no text follows.
 * @param isBeginning its end may be inside a character
 */
export function decodeMarked(content: Uint8Array, isBeginning = false): string | undefined {
  const begins = (...bytes: readonly number[]) => bytes.every((byte, at) => content[at] === byte);
  let text: string | undefined;
  if (begins(0xff, 0xfe, 0, 0)) text = utf32Of(content, true);
  else if (begins(0, 0, 0xfe, 0xff)) text = utf32Of(content, false);
  else if (begins(0xff, 0xfe)) text = decodedAs('utf-16le', content, isBeginning);
  else if (begins(0xfe, 0xff)) text = decodedAs('utf-16be', content, isBeginning);
  return text === undefined || hasControls(text) ? undefined : text;
}

function utf32Of(content: Uint8Array, isLittle: boolean): string | undefined {
  if (content.length % 4 !== 0) return undefined;
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  const parts: string[] = [];
  for (let at = 4; at < content.length; at += 4) {
    const code = view.getUint32(at, isLittle);
    if (code > LAST_CODE_POINT) return undefined;
    parts.push(String.fromCodePoint(code));
  }
  return parts.join('');
}

/** Every other byte of a Western text in UTF-16 is 0. */
function wideOf(sample: Uint8Array): string | undefined {
  const pairs = Math.floor(sample.length / 2);
  if (pairs < 2) return undefined;
  let first = 0;
  let second = 0;
  for (let at = 0; at < pairs * 2; at += 2) {
    if (sample[at] === 0) first += 1;
    if (sample[at + 1] === 0) second += 1;
  }
  if (second > pairs * 0.4 && first < pairs * 0.05) return 'utf-16le';
  return first > pairs * 0.4 && second < pairs * 0.05 ? 'utf-16be' : undefined;
}

type AsianSet = {
  readonly label: string;
  /** Single bytes outside ASCII. */
  readonly isSingle?: (byte: number) => boolean;
  /** A frequent character: nearly all characters of most texts. */
  readonly isCommon: (lead: number, trail: number) => boolean;
  /** Characters that must be present or absent besides. */
  readonly fits?: (leads: readonly number[]) => boolean;
};

const between = (byte: number, first: number, last: number) => byte >= first && byte <= last;
const share = (leads: readonly number[], isMeant: (lead: number) => boolean) =>
  leads.filter(isMeant).length / leads.length;
/** Fewer characters do not distinguish Korean from Chinese. */
const MIN_KOREAN = 20;
const ASIAN_SETS: readonly AsianSet[] = [
  {
    label: 'shift_jis',
    isSingle: (byte) => between(byte, 0xa1, 0xdf),
    isCommon: (lead) => between(lead, 0x81, 0x83) || between(lead, 0x88, 0x97),
  },
  {
    label: 'euc-jp',
    isCommon: (lead, trail) =>
      trail >= 0xa1 && (between(lead, 0xa1, 0xa5) || between(lead, 0xb0, 0xcf)),
    fits: (leads) => share(leads, (lead) => between(lead, 0xa4, 0xa5)) > 0.15,
  },
  {
    label: 'euc-kr',
    isCommon: (lead, trail) => trail >= 0xa1 && (lead === 0xa1 || between(lead, 0xb0, 0xc8)),
    fits: (leads) =>
      leads.length >= MIN_KOREAN && share(leads, (lead) => between(lead, 0xc9, 0xd7)) < 0.02,
  },
  {
    label: 'gb18030',
    isCommon: (lead, trail) =>
      trail >= 0xa1 && (lead === 0xa1 || lead === 0xa3 || between(lead, 0xb0, 0xd7)),
  },
  { label: 'big5', isCommon: (lead) => lead === 0xa1 || between(lead, 0xa4, 0xc6) },
];
const MIN_COMMON = 0.75;
/** Of the characters; a Western text has its marks inside of words: `it’s`. */
const MAX_IN_WORDS = 0.4;

function asianSetOf(sample: Uint8Array): string | undefined {
  let best: { readonly label: string; readonly common: number } | undefined;
  for (const set of ASIAN_SETS) {
    const common = commonIn(sample, set);
    if (common < MIN_COMMON || common <= (best?.common ?? 0)) continue;
    // The end of a sample may be inside a character.
    if (decodedAs(set.label, sample, true) !== undefined) best = { label: set.label, common };
  }
  return best?.label;
}

/** The share of its characters that are common in this set; 0 if it cannot be in this set. */
function commonIn(sample: Uint8Array, { isSingle, isCommon, fits }: AsianSet): number {
  const leads: number[] = [];
  let others = 0;
  let common = 0;
  let inWords = 0;
  for (let at = 0; at < sample.length; at += 1) {
    const lead = sample[at] ?? 0;
    if (lead < 0x80) continue;
    if (isSingle?.(lead) === true) {
      others += 1;
      continue;
    }
    const trail = sample[at + 1] ?? 0;
    if (isLetter(sample[at - 1]) && isLetter(trail)) inWords += 1;
    leads.push(lead);
    if (isCommon(lead, trail)) common += 1;
    at += 1;
  }
  // Half-width kana among others are usual, a text of them alone is not.
  const count = Math.max(leads.length, others);
  const isStrange = inWords > count * MAX_IN_WORDS || fits?.(leads) === false;
  return count === 0 || isStrange ? 0 : common / count;
}

const isLetter = (byte = 0) => between(byte | 0x20, 0x61, 0x7a);

/** If several fit equally well, the first counts: West before East. */
const LANGUAGES: readonly (readonly [label: string, letters: string])[] = [
  ['windows-1252', 'äöüß'],
  ['windows-1252', 'àâæçéèêëîïôœùûüÿ'],
  ['windows-1252', 'áéíóúñü¿¡ºª'],
  ['windows-1252', 'àáâãçéêíóôõúü'],
  ['windows-1252', 'åäæéöøü'],
  ['windows-1252', 'àèéìîòóù'],
  ['windows-1252', 'áéíóúýþæöð'],
  ['windows-1250', 'ąćęłńóśźż'],
  ['windows-1250', 'áčďéěíňóřšťúůýž'],
  ['windows-1250', 'áäčďéíĺľňóôŕšťúýž'],
  ['windows-1250', 'áéíóöőúüű'],
  ['windows-1250', 'čćđšž'],
  ['windows-1250', 'ăâîşţ'],
  ['windows-1254', 'âçğıîöşûüi̇'],
  ['windows-1257', 'ąčęėįšųūž'],
  ['windows-1257', 'āčēģīķļņšūž'],
  ['windows-1257', 'äöõüšž'],
  ['windows-1251', 'абвгдеёжзийклмнопрстуфхцчшщъыьэюя'],
  ['windows-1251', 'абвгґдеєжзиіїйклмнопрстуфхцчшщьюяў'],
  ['windows-1251', 'абвгдђежзијклљмнњопрстћуфхцчџшѓќѕ'],
  ['koi8-r', 'абвгдеёжзийклмнопрстуфхцчшщъыьэюя'],
  ['windows-1253', 'αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋ'],
  ['windows-1255', 'אבגדהוזחטיךכלםמןנסעףפץצקרשת'],
  ['windows-1256', 'ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىيپچژگک،؛؟ـًٌٍَُِّْ'],
];
/** Used in all languages. */
const NEUTRAL = /[\p{ASCII}\u00a0\u00ad‘’‚“”„‹›«»–—…•·°€£¥¢§©®™±×÷½¼¾²³¹µ†‡‰]/u;
/** Hebrew without a letter that only Cyrillic has is recognised from this number of letters on. */
const MIN_HEBREW = 100;

function singleByteSetOf(sample: Uint8Array): string {
  let best = { label: 'windows-1252', fit: -1 };
  const texts = new Map<string, string | undefined>();
  for (const [label, letters] of LANGUAGES) {
    if (!texts.has(label)) texts.set(label, decodedAs(label, sample));
    const text = texts.get(label);
    const fit = text === undefined ? -1 : fitOf(text, letters, label === 'windows-1255');
    if (fit > best.fit) best = { label, fit };
  }
  return best.label;
}

/** The share of its characters that this language has, each at a permitted position. */
function fitOf(text: string, letters: string, isHebrew: boolean): number {
  let count = 0;
  let fitting = 0;
  let before = '';
  for (const sign of text) {
    if (!NEUTRAL.test(sign)) {
      count += 1;
      // No language continues with capitals after a small letter.
      const breaksWord = /\p{Lu}/u.test(sign) && /\p{Ll}/u.test(before);
      if (!breaksWord && letters.includes(sign.toLowerCase())) fitting += 1;
    }
    before = sign;
  }
  if (count === 0) return 1;
  // As many Cyrillic letters would fit: Hebrew wins by a small margin, and only with enough text.
  const edge = isHebrew ? (count >= MIN_HEBREW ? 0.001 : -0.001) : 0;
  return fitting / count + edge;
}

/** Controls that no text has; an escape may be in the output of a program. */
function hasControls(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 9 || (code > 13 && code < 32 && code !== 27)) return true;
  }
  return false;
}

/** Undefined for an unknown set and for bytes that it does not define. */
function decodedAs(label: string, content: Uint8Array, isBeginning = false): string | undefined {
  try {
    return new TextDecoder(label, { fatal: true }).decode(content, { stream: isBeginning });
  } catch {
    return undefined;
  }
}

// The code of a language, which speech engines name either in English or by its code.

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';

/** `german`, `German`, `de`, `de-DE` -> `de`; undefined for an unknown language. */
export function languageCode(named: string): string | undefined {
  const plain = named.trim().toLowerCase();
  const [, code] = /^([a-z]{2,3})(?:[-_][a-z]{2,4})?$/.exec(plain) ?? [];
  if (code !== undefined) return code;
  if (!/^[a-z ]{4,40}$/.test(plain)) return undefined;
  const inEnglish = namesIn('en');
  return codes().find((code) => inEnglish(code) === plain);
}

/** `german`, `Deutsch` -> `de`: by the English name, or the language's own. */
export function languageNamed(typed: string): string | undefined {
  const plain = typed.normalize('NFC').toLowerCase();
  const inEnglish = namesIn('en');
  return codes().find((code) => {
    const name = inEnglish(code);
    return name !== undefined && (name === plain || namesIn(code)(code) === plain);
  });
}

/** Two-letter codes, except those that the standard replaced. */
function codes(): readonly string[] {
  const pairs = [...LETTERS].flatMap((first) => [...LETTERS].map((second) => `${first}${second}`));
  return pairs.filter((pair) => Intl.getCanonicalLocales(pair)[0] === pair);
}

function namesIn(locale: string): (code: string) => string | undefined {
  const names = new Intl.DisplayNames(locale, { type: 'language', fallback: 'none' });
  return (code) => names.of(code)?.toLowerCase();
}
