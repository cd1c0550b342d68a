// Bytes as text, whatever their character set: a mark at the beginning, UTF-8, what the document says
// of itself, UTF-16, and the two Windows sets that are really met. What is no text stays undefined.

const SAMPLE_BYTES = 65_536;
const DECLARED =
  /<\?xml[^>]{0,200}encoding\s*=\s*["']([\w-]{1,40})["']|<meta[^>]{0,200}charset\s*=\s*["']?([\w-]{1,40})/i;
/** Three Cyrillic letters in a row as Windows-1251 writes them; Western texts have them one by one. */
const CYRILLIC_WORD = /[\xc0-\xff]{3}/g;
const HIGH = /[\x80-\xff]/g;

export function decodeText(content: Uint8Array): string | undefined {
  const marked = markOf(content);
  if (marked !== undefined) return new TextDecoder(marked).decode(content);
  const utf8 = decodedAs('utf-8', content);
  if (utf8 !== undefined) return hasControls(utf8) ? undefined : utf8;
  const sample = Buffer.from(content.subarray(0, SAMPLE_BYTES)).toString('latin1');
  const wide = wideOf(sample);
  if (wide !== undefined) return decodedAs(wide, content);
  if (hasControls(sample)) return undefined;
  const declared = DECLARED.exec(sample);
  const label = declared?.[1] ?? declared?.[2];
  const own = label === undefined ? undefined : decodedAs(label, content);
  return own ?? decodedAs(isCyrillic(sample) ? 'windows-1251' : 'windows-1252', content);
}

function markOf(content: Uint8Array): string | undefined {
  if (content[0] === 0xff && content[1] === 0xfe) return 'utf-16le';
  if (content[0] === 0xfe && content[1] === 0xff) return 'utf-16be';
  return undefined;
}

/** Every other byte of a Western text in UTF-16 is 0. */
function wideOf(sample: string): string | undefined {
  const pairs = Math.floor(sample.length / 2);
  if (pairs < 2) return undefined;
  let first = 0;
  let second = 0;
  for (let at = 0; at < pairs * 2; at += 2) {
    if (sample[at] === '\0') first += 1;
    if (sample[at + 1] === '\0') second += 1;
  }
  if (second > pairs * 0.4 && first < pairs * 0.05) return 'utf-16le';
  return first > pairs * 0.4 && second < pairs * 0.05 ? 'utf-16be' : undefined;
}

function isCyrillic(sample: string): boolean {
  const high = sample.match(HIGH)?.length ?? 0;
  return (sample.match(CYRILLIC_WORD)?.length ?? 0) * 3 > high * 0.5;
}

/** Controls that no text has; an escape may be in the output of a program. */
function hasControls(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 9 || (code > 13 && code < 32 && code !== 27)) return true;
  }
  return false;
}

/** Undefined for an unknown set and for bytes that it does not have. */
function decodedAs(label: string, content: Uint8Array): string | undefined {
  try {
    return new TextDecoder(label, { fatal: true }).decode(content);
  } catch {
    return undefined;
  }
}
