import { describe, expect, test } from 'vitest';
import { renderEmailHtml } from '../../src/channels/email/rules/text.ts';
import { renderTelegramHtml } from '../../src/channels/telegram/parts.ts';
import { parseMarkup, renderPlain } from '../../src/lib/markup/markup.ts';

const telegram = (markdown: string) => renderTelegramHtml(parseMarkup(markdown).runs);

describe('Markdown as Telegram HTML', () => {
  test.each([
    ['**b** *i* ~~s~~ `c`', '<b>b</b> <i>i</i> <s>s</s> <code>c</code>'],
    ['# Title\n\ntext', '<b>Title</b>\n\ntext'],
    ['a < b & c > d', 'a &lt; b &amp; c &gt; d'],
    ['***both***', '<b><i>both</i></b>'],
    ['a\nb', 'a\nb'],
    ['[x](https://a.b/?q="1"&r)', 'x (https://a.b/?q="1"&amp;r)'.replaceAll('"', '&quot;')],
    ['[x](https://a.b/?q&r)', '<a href="https://a.b/?q&amp;r">x</a>'],
    ['[x](javascript:alert)', 'x (javascript:alert)'],
    ['https://a.b/c', 'https://a.b/c'],
    ['![cat](https://a.b/c.png)', '<a href="https://a.b/c.png">cat</a>'],
    ['- a\n- b\n  - c', '• a\n• b\n   ◦ c'],
    ['3. a\n4. b', '3. a\n4. b'],
    ['- [x] done\n- [ ] open', '• ☑ done\n• ☐ open'],
    ['> q\n> > r', '<blockquote>q\n\n» r</blockquote>'],
    ['> a\n\nb', '<blockquote>a</blockquote>\n\nb'],
    ['```js\na < b\n```', '<pre><code class="language-js">a &lt; b</code></pre>'],
    ['```\nno end', '<pre>no end</pre>'],
    ['**bold `code` bold**', '<b>bold </b><code>code</code><b> bold</b>'],
    ['[a `b`](https://c.d)', '<a href="https://c.d">a b</a>'],
    ['<script>x</script>', '&lt;script&gt;x&lt;/script&gt;'],
    ['a<br>b', 'a\nb'],
    ['a[^1]\n\n[^1]: note', 'a[^1]\n\n[^1]: note'],
    ['a &lt;b&gt; &amp;amp;', 'a &lt;b&gt; &amp;amp;'],
    ['a\n\n---\n\nb', 'a\n\n──────────\n\nb'],
    ['约10~20元，每次30~40分钟', '约10~20元，每次30~40分钟'],
    ['**注意：**请看**「重点」**的内容', '<b>注意：</b>请看<b>「重点」</b>的内容'],
    ['**중요(필수)**입니다', '<b>중요(필수)</b>입니다'],
    ['f(**a) and g(**b)', 'f(**a) and g(**b)'],
    ['5 * 3 * 2 and snake_case_name', '5 * 3 * 2 and snake_case_name'],
  ])('%j becomes %j', (markdown, html) => {
    expect(telegram(markdown)).toBe(html);
  });

  test('a small table stands aligned, wide characters counted as two columns', () => {
    expect(telegram('| n | v |\n|---|--:|\n| 漢字 | 1 |\n| ab | 10 |')).toBe(
      '<pre>n    |  v\n-----+---\n漢字 |  1\nab   | 10</pre>'.replace('-----+---', '-----+---'),
    );
  });

  test('a table with links or too wide for a phone becomes one paragraph per row', () => {
    expect(telegram('| name | site |\n|---|---|\n| A | [x](https://a.b) |')).toBe(
      '<b>name</b>: <b>A</b>\n• <b>site</b>: <a href="https://a.b">x</a>',
    );
  });
});

describe('Markdown as plain text', () => {
  test('addresses of links are written out and quotes marked', () => {
    expect(renderPlain('# T\n\n**b** [x](https://a.b)\n\n> q\n> r')).toBe(
      'T\n\nb x (https://a.b)\n\n> q\n> r',
    );
  });
});

describe('Markdown as mail', () => {
  test('structure becomes HTML and nothing a model writes can act', () => {
    const html = renderEmailHtml(
      '# T\n\n- a\n- b\n\n[x](javascript:alert) <img src=x onerror=y>\n\n![p](https://a.b/p.png)',
    );
    expect(html).toContain('<h1>T</h1>');
    expect(html).toContain('<ul>\n<li>a</li>\n<li>b</li>\n</ul>');
    expect(html).toContain('x (javascript:alert) &lt;img src=x onerror=y&gt;');
    expect(html).toContain('<a href="https://a.b/p.png">p</a>');
    expect(html).not.toMatch(/<img|href="javascript/);
  });
});
