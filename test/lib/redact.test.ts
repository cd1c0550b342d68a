import { describe, expect, it } from 'vitest';
import { createRedactor, withShortNumbers } from '../../src/lib/text/redact.ts';

const SECRET = '123456:AAE"x/y+z';

describe('the redactor', () => {
  const redact = createRedactor([SECRET, 'abc', '']);

  it.each([
    `token ${SECRET}`,
    `url https://api.example/bot${encodeURIComponent(SECRET)}/getMe`,
    JSON.stringify({ error: `refused ${SECRET}` }),
    `form key=${new URLSearchParams({ SECRET })}`,
    `<p title="${SECRET.replaceAll('"', '&quot;')}">`,
    `Basic ${Buffer.from(`me:${SECRET}`).toString('base64')}`,
    `Basic ${Buffer.from(`you:${SECRET}`).toString('base64url')}`,
    `PLAIN ${Buffer.from(`\0a@b.example\0${SECRET}`).toString('base64')}`,
  ])('leaves nothing of a secret in %j', (text) => {
    expect(redact(text)).toContain('[redacted]');
    expect(redact(text)).not.toMatch(/AAE|QUFF|FBR|BQU/);
  });

  it('leaves ordinary text alone, however short a secret is', () => {
    expect(redact('abc and more')).toBe('abc and more');
  });

  it('leaves no rest where one secret contains another', () => {
    const both = createRedactor(['secret-one', 'secret-one-and-two']);
    expect(both('secret-one-and-two')).toBe('[redacted]');
  });
});

describe('phone numbers', () => {
  it.each([
    ['{"session":"whatsapp:+4915112345678","n":1}', '{"session":"whatsapp:+…5678","n":1}'],
    ['whatsapp:default:+15550100001/3EB0/+15550100001', 'whatsapp:default:+…0001/3EB0/+…0001'],
    ['no file whatsapp_+15550100001/2026-11-22.jsonl', 'no file whatsapp_+…0001/2026-11-22.jsonl'],
    ['sessions/whatsapp%3A%2B15550100001', 'sessions/whatsapp%3A%2B…0001'],
    ['from 15550100001:4@s.whatsapp.net', 'from …0001:4@s.whatsapp.net'],
    ['in 15550100001-1500000000@g.us', 'in …0001-1500000000@g.us'],
  ])('%s keeps the last four digits', (line, shortened) => {
    expect(withShortNumbers(line)).toBe(shortened);
  });

  it.each([
    '{"time":"2026-11-22T18:00:00.000+0000","bytes":15550100001}',
    'telegram:15550100001#7 and 120363000000000000@g.us and 100000000000001@lid',
    'ann+1234567890@example.org',
    '+12 of 300',
  ])('%s has none', (line) => {
    expect(withShortNumbers(line)).toBe(line);
  });
});
