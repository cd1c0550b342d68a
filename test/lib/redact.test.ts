import { describe, expect, it } from 'vitest';
import { createRedactor } from '../../src/lib/redact.ts';

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
