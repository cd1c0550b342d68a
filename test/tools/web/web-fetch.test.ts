import { createServer, type RequestListener, type Server } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { createWebFetch } from '../../../src/tools/web/web-fetch.ts';
import { portOf } from '../../support/listening.ts';
import { createWebTools, type WebToolSetup } from '../../support/web-tools.ts';
import { createWorkspace } from '../workspace-fixture.ts';

const running: Server[] = [];

afterEach(() => {
  for (const server of running.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  running.push(server);
  return `127.0.0.1:${await portOf(server)}`;
}

async function web(host: string, setup: WebToolSetup = {}) {
  const { context } = await createWorkspace();
  const tool = createWebFetch(createWebTools({ allowPrivateHosts: [host], ...setup }));
  return (url: string, offset?: number) =>
    tool.run(offset === undefined ? { url } : { url, offset }, context);
}

const page = (body: string) => `<!doctype html><title>A page</title><body>${body}</body>`;

describe('web_fetch', () => {
  it('gives title, last address and the text of a page', async () => {
    const host = await serve((request, response) => {
      if (request.url === '/old') response.writeHead(301, { location: '/new' }).end();
      else response.setHeader('content-type', 'text/html').end(page('<p>Hello <b>you</b></p>'));
    });
    const read = await web(host);
    expect(await read(`http://${host}/old`)).toBe(
      `Address: http://${host}/new\nTitle: A page\n\nHello **you**`,
    );
  });

  it('asks without cookies, and says who it is', async () => {
    const seen: unknown[] = [];
    const host = await serve(({ method, headers }, response) => {
      seen.push([method, headers.cookie, headers.authorization, headers['user-agent']]);
      response.setHeader('set-cookie', 'a=b').end('x');
    });
    const read = await web(host);
    await read(`http://${host}/`);
    await read(`http://${host}/`);
    const plain = ['GET', undefined, undefined, expect.stringContaining('nanobot')];
    expect(seen).toEqual([plain, plain]);
  });

  it('gives other text as it is, in its own characters', async () => {
    const host = await serve((request, response) => {
      const [type, body] =
        request.url === '/json'
          ? ['application/problem+json', Buffer.from('{"a": "ü"}')]
          : request.url === '/unsaid'
            ? ['text/csv', Buffer.from('\x93\xfa\x96\x7b,\x93\x8c\x8b\x9e', 'latin1')]
            : ['text/plain; charset=iso-8859-1', Buffer.from('caf\xe9', 'latin1')];
      response.setHeader('content-type', String(type)).end(body);
    });
    const read = await web(host);
    expect(await read(`http://${host}/json`)).toContain('{"a": "ü"}');
    expect(await read(`http://${host}/text`)).toContain('café');
    expect(await read(`http://${host}/unsaid`)).toContain('日本,東京');
  });

  it('names what is no text instead of reading it', async () => {
    const bodies: Readonly<Record<string, readonly [string, string]>> = {
      '/pdf': ['application/pdf', '%PDF-1.7 ...'],
      '/lie': ['text/html', '%PDF-1.7 ...'],
      '/image': ['image/webp', 'RIFF'],
      '/binary': ['', 'a\0b'],
    };
    const host = await serve((request, response) => {
      const [type = '', body = ''] = bodies[request.url ?? ''] ?? [];
      if (type !== '') response.setHeader('content-type', type);
      response.end(body);
    });
    const read = await web(host);
    expect(await read(`http://${host}/pdf`)).toContain('(a PDF document, 12 bytes: not text');
    expect(await read(`http://${host}/lie`)).toContain('(a PDF document');
    expect(await read(`http://${host}/image`)).toContain('(a file (image/webp), 4 bytes');
    expect(await read(`http://${host}/binary`)).toContain('(binary data');
  });

  it('cuts a long page, says where, and reads on in the same text', async () => {
    let version = 0;
    const words = () => Array.from({ length: 2000 }, (_, n) => `word${version}-${n}`).join(' ');
    const host = await serve((_request, response) => {
      version += 1;
      response.setHeader('content-type', 'text/plain').end(words());
    });
    const read = await web(host, { maxResultChars: 5000 });
    let whole = '';
    let offset: number | undefined;
    for (let parts = 0; parts < 20; parts += 1) {
      const result = await read(`http://${host}/`, offset);
      expect(result.length).toBeLessThanOrEqual(5000);
      const [, body = '', next] =
        /^Address: [^\n]*\n\n(.*?)(?:\n\n\[characters \d+ to \d+ of [\d,]+; read on with offset (\d+)\])?$/s.exec(
          result,
        ) ?? [];
      whole += body;
      if (next === undefined) break;
      offset = Number(next);
    }
    expect(version).toBe(1);
    expect(whole).toBe(words());
    await expect(read(`http://${host}/`, 999_999)).rejects.toThrow('the text has only');
  });

  it('says what went wrong in words', async () => {
    const host = await serve((request, response) => {
      response.writeHead(request.url === '/gone' ? 404 : 500).end('secret stack trace');
    });
    const read = await web(host);
    await expect(read(`http://${host}/gone`)).rejects.toThrow('status 404');
    await expect(read('http://10.0.0.1/')).rejects.toThrow('not on the public internet');
    await expect(read('ftp://example.org/')).rejects.toThrow('http:// or https://');
    await expect(read('nowhere.test')).rejects.toThrow('there is no host named nowhere.test');
  });

  it('takes an address as people write it', async () => {
    const { describe: about } = createWebFetch(createWebTools());
    expect(about({ url: ' example.org/a ' })).toBe('https://example.org/a');
    expect(about({ url: 'example.org:8080/a' })).toBe('https://example.org:8080/a');
    expect(about({ url: '//example.org' })).toBe('https://example.org');
    expect(about({ url: 'http://example.org' })).toBe('http://example.org');
    expect(about({ url: 'javascript:alert(1)' })).toBe('javascript:alert(1)');
  });

  it('never puts a configured secret into an address', async () => {
    let hits = 0;
    const host = await serve((_request, response) => {
      hits += 1;
      response.end('x');
    });
    const read = await web(host, { secrets: ['sk-12345678'] });
    await expect(read(`http://${host}/?key=sk-12345678`)).rejects.toThrow('contains a secret');
    expect(hits).toBe(0);
  });
});
