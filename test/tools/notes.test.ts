// Case A08: a person's turn asks for the owner's and for another person's notes, by every tool that
// reads, and finds its own alone.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { createWorkspace } from './workspace-fixture.ts';

const SECRET = 'the-secret-of-another';
const PLACES = [
  'memory/MEMORY.md',
  'memory/2026-01-01.md',
  'USER.md',
  'people/pother/memory/MEMORY.md',
  'groups/gsome/memory/MEMORY.md',
];

async function annas() {
  const rig = await createWorkspace();
  for (const place of PLACES) {
    const path = join(rig.workspace, place);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, `- ${SECRET}\n`);
  }
  const person = { notes: 'people/panna/' };
  const call = async (name: string, input: unknown) => {
    const bound = rig.toolbox.bind(name, JSON.stringify(input));
    const context = { ...rig.context, person };
    return bound.kind === 'refused' ? bound.outcome : bound.run(context);
  };
  return { ...rig, call };
}

/** Ways of spelling a place. */
const spellings = (place: string, workspace: string) => [
  place,
  `./${place}`,
  place.toUpperCase(),
  `notes/../${place}`,
  `people/panna/../../${place}`,
  join(workspace, place),
  place.replace('/', '//'),
  place.replace('m', 'm\u200b'),
];

it('reads nothing of it by any spelling of any path, and lists nothing', async () => {
  const { call, workspace } = await annas();
  const paths = PLACES.flatMap((place) => spellings(place, workspace));
  expect(paths).toHaveLength(40);
  for (const path of paths) {
    const answers = [
      await call('read_file', { path }),
      await call('read_document', { document: path }),
      await call('send_file', { paths: [path] }),
      await call('edit_file', { path, old_text: SECRET, new_text: 'x' }),
    ];
    expect(JSON.stringify(answers)).not.toContain(`- ${SECRET}`);
    expect(answers.map(({ status }) => status)).toEqual(Array(4).fill('failed'));
  }
  for (const path of ['memory', 'people', 'people/pother', 'groups', './memory', 'MEMORY/']) {
    expect((await call('list_dir', { path })).status).toBe('failed');
  }
});

it('remembers and recalls in its own notes alone', async () => {
  const { call, workspace } = await annas();
  expect((await call('recall', { query: SECRET })).text).toBe('Nothing is noted about this.');
  await call('remember', { fact: 'Anna likes tea.' });
  expect((await call('recall', { query: 'tea' })).text).toContain('people/panna/memory/MEMORY.md');
  const own = join(workspace, 'people/panna/memory/MEMORY.md');
  expect(await readFile(own, 'utf8')).toContain('Anna likes tea.');
  const owners = await readFile(join(workspace, 'memory/MEMORY.md'), 'utf8');
  expect(owners).toBe(`- ${SECRET}\n`);
  expect((await call('read_file', { path: 'people/panna/memory/MEMORY.md' })).status).toBe('ok');
});

it('writes into no notes of others', async () => {
  const { call, workspace } = await annas();
  for (const place of PLACES) {
    const written = await call('write_file', { path: place, content: 'mine' });
    expect(written.status).toBe('failed');
    expect(await readFile(join(workspace, place), 'utf8')).toContain(SECRET);
  }
});
