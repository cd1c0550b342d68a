// An answer that wants to be a beacon: an address with what it learned in it, to be fetched by
// whatever shows the answer (case J06). Nothing we render loads anything.

import { describe, expect, it } from 'vitest';
import { renderEmailHtml } from '../../src/channels/email/rules/text.ts';
import { NO_PREVIEW, renderTelegramHtml } from '../../src/channels/telegram/parts.ts';
import { textContent } from '../../src/channels/whatsapp/drafts.ts';
import { parseMarkup } from '../../src/lib/markup/markup.ts';
import { BEACON_HOST, BEACONS } from '../support/beacons.ts';

/** Elements and attributes by which HTML makes its reader ask somebody. */
const LOADING_ELEMENT =
  /<(?:img|image|picture|source|video|audio|track|embed|object|iframe|frame|link|script|style|svg|input|body|table[^>]*background|meta|base|form|portal)\b/i;
const LOADING_ATTRIBUTE =
  /<[^>]+\s(?:src|srcset|background|poster|ping|data|action|formaction|cite|longdesc|manifest|on\w+)\s*=/i;

describe('a beacon in an answer', () => {
  it('comes in more than 40 forms here', () => {
    expect(new Set(BEACONS).size).toBeGreaterThanOrEqual(40);
    expect(BEACONS.every((text) => text.includes(BEACON_HOST))).toBe(true);
  });

  it.each(BEACONS)('loads nothing in a mail: %s', (markdown) => {
    const html = renderEmailHtml(markdown);
    expect(html).not.toMatch(LOADING_ELEMENT);
    expect(html).not.toMatch(LOADING_ATTRIBUTE);
    expect(html).not.toMatch(/style="[^"]*url\(/i);
  });

  it.each(BEACONS)('loads nothing on Telegram: %s', (markdown) => {
    const html = renderTelegramHtml(parseMarkup(markdown).runs);
    expect(html).not.toMatch(LOADING_ELEMENT);
    expect(html).not.toMatch(LOADING_ATTRIBUTE);
    expect(html).not.toMatch(/style="[^"]*url\(/i);
  });

  it('gets no preview of its link on Telegram and WhatsApp', () => {
    expect(NO_PREVIEW).toEqual({ is_disabled: true });
    const content = textContent(`https://${BEACON_HOST}/?secret=1`);
    expect(content).toEqual({ text: `https://${BEACON_HOST}/?secret=1`, linkPreview: null });
  });
});
