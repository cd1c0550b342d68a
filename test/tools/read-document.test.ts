// Reading on in documents and looking again at images: of the conversation, of the workspace, and
// of nothing else.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import type { AttachedMedia } from '../../src/kernel/message/attachment.ts';
import { pdf } from '../media/documents.ts';
import { createWorkspace } from './workspace-fixture.ts';

const LIMITS = { maxBytes: 10_000_000 };
const picture = () =>
  sharp({ create: { width: 9, height: 9, channels: 3, background: '#00f' } })
    .png()
    .toBuffer();
const pages = ['The first page.', 'The second page.', 'The third page.'];

/** A conversation in which a report and a photo came. */
async function conversation() {
  const space = await createWorkspace();
  const { media, toolbox, context } = space;
  const stored = async (content: Uint8Array, name: string): Promise<AttachedMedia> => {
    const { id, mimeType } = await media.put(content, LIMITS);
    return {
      media: id,
      kind: mimeType.startsWith('image/') ? 'image' : 'document',
      mimeType,
      name,
    };
  };
  const report = await stored(pdf(pages), 'Report.pdf');
  const photo = await stored(await picture(), 'photo.png');
  const elsewhere = await stored(pdf(['A secret of others.']), 'secret.pdf');
  const shown: AttachedMedia[] = [];
  async function read(input: Readonly<Record<string, unknown>>) {
    const bound = toolbox.bind('read_document', JSON.stringify(input));
    if (bound.kind === 'refused') return bound.outcome;
    return bound.run({
      ...context,
      attached: [report, photo],
      show: (image) => void shown.push(image),
    });
  }
  return { ...space, read, shown, report, photo, elsewhere };
}

describe('read_document', () => {
  test('reads what came by its name or its id, as untrusted content', async () => {
    const { read, report } = await conversation();
    for (const document of ['report.pdf', report.media.slice(0, 8), report.media]) {
      const { text, status, isForeign } = await read({ document });
      expect(status).toBe('ok');
      expect(isForeign).toBe(true);
      expect(text).toMatch(/^\[untrusted [0-9a-f]+: result of read_document\]/);
      for (const page of pages) expect(text).toContain(`> ${page}`);
      expect(text).toContain('3 pages');
    }
  });

  test('reads the pages that are asked for', async () => {
    const { read } = await conversation();
    const { text } = await read({ document: 'Report.pdf', sections: '2:2' });
    expect(text).toContain('> [page 2]\n> The second page.');
    expect(text).not.toContain('The first page.');
    expect((await read({ document: 'Report.pdf', sections: '9:9' })).text).toContain('only 3');
    expect((await read({ document: 'Report.pdf', sections: 'x' })).status).toBe('failed');
  });

  test('reads a long document on to its end, losing nothing', async () => {
    const { read, workspace } = await conversation();
    const lines = Array.from({ length: 3000 }, (_, n) => `line ${n} of the long text`);
    await writeFile(join(workspace, 'long.csv'), lines.join('\n'));
    let from: number | undefined = 0;
    const read_: string[] = [];
    for (let round = 0; from !== undefined && round < 30; round += 1) {
      const { text }: { readonly text: string } = await read({ document: 'long.csv', from });
      expect(text).not.toContain('truncated');
      read_.push(...text.split('\n').flatMap((line) => /^> (line .*)$/.exec(line)?.[1] ?? []));
      const next: string | undefined = /read on with from: (\d+)/.exec(text)?.[1];
      from = next === undefined ? undefined : Number(next);
    }
    expect(from).toBeUndefined();
    expect(read_).toEqual(lines);
  });

  test('shows an image of the conversation or the workspace with its result', async () => {
    const { read, shown, photo, workspace, reader } = await conversation();
    expect((await read({ document: 'photo.png' })).text).toContain('shown with this result');
    await writeFile(join(workspace, 'plan.png'), await picture());
    await read({ document: 'plan.png' });
    expect(shown.map(({ name }) => name)).toEqual([photo.name, 'plan.png']);
    const seen = await reader.image(shown[1]?.media ?? photo.media);
    expect(seen.kind).toBe('image');
  });

  test('opens nothing of another conversation, whatever id is known', async () => {
    const { read, elsewhere } = await conversation();
    const { media } = elsewhere;
    for (const document of [
      'secret.pdf',
      media,
      media.slice(0, 8),
      `derived/${media}.text`,
      '../',
    ]) {
      const { status, text } = await read({ document });
      expect(status, document).toBe('failed');
      expect(text).not.toContain('A secret of others.');
    }
    const { text } = await read({ document: 'nothing.pdf' });
    expect(text).toContain('file "Report.pdf", id');
  });

  test('says why a document cannot be read', async () => {
    const { read, workspace } = await conversation();
    await writeFile(join(workspace, 'scan.pdf'), pdf(['']));
    expect((await read({ document: 'scan.pdf' })).text).toContain('only scanned pages');
    expect((await read({ document: 'notes' })).text).toContain('folder');
  });
});
