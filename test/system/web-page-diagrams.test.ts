// Diagrams of Mermaid in the web page: drawn in a frame that can reach nothing, and never more than a
// drawing, whatever their source wants.

import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeInChromium } from '../support/chromium.ts';
import { fits, SCREENS } from '../support/console-page.ts';
import { eventually, type ForeignSite, openPage, startForeignSite } from '../support/web-page.ts';

const fenced = (source: string) => `\`\`\`mermaid\n${source}\n\`\`\``;
const FLOW =
  'flowchart LR\n  A[Message] --> B{On disk?}\n  B -->|yes| C[Acknowledge]\n  B -->|no| A';
const SEQUENCE = 'sequenceDiagram\n  participant Ada\n  Ada->>Bot: Hello\n  Bot-->>Ada: Hi there';

const FRAME = 'iframe.diagram.drawn';

/** The colour of the texts in the drawing. */
const inkOf = (page: Page) =>
  page
    .frameLocator(FRAME)
    .locator('svg .nodeLabel')
    .first()
    .evaluate((label) => getComputedStyle(label).color);

/** Each would be seen by `site`, by the page or by the address of the frame if any of it came to life. */
function hostile(site: string): readonly string[] {
  const run = 'parent.pwned=1;top.pwned=1;window.pwned=1';
  return [
    `flowchart TD\n  A["<script>${run}</script><img src=x onerror='${run}'>"] --> B["<iframe src='${site}/f'></iframe>"]`,
    `flowchart TD\n  A --> B\n  click A "javascript:${run}" "tip" _top\n  click B "${site}/link" _top`,
    `flowchart TD\n  A --> B\n  click A call alert("x")\n  click B callback "tip"`,
    `%%{init: {"securityLevel": "loose", "htmlLabels": true, "maxTextSize": 9000000, "themeCSS": "@import '${site}/i.css'; * { background: url(${site}/css) }"}}%%\nflowchart TD\n  A["<img src='${site}/init' onerror='${run}'>"]\n  click A href "${site}/a" _blank`,
    `---\nconfig:\n  securityLevel: loose\n  layout: elk\n  fontFamily: "x;} @import '${site}/font.css'; {"\n---\nflowchart TD\n  A@{ img: "${site}/shape.png", label: "x", w: 60, h: 60 } --> B`,
    `flowchart TD\n  classDef evil fill:url(${site}/fill),background:url(${site}/back)\n  A:::evil --> B\n  style B fill:url(${site}/style)`,
    `sequenceDiagram\n  participant A as <img src=x onerror="${run}">\n  link A: out @ ${site}/seq\n  links A: {"js": "javascript:${run}"}\n  A->>A: <svg onload="${run}">`,
    `classDiagram\n  class A\n  link A "${site}/class" "tip"\n  callback A "alert"`,
  ];
}

describeInChromium('a diagram in the web page', () => {
  let site: ForeignSite;

  beforeAll(async () => {
    site = await startForeignSite();
  });

  afterAll(async () => {
    await site?.[Symbol.asyncDispose]();
  });

  it('is drawn above its folded source when a message has one, in the theme of the page, also after a reload', async () => {
    await using rig = await openPage();
    const { page } = rig;
    const requests: string[] = [];
    page.on('request', (request) => requests.push(new URL(request.url()).pathname));
    await rig.answer('web:a#1', 'No diagram:\n\n```ts\nconst a = 1;\n```');
    await page.waitForSelector('.hljs-keyword');
    expect(requests.filter((path) => path.startsWith('/diagrams/'))).toEqual([]);

    await rig.answer('web:a#2', `Look:\n\n${fenced(FLOW)}`);
    const svg = page.frameLocator(FRAME).locator('svg');
    const drawn = async () => {
      const { width = 0, height = 0 } = (await svg.first().boundingBox()) ?? {};
      expect(width).toBeGreaterThan(150);
      expect(height).toBeGreaterThan(40);
      const frame = await page.locator(FRAME).boundingBox();
      expect(frame?.height).toBeGreaterThanOrEqual(height);
    };
    await eventually(drawn);
    expect(await page.frameLocator(FRAME).locator('text=Acknowledge').count()).toBeGreaterThan(0);
    const source = page.locator('.code-block:has(.diagram) pre');
    expect(await source.isVisible()).toBe(false);
    await page.getByText('Source', { exact: true }).click();
    expect(await source.innerText()).toBe(FLOW);

    const light = await inkOf(page);
    await page.emulateMedia({ colorScheme: 'dark' });
    await eventually(async () => expect(await inkOf(page)).not.toBe(light));
    await page.reload();
    await eventually(drawn);
    expect(rig.problems).toEqual([]);
  });

  it('keeps its source, with the reason, where it cannot be drawn', async () => {
    await using rig = await openPage();
    const { page } = rig;
    await rig.answer('web:a#1', fenced('flowchart LR\n  A -->'));
    await page.waitForSelector('.diagram-problem >> text=could not be drawn.');
    expect(await page.locator('iframe').count()).toBe(0);
    expect(await page.innerText('.code-block pre')).toBe('flowchart LR\n  A -->');

    await page.route('**/diagrams/mermaid*', () => undefined);
    await page.clock.install();
    await rig.answer('web:a#2', fenced(SEQUENCE));
    await page.waitForSelector('iframe.diagram', { state: 'attached' });
    await page.clock.runFor('01:00');
    await page.waitForSelector('.diagram-problem >> text=It took too long.');
    expect(await page.locator('.code-block pre >> nth=1').innerText()).toBe(SEQUENCE);
  });

  it('runs nothing, loads nothing and leads nowhere, whatever its source wants', async () => {
    await using rig = await openPage();
    const { page } = rig;
    for (const [index, source] of hostile(site.address).entries()) {
      await rig.answer(`web:a#${index}`, fenced(source));
      const block = page.locator('.said .code-block').nth(index);
      await block.locator('.diagram.drawn, .diagram-problem').waitFor();
      const shown = block.locator('.diagram');
      if ((await shown.count()) === 0) continue;
      const frame = await (await shown.elementHandle())?.contentFrame();
      for (const part of (await frame?.locator('svg :is(a, .clickable, .node, .actor)').all()) ??
        [])
        await part.dispatchEvent('click');
      expect(
        await frame?.evaluate(
          '[self.origin, window.pwned, document.querySelectorAll("[href^=http], [href^=javascript], script:not([src]), iframe").length]',
        ),
      ).toEqual(['null', undefined, 0]);
      expect(frame?.url()).toBe(`${rig.address}/diagrams/`);
    }
    expect(await page.locator('.diagram.drawn').count()).toBeGreaterThan(3);
    expect(await page.evaluate('window.pwned')).toBeUndefined();
    expect(page.context().pages()).toHaveLength(1);
    expect(page.url()).toBe(`${rig.address}/#a`);
    expect(site.requests).toEqual([]);
  });

  it('is a frame that reads neither the login nor the API, and that no other page may hold', async () => {
    await using rig = await openPage();
    const { page } = rig;
    await rig.answer('web:a#1', fenced(FLOW));
    await page.waitForSelector(FRAME);
    const frame = page.frames().find((one) => one.url().endsWith('/diagrams/'));
    const reach = await frame?.evaluate(`Promise.all([
      () => localStorage.getItem('nanobot.session'),
      () => parent.document.title,
      () => fetch('/api/v1/chats'),
    ].map(async (reach) => { try { return [await reach()]; } catch (error) { return 'refused'; } }))`);
    expect(reach).toEqual(['refused', 'refused', 'refused']);
    const { headers } = await rig.http.ask('/diagrams/');
    expect(headers['content-security-policy']).toContain("frame-ancestors 'self'");
    expect(headers['content-security-policy']).toContain('sandbox allow-scripts;');
  });

  it('fits each screen beside code and a formula', async () => {
    for (const { viewport, themes } of SCREENS) {
      await using rig = await openPage({ context: { viewport, bypassCSP: true } });
      await rig.answer(
        'web:a#1',
        [
          'Code, $e^{i\\pi}+1=0$:',
          '```ts\nconst a: number = 1; // one\n```',
          '$$\\int_0^1 x^2\\,dx$$',
        ].join('\n\n'),
      );
      await rig.answer(
        'web:a#2',
        [fenced(FLOW), fenced(SEQUENCE), fenced('pie\n broken')].join('\n\n'),
      );
      await rig.page.waitForSelector('.diagram-problem');
      await eventually(async () => expect(await rig.page.locator(FRAME).count()).toBe(2));
      for (const colorScheme of themes) {
        await rig.page.emulateMedia({ colorScheme });
        await fits(rig.page, `chat-diagrams-${viewport.width}-${colorScheme}`);
      }
    }
  });
});
