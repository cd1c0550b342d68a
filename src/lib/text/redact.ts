// Replaces the values of known secrets wherever they occur: log lines, chats, tool results, HTTP
// responses. Includes their form in JSON, URLs, HTML and Base64.

/** Shorter values would redact ordinary words. */
const MIN_SECRET_CHARS = 6;
/** A shorter piece of Base64 occurs by chance. */
const MIN_BASE64_CHARS = 12;
const MASK = '[redacted]';
const BITS_OF_BASE64_CHAR = 6;

export type Redactor = (text: string) => string;

export function createRedactor(secrets: readonly string[]): Redactor {
  // Longest first, so that a secret that contains another leaves no rest.
  const values = [...new Set(secrets.flatMap(spellings))].sort((a, b) => b.length - a.length);
  if (values.length === 0) return (text) => text;
  const pattern = new RegExp(values.map(literally).join('|'), 'g');
  return (text) => text.replace(pattern, MASK);
}

const PHONE_NUMBER = /((?<![A-Za-z0-9.])\+|%2B)\d{3,11}(\d{4})(?!\d)/gi;
/**
 * In WhatsApp's addresses of people, and of old groups, which start with their creator's number.
 */
const NUMBER_IN_ADDRESS =
  /(?<!\d)\d{3,11}(\d{4})(?=(?:[:_]\d+)?@(?:s\.whatsapp\.net|c\.us|hosted\b)|-\d+@g\.us)/g;

/** Phone numbers shortened to their last four digits, which distinguish people in logs. */
export function withShortNumbers(text: string): string {
  return text.replace(PHONE_NUMBER, '$1…$2').replace(NUMBER_IN_ADDRESS, '…$1');
}

const literally = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

function spellings(secret: string): readonly string[] {
  if (secret.length < MIN_SECRET_CHARS) return [];
  const inUrl = encodeURIComponent(secret.toWellFormed());
  const inHtml = secret
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
  return [
    ...[secret, JSON.stringify(secret).slice(1, -1), inUrl, inUrl.replaceAll('%20', '+'), inHtml],
    ...[0, 1, 2].flatMap((offset) => inBase64(secret, offset)),
  ];
}

/** The part that is independent of what precedes it, e.g. the user name of a basic login. */
function inBase64(secret: string, offset: number): readonly string[] {
  const whole = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)]);
  const start = Math.ceil((offset * 8) / BITS_OF_BASE64_CHAR);
  const end = Math.floor((whole.length * 8) / BITS_OF_BASE64_CHAR);
  const parts = [whole.toString('base64'), whole.toString('base64url')];
  return parts
    .map((part) => part.slice(start, end))
    .filter((part) => part.length >= MIN_BASE64_CHARS);
}
