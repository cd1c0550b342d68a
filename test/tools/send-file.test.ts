import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fileNameOf, withoutFiles } from '../../src/kernel/delivery/undelivered.ts';
import { outbound } from '../contract/bus-bench.ts';
import { PNG } from '../contract/media.ts';
import { createWorkspace } from './workspace-fixture.ts';

describe('send_file', () => {
  test('sends a picture as a picture, with its caption, and says what is on its way', async () => {
    const { workspace, call, sent, media } = await createWorkspace();
    await writeFile(join(workspace, 'dot.png'), PNG);
    const outcome = await call('send_file', { paths: ['dot.png'], caption: ' a dot ' });
    expect(outcome).toEqual({ status: 'ok', text: 'On its way to this chat: dot.png (70 bytes).' });
    expect(sent).toMatchObject([
      { kind: 'image', name: 'dot.png', mimeType: 'image/png', caption: 'a dot', sizeBytes: 70 },
    ]);
    expect(Buffer.from((await media.read(sent[0]?.media ?? ('' as never))) ?? [])).toEqual(PNG);
  });

  test('sends several together and one under another name or unchanged', async () => {
    const { workspace, call, sent } = await createWorkspace();
    await writeFile(join(workspace, 'notes', 'dot.png'), PNG);
    await call('send_file', { paths: ['hello.txt', 'notes/dot.png'] });
    await call('send_file', { paths: ['notes/dot.png'], name: 'x/../y.png', as: 'document' });
    expect(sent.map(({ kind, name }) => [kind, name])).toEqual([
      ['document', 'hello.txt'],
      ['image', 'dot.png'],
      ['document', 'y.png'],
    ]);
  });

  test('does not send what is larger than the door takes', async () => {
    const { workspace, call, sent } = await createWorkspace();
    await writeFile(join(workspace, 'large.bin'), Buffer.alloc(1_000_001));
    expect(await call('send_file', { paths: ['large.bin'] })).toMatchObject({
      status: 'failed',
      text: expect.stringContaining('the limit is 1,000,000'),
    });
    expect(sent).toEqual([]);
  });

  test('sends none of several that do not fit into one message, and says so', async () => {
    const { workspace, call, sent } = await createWorkspace();
    for (const name of ['a.bin', 'b.bin'])
      await writeFile(join(workspace, name), Buffer.alloc(800_000));
    expect(await call('send_file', { paths: ['a.bin', 'b.bin'] })).toMatchObject({
      status: 'failed',
      text: expect.stringContaining('one message carries 1,500,000'),
    });
    expect(sent).toEqual([]);
    expect((await call('send_file', { paths: ['a.bin'] })).status).toBe('ok');
  });
});

test.each([
  ['a/b/c.txt', 'c.txt'],
  ['..\\..\\evil.exe', 'evil.exe'],
  ['..', 'file'],
  ['', 'file'],
  ['a\u202Egpj.exe', 'a_gpj.exe'],
  ['a\r\nb"c<d>.txt', 'a__b_c_d_.txt'],
  [`${'x'.repeat(300)}.pdf`, `${'x'.repeat(116)}.pdf`],
])('a file is called by its name without folders and tricks: %j', (text, name) => {
  expect(fileNameOf(text)).toBe(name);
});

test('a door without files says which ones stayed behind', () => {
  const file = { kind: 'document', name: 'a.pdf', mimeType: 'application/pdf' } as const;
  const media = 'a'.repeat(64) as never;
  const attachments = [{ ...file, media, sizeBytes: 1200, caption: 'the *bill*' }];
  const shown = withoutFiles({ ...outbound('a', 'x', 'Here.'), attachments });
  expect(shown.markdown).toBe(
    'Here.\n\n(The file "a.pdf" (1.2 kB) could not be sent here.)\n\nthe *bill*',
  );
  expect(shown.attachments).toBeUndefined();
});
