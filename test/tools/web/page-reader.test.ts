import { afterAll, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/lib/time/clock.ts';
import { PageReader } from '../../../src/tools/web/web-fetch.ts';
import { campaignOf } from '../../support/campaign.ts';

const LIMIT_MS = 20_000;
/** What pages made to hurt have instead: they would use up any time. */
const SHORT_LIMIT_MS = 300;
const limit = { ms: LIMIT_MS };
const clock: Clock = {
  ...systemClock,
  timer: (ms, run) => systemClock.timer(ms === LIMIT_MS ? limit.ms : ms, run),
};
const reader = new PageReader({ clock, limitMs: LIMIT_MS });

afterAll(() => reader[Symbol.asyncDispose]());

const signal = new AbortController().signal;

function read(html: string | Uint8Array, contentType = 'text/html; charset=utf-8') {
  const bytes = typeof html === 'string' ? Buffer.from(html) : html;
  return reader.read({ bytes, contentType, url: 'https://site.example/news/one.html' }, signal);
}

const ARTICLE = `<!doctype html><html><head><title> Tea   prices rise </title>
<style>.quiet{display:none} .far, .other { position:absolute; left:-9999px } @media print{.seen{display:none}}</style>
<meta name="author" content="META-SECRET"><script type="application/ld+json">{"headline":"LD-SECRET"}</script></head>
<body><nav><a href="/home">Home</a></nav>
<article><h1>Tea prices rise</h1>
<p>${'The price of tea rose again this week, traders say, after a dry spring. '.repeat(8)}</p>
<h2>Why</h2><p>${'Less rain fell than in any year before. '.repeat(8)}See <a href="../data?x=1#top" title="TITLE-SECRET">the data</a>.</p>
<ul><li>green</li><li>black</li></ul>
<table><tr><th>Kind</th><th>Price</th></tr><tr><td>Green</td><td>4 | 5</td></tr></table>
<pre><code>total = 1 + 2
</code></pre>
<p class="seen">${'Printed pages look different from this one. '.repeat(4)}</p>
</article><script>document.title='x'</script></body></html>`;

describe('a page', () => {
  it('is read as its article in Markdown, with whole links', async () => {
    const { title, text } = await read(ARTICLE);
    expect(title).toBe('Tea prices rise');
    expect(text).toContain('## Why');
    expect(text).toContain('[the data](https://site.example/data?x=1#top)');
    expect(text).toContain('- green\n- black');
    expect(text).toContain('Printed pages');
    expect(text).toContain('```\ntotal = 1 + 2\n```');
    expect(text).toContain('Kind | Price\nGreen | 4 \\| 5');
    expect(text).not.toMatch(/SECRET|document\.title/);
  });

  it('without an article is read whole', async () => {
    const links = Array.from({ length: 30 }, (_, n) => `<li><a href="/p${n}">Story ${n}</a></li>`);
    const { text } = await read(`<title>Front</title><body><ul>${links.join('')}</ul></body>`);
    expect(text).toContain('[Story 29](https://site.example/p29)');
  });

  it('keeps its characters, whoever says which they are', async () => {
    const latin = Buffer.from('<title>Caf\xe9</title><p>na\xefve</p>', 'latin1');
    expect((await read(latin, 'text/html; charset=iso-8859-1')).title).toBe('Café');
    const meta = Buffer.from('<meta charset="windows-1252"><title>Caf\xe9</title>', 'latin1');
    expect((await read(meta, 'text/html')).title).toBe('Café');
    const japanese = Buffer.from([0x93, 0xfa, 0x96, 0x7b]);
    expect((await read(japanese, 'text/html; charset=shift_jis')).text).toBe('日本');
  });

  it('links nowhere but to the web', async () => {
    const { text } = await read(
      '<p><a href="javascript:alert(1)">a</a> <a href="data:text/html,x">b</a> <a href="file:///etc/passwd">c</a> <a href="http://[">d</a></p>',
    );
    expect(text).toBe('a b c d');
  });
});

const HIDDEN = [
  '<p hidden>X</p>',
  '<p hidden="until-found">X</p>',
  '<p style="display:none">X</p>',
  '<p style="DISPLAY : NONE !important">X</p>',
  '<p style="display:/**/none">X</p>',
  '<p style="visibility:hidden">X</p>',
  '<p style="opacity:0">X</p>',
  '<p style="opacity:.01">X</p>',
  '<p style="font-size:0">X</p>',
  '<p style="font-size:1px">X</p>',
  '<p style="font-size:0.01em">X</p>',
  '<p style="color:transparent">X</p>',
  '<p style="color:rgba(0,0,0,0)">X</p>',
  '<p style="color:#fff;background-color:#fff">X</p>',
  '<p style="color:white;background:white">X</p>',
  '<p><font color="#ffffff">X</font></p>',
  '<p style="position:absolute;left:-9999px">X</p>',
  '<p style="position:fixed;top:-100em">X</p>',
  '<p style="text-indent:-9999px">X</p>',
  '<p style="height:0;overflow:hidden">X</p>',
  '<p style="width:1px;height:1px;overflow:hidden">X</p>',
  '<p style="max-height:0px;overflow:hidden">X</p>',
  '<p style="clip:rect(0 0 0 0)">X</p>',
  '<p style="clip:rect(0px, 0px, 0px, 0px);position:absolute">X</p>',
  '<p style="clip-path:inset(100%)">X</p>',
  '<p style="clip-path:circle(0)">X</p>',
  '<p style="transform:scale(0)">X</p>',
  '<p style="transform:translateX(-10000px)">X</p>',
  '<p style="filter:opacity(0)">X</p>',
  '<p style="content-visibility:hidden">X</p>',
  '<p style="-webkit-text-fill-color:transparent">X</p>',
  '<p aria-hidden="true">X</p>',
  '<!-- X -->',
  '<!--[if IE]>X<![endif]-->',
  '<noscript>X</noscript>',
  '<template>X</template>',
  '<dialog>X</dialog>',
  '<textarea>X</textarea>',
  '<input type="hidden" value="X">',
  '<input placeholder="X">',
  '<select><option>X</option></select>',
  '<button>X</button>',
  '<img alt="X" src="/a.png">',
  '<img alt="X" title="X" width="1" height="1" src="/a.png">',
  '<picture><img alt="X" src="/a.png"></picture>',
  '<svg><title>X</title><text>X</text></svg>',
  '<iframe srcdoc="X">X</iframe>',
  '<object data="a">X</object>',
  '<video>X</video>',
  '<canvas>X</canvas>',
  '<p title="X">seen</p>',
  '<p data-note="X">seen</p>',
  '<a href="/a" title="X">seen</a>',
  '<table summary="X"><tr><td>seen</td></tr></table>',
  '<style>.q{display:none}</style><p class="q">X</p>',
  '<style>p#q{visibility:hidden}</style><p id="q">X</p>',
  '<style>div > .q{opacity:0}</style><div><p class="q">X</p></div>',
  '<style>a{color:red} .q,.r{font-size:0}</style><p class="r">X</p>',
  '<style>.q{position:absolute;left:-999em}</style><p class="q">X</p>',
  '<div style="display:none"><div style="display:block"><p>X</p></div></div>',
  '<div width="1" height="1">X</div>',
  '<xmp hidden>X</xmp>',
  '<script>X</script>',
  '<style>X</style>',
  '<p>se\u{E0058}\u{E0041}en\u200b\u2060</p>',
];

describe('what nobody sees on a page', () => {
  it.each(HIDDEN)('is not read: %s', async (html) => {
    const page = `<title>t</title><body><p>before</p>${html}<p>after</p></body>`;
    const { text } = await read(page);
    expect(text).toContain('before');
    expect(text).toContain('after');
    expect(text).not.toMatch(/X|\u{E0041}/u);
  });

  it('is not taken for what a person does see', async () => {
    const seen = [
      '<p style="color:#333;background:#fff">A1</p>',
      '<p style="font-size:12px;opacity:0.9;overflow:hidden">A2</p>',
      '<p style="position:relative;left:-3px">A3</p>',
      '<p class="hidden-gem" style="display:block">A4</p>',
      '<details><summary>A5</summary>A6</details>',
      '<p style="width:100px;height:20px;overflow:hidden">A7</p>',
      '<style>.z{display:block}@media print{p{display:none}}</style><p class="z">A8</p>',
    ];
    const { text } = await read(`<body>${seen.join('')}</body>`);
    for (let n = 1; n <= 8; n += 1) expect(text).toContain(`A${n}`);
  });

  it('does not make a page empty that shows itself by a program', async () => {
    const { text } = await read('<body style="opacity:0"><main hidden>text</main></body>');
    expect(text).toBe('text');
  });
});

describe('a page made to hurt', () => {
  const HOSTILE: Readonly<Record<string, string>> = {
    'a million open tags': '<div>'.repeat(400_000),
    'depth and text': `${'<b><i>'.repeat(50_000)}deep${'</i></b>'.repeat(50_000)}`,
    'open tables': '<table><tr><td>'.repeat(20_000),
    'open formatting': '<a><b><font><nobr>'.repeat(20_000),
    'a wall of attributes': `<p ${Array.from({ length: 50_000 }, (_, n) => `a${n}=1`).join(' ')}>x`,
    'one endless attribute': `<p style="${'a:b;'.repeat(400_000)}">x</p>`,
    'hostile style': `<style>${'div:not(:not(div '.repeat(5000)}{display:none}</style>x`,
    'costly selectors': `<style>${'* * * * * * * :has(*) {display:none}'.repeat(300)}</style>${'<p>x</p>'.repeat(2000)}`,
    entities: '&amp;'.repeat(400_000),
    'nul and controls': '\u0000\u0001<p\u0000>x\u0000</p>'.repeat(10_000),
    'a doctype of its own': `<!DOCTYPE html [${'<!ENTITY a "aaaaaaaaaa">'.repeat(10_000)}]>&a;`,
    'frames in frames': '<iframe srcdoc="<iframe>">'.repeat(10_000),
    'quotes without end': `<p>${"<a href='".repeat(50_000)}`,
    blockquotes: '<blockquote>'.repeat(5000),
    lists: '<ul><li>'.repeat(5000),
  };

  it.each(campaignOf(Object.entries(HOSTILE), 5))(
    'costs its time and no more: %s',
    async (_name, html) => {
      limit.ms = SHORT_LIMIT_MS;
      const outcome = await read(html)
        .then(
          () => 'read',
          (error) => error.message,
        )
        .finally(() => {
          limit.ms = LIMIT_MS;
        });
      expect(outcome).toMatch(/^read$|^the page /);
      expect((await read('<p>next</p>')).text).toBe('next');
    },
  );

  it('is given up at its deadline', async () => {
    const own = new PageReader({ clock: systemClock, limitMs: 200 });
    const slow = own.read(
      {
        bytes: Buffer.from('<a><b><font><nobr><p>'.repeat(100_000)),
        contentType: 'text/html',
        url: 'https://a.example/',
      },
      signal,
    );
    await expect(slow).rejects.toThrow('the page takes too long to read');
    await own[Symbol.asyncDispose]();
  });

  it('is left when the turn is stopped', async () => {
    const stop = new AbortController();
    const work = reader.read(
      { bytes: Buffer.from('<div>'.repeat(300_000)), contentType: '', url: 'https://a.example/' },
      stop.signal,
    );
    stop.abort(new Error('stopped'));
    await expect(work).rejects.toThrow('stopped');
    expect((await read('<p>next</p>')).text).toBe('next');
  });
});
