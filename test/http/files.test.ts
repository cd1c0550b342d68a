// Files over HTTP: uploaded with limits, named by messages, handed out to be saved and never shown.

import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { PNG } from '../contract/media.ts';
import { HTTP_TOKEN, type HttpRig, MAX_FILE_BYTES, startHttp } from './http-rig.ts';

const AUTHORIZED = { authorization: `Bearer ${HTTP_TOKEN}` };

function form(content: Uint8Array, name = 'dot.png', type = 'image/png') {
  const body = new FormData();
  body.append('file', new Blob([new Uint8Array(content)], { type }), name);
  return body;
}

const upload = (rig: HttpRig, body: FormData, headers: Record<string, string> = AUTHORIZED) =>
  fetch(`${rig.address}/api/web/files`, { method: 'POST', headers, body });

async function uploaded(rig: HttpRig, content: Uint8Array, name?: string, type?: string) {
  const response = await upload(rig, form(content, name, type));
  expect(response.status).toBe(201);
  const { file } = (await response.json()) as { file: { media: string; name: string } };
  return file;
}

const download = (rig: HttpRig, media: string, headers: Record<string, string> = AUTHORIZED) =>
  fetch(`${rig.address}/api/web/files/${media}`, { headers });

describe('files of a door', () => {
  it('are uploaded, named by a message and handed over with it', async () => {
    await using rig = await startHttp();
    const file = await uploaded(rig, PNG);
    expect(file).toMatchObject({ kind: 'image', mimeType: 'image/png', sizeBytes: PNG.length });
    const { media, name } = file;
    const sent = { clientId: 'c1', text: '', files: [{ media, name }] };
    expect((await rig.post('/api/web/chats/a/messages', sent)).status).toBe(202);
    expect(rig.host.entries[0]?.message).toMatchObject({
      text: '',
      attachments: [{ kind: 'image', name: 'dot.png', content: { kind: 'stored', media } }],
    });
    const response = await download(rig, media);
    expect(Buffer.from(await response.arrayBuffer()).equals(PNG)).toBe(true);
  });

  it('come down to be saved only, whatever they are', async () => {
    await using rig = await startHttp();
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>x()</script></svg>');
    const { media } = await uploaded(rig, svg, 'x.svg', 'image/svg+xml');
    const { headers } = await download(rig, media);
    expect(headers.get('content-type')).toBe('application/octet-stream');
    expect(headers.get('content-disposition')).toBe('attachment');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
  });

  it('are what their content is, not what the browser says', async () => {
    await using rig = await startHttp();
    const html = Buffer.from('<!doctype html><script>x()</script>');
    expect(await uploaded(rig, html, '../../x.png', 'image/png')).toMatchObject({
      kind: 'document',
      mimeType: 'text/plain',
      name: 'x.png',
    });
  });

  it('are refused without a login, before anything of them is read', async () => {
    await using rig = await startHttp();
    expect((await upload(rig, form(PNG), {})).status).toBe(401);
    const { media } = await uploaded(rig, PNG);
    expect((await download(rig, media, {})).status).toBe(401);
    const socket = connect(rig.port, '127.0.0.1');
    socket.write(
      `POST /api/web/files HTTP/1.1\r\nhost: 127.0.0.1:${rig.port}\r\n` +
        'content-type: multipart/form-data; boundary=x\r\ncontent-length: 1000000000\r\n\r\n--x\r\n',
    );
    const [answer] = (await Array.fromAsync(socket.take(1))) as Buffer[];
    expect(answer?.toString()).toMatch(/^HTTP\/1.1 401/);
    socket.destroy();
  });

  it('that are too large are refused by what is announced, and at the limit where nothing is', async () => {
    await using rig = await startHttp();
    const large = form(Buffer.alloc(MAX_FILE_BYTES + 20_000));
    expect((await upload(rig, large)).status).toBe(413);
    const over = await upload(rig, form(Buffer.alloc(MAX_FILE_BYTES + 1)));
    expect(over.status).toBe(413);
    expect(await over.json()).toMatchObject({
      error: { message: 'The file is larger than 2 MB.' },
    });
    expect((await upload(rig, form(Buffer.alloc(MAX_FILE_BYTES)))).status).toBe(201);
  });

  it.each([
    ['JSON', { 'content-type': 'application/json' }, '{}', 415],
    [
      'a form without a file',
      { 'content-type': 'multipart/form-data; boundary=x' },
      '--x--\r\n',
      400,
    ],
    [
      'half a form',
      { 'content-type': 'multipart/form-data; boundary=x' },
      '--x\r\ncontent-dis',
      400,
    ],
  ])('are not taken as %s', async (_name, headers, body, status) => {
    await using rig = await startHttp();
    const answer = await rig.ask('/api/web/files', { method: 'POST', headers, body });
    expect(answer.status).toBe(status);
  });

  it('no other route takes a form', async () => {
    await using rig = await startHttp();
    const init = { method: 'POST', headers: AUTHORIZED, body: form(PNG) };
    const response = await fetch(`${rig.address}/api/web/chats/a/messages`, init);
    expect(response.status).toBe(415);
  });

  it.each(['../../etc/passwd', '..%2f..%2fconfig.json', 'A'.repeat(64), '0'.repeat(64), '%00'])(
    'nothing is handed out by the name %s',
    async (name) => {
      await using rig = await startHttp();
      expect([400, 404]).toContain((await download(rig, name)).status);
    },
  );

  it('a message that names a file nobody uploaded is refused and not taken', async () => {
    await using rig = await startHttp();
    const files = [{ media: '0'.repeat(64), name: 'x' }];
    const answer = await rig.post('/api/web/chats/a/messages', { clientId: 'c', text: 'x', files });
    expect(answer.status).toBe(400);
    expect(rig.host.entries).toEqual([]);
  });
});
