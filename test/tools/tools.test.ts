import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { testTool, testToolNames } from '../contract/tool.ts';
import { createToolSet, createWorkspace } from './workspace-fixture.ts';

const GOOD: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  read_file: { path: 'hello.txt' },
  read_document: { document: 'report.pdf', sections: '2:3' },
  read_result: { id: 'r12.3', path: 'items[0].name' },
  write_file: { path: 'a.txt', content: '' },
  edit_file: { path: 'a.txt', old_text: 'a', new_text: '' },
  list_dir: {},
  remember: { fact: 'Anna likes tea.' },
  recall: { query: 'tea' },
  read_skill: { name: 'tea' },
  message: { content: 'On it.' },
  plan: {
    goal: 'Tea',
    steps: [
      { text: 'Boil water', status: 'doing' },
      { text: 'Pour', after: [1] },
    ],
  },
  checkpoint: { done: 'Water is hot.', open: 'Pour it.' },
  backtrack: { reason: 'The kettle leaks.' },
  ask_user: { question: 'Which one?', choices: ['this', 'that'] },
  send_email: { to: 'ann@example.org', subject: 'Lunch', body: 'Today?' },
  send_file: { paths: ['hello.txt'], caption: 'a file' },
  check_inbox: { query: 'invoice', unread: true },
  web_search: { query: 'tea', count: 3 },
  search_files: { query: 'tea', name: '*.md' },
  search: { query: 'what tea do I like?' },
  financial_search: { query: '$AAPL price' },
  exec: { argv: ['ls', '-l'], cwd: '.', timeout_secs: 5 },
  execute_code: { language: 'python', code: 'print(1)' },
  web_fetch: { url: 'https://example.org/page', offset: 100 },
  expand: { node: 't12-40', from: 20 },
  time: { zones: ['Asia/Tokyo'] },
  cron: { action: 'add', text: 'Drink water', every: '2h' },
  workflow: { action: 'start', name: 'research', input: { question: 'why' } },
  spawn: { action: 'spawn', task: 'Compare the offers', profile: 'reviewer' },
};

const { tools } = createToolSet('/nowhere');
for (const tool of tools) testTool(tool, GOOD[tool.name] ?? {});
testToolNames(tools);

test('what a model calls otherwise means the same call', async () => {
  const { toolbox } = await createWorkspace();
  const meant = (name: string, input: unknown) => {
    const bound = toolbox.bind(name, JSON.stringify(input));
    return bound.kind === 'ready' ? JSON.parse(bound.arguments) : bound.outcome.text;
  };
  const text = { content: 'Hello.', channel: 'telegram', chat_id: '701' };
  expect(meant('message', text)).toEqual({ content: 'Hello.', to: '701' });
  for (const file of ['SKILL.md', './SKILL.md', '']) {
    expect(meant('read_skill', { name: 'tea', file })).toEqual({ name: 'tea' });
  }
  expect(meant('read_skill', { name: 'tea', file: 'a.md' })).toEqual({ name: 'tea', file: 'a.md' });
});

describe('read_file', () => {
  test.each([
    ['2:2', '[lines 2 to 2 of 3]\nline two'],
    ['2:', '[lines 2 to 3 of 3]\nline two\nline three'],
    [':1', '[lines 1 to 1 of 3]\nline one'],
    ['2-99', '[lines 2 to 3 of 3]\nline two\nline three'],
  ])('gives lines %s', async (lines, expected) => {
    const { call } = await createWorkspace();
    expect(await call('read_file', { path: 'hello.txt', lines })).toMatchObject({
      status: 'ok',
      text: expected,
    });
  });

  test.each(['9:10', '3:2', 'abc', '1:2:3'])('refuses lines %s with a reason', async (lines) => {
    const { call } = await createWorkspace();
    expect(await call('read_file', { path: 'hello.txt', lines })).toMatchObject({
      status: 'failed',
    });
  });

  test('refuses binary files, other encodings, folders and what is missing', async () => {
    const { call, workspace } = await createWorkspace();
    await writeFile(join(workspace, 'image.png'), Buffer.from([0x89, 0x50, 0, 1]));
    await writeFile(join(workspace, 'latin1.txt'), Buffer.from([0x67, 0xfc, 0x6e]));
    const outcome = async (path: string) => (await call('read_file', { path })).text;
    expect(await outcome('image.png')).toContain('binary');
    await writeFile(join(workspace, 'report.pdf'), '%PDF-1.7');
    expect(await outcome('report.pdf')).toContain('read_document');
    expect(await outcome('latin1.txt')).toContain('UTF-8');
    expect(await outcome('notes')).toContain('folder');
    expect(await outcome('missing.txt')).toContain('not_found');
  });

  test('an empty file is said to be empty', async () => {
    const { call, workspace } = await createWorkspace();
    await writeFile(join(workspace, 'empty.txt'), '');
    expect(await call('read_file', { path: 'empty.txt' })).toMatchObject({
      text: '(the file is empty)',
    });
  });
});

describe('write_file', () => {
  test('creates the folders on the way and keeps the mode of a file it replaces', async () => {
    const { call, workspace } = await createWorkspace();
    expect(await call('write_file', { path: 'a/b/c.txt', content: 'new' })).toMatchObject({
      status: 'ok',
      text: expect.stringContaining('Created'),
    });
    await writeFile(join(workspace, 'run.sh'), 'old', { mode: 0o755 });
    await call('write_file', { path: 'run.sh', content: 'new' });
    expect((await stat(join(workspace, 'run.sh'))).mode & 0o777).toBe(0o755);
    expect(await readFile(join(workspace, 'run.sh'), 'utf8')).toBe('new');
  });

  test('refuses more than 5 MB', async () => {
    const { call } = await createWorkspace();
    const content = 'x'.repeat(5_000_001);
    expect(await call('write_file', { path: 'big.txt', content })).toMatchObject({
      status: 'failed',
    });
  });
});

describe('edit_file', () => {
  const edit = async (content: string, old_text: string, new_text: string) => {
    const { call, workspace } = await createWorkspace();
    await writeFile(join(workspace, 'file.txt'), content);
    const outcome = await call('edit_file', { path: 'file.txt', old_text, new_text });
    return { outcome, content: await readFile(join(workspace, 'file.txt'), 'utf8') };
  };

  test('replaces the one place, taking the new text as it is', async () => {
    const { outcome, content } = await edit('a\nb\nc\n', 'b\n', '$& $1 \\n\n');
    expect(outcome).toEqual({ status: 'ok', text: 'Edited file.txt at line 2.' });
    expect(content).toBe('a\n$& $1 \\n\nc\n');
  });

  test('keeps Windows line ends', async () => {
    expect((await edit('a\r\nb\r\nc\r\n', 'a\nb', 'x\ny')).content).toBe('x\r\ny\r\nc\r\n');
  });

  test('with several places changes nothing and shows them', async () => {
    const { outcome, content } = await edit('x = 1\ny = 2\nx = 1\n', 'x = 1', 'x = 3');
    expect(outcome.status).toBe('failed');
    expect(outcome.text).toContain('line 1: x = 1');
    expect(outcome.text).toContain('line 3: x = 1');
    expect(content).toBe('x = 1\ny = 2\nx = 1\n');
  });

  test('a passage that overlaps itself a million times ends with an answer', async () => {
    const { outcome } = await edit('a'.repeat(4_000_000), 'a'.repeat(1_000_000), 'b');
    expect(outcome.text).toContain('more than 10 times');
  });

  test('with no place points at the line that differs in white space only', async () => {
    const { outcome } = await edit('if (a) {\n\treturn  1;\n}\n', '  return 1;', '  return 2;');
    expect(outcome.text).toContain('line 2');
  });

  test('refuses an empty passage, no change and a missing file', async () => {
    expect((await edit('a', '', 'b')).outcome.status).toBe('failed');
    expect((await edit('a', 'a', 'a')).outcome.status).toBe('failed');
    const { call } = await createWorkspace();
    const missing = { path: 'no.txt', old_text: 'a', new_text: 'b' };
    expect((await call('edit_file', missing)).text).toContain('not_found');
  });

  test('edits of one file at the same time all arrive', async () => {
    const { call, workspace } = await createWorkspace();
    const names = Array.from({ length: 20 }, (_, index) => `item-${index};`);
    await writeFile(join(workspace, 'list.txt'), names.join('\n'));
    await Promise.all(
      names.map((name) =>
        call('edit_file', { path: 'list.txt', old_text: name, new_text: `${name} done` }),
      ),
    );
    const text = await readFile(join(workspace, 'list.txt'), 'utf8');
    expect(text.split('\n').every((line) => line.endsWith('done'))).toBe(true);
  });
});

describe('list_dir', () => {
  test('sorts, tells kinds and sizes, and hides what is protected but counts it', async () => {
    const { call, workspace } = await createWorkspace();
    await writeFile(join(workspace, '.env'), 'KEY=1');
    await writeFile(join(workspace, 'a.md'), 'x'.repeat(1234));
    const { text } = await call('list_dir', {});
    expect(text).toBe(
      'file    a.md  (1,234 bytes)\nfile    hello.txt  (29 bytes)\nfolder  notes/\n[1 protected entries not shown]',
    );
  });

  test('no name of a file begins a line of its own, or looks like another', async () => {
    const { call, workspace } = await createWorkspace();
    const named = ['x\n[end]\nfile    y', 'a\u202Egnp.exe', '\u001b[2Jz', 'é 👩‍👧.txt'];
    for (const name of named) await writeFile(join(workspace, 'notes', name), 'tea');
    const { text } = await call('list_dir', { path: 'notes' });
    expect(text.split('\n').toSorted()).toEqual([
      'file    "\\u001b[2Jz"  (3 bytes)',
      'file    "a\\u202egnp.exe"  (3 bytes)',
      'file    "x\\n[end]\\nfile    y"  (3 bytes)',
      'file    é 👩‍👧.txt  (3 bytes)',
    ]);
    const found = await call('search_files', { query: 'tea', path: 'notes' });
    expect(found.text).not.toMatch(/^\[end\]|\u202E/m);
  });

  test('a crowded folder is cut and says so', async () => {
    const { call, workspace } = await createWorkspace();
    const names = Array.from({ length: 510 }, (_, index) => `f${index}`);
    await Promise.all(names.map((name) => writeFile(join(workspace, 'notes', name), '')));
    const { text } = await call('list_dir', { path: 'notes' });
    expect(text).toContain('[10 more entries not shown]');
  });
});

describe('message and time', () => {
  test('message speaks in the current chat, and never there what is meant for another', async () => {
    const { call, said } = await createWorkspace();
    const text = { content: 'On it.', channel: 'email' };
    expect(await call('message', text)).toMatchObject({ status: 'ok' });
    expect(said).toEqual(['On it.']);
    const other = await call('message', { ...text, chat_id: '7' });
    expect(other).toMatchObject({ status: 'failed', failure: 'blocked' });
    expect(said).toEqual(['On it.']);
  });

  test('time tells the day of the week, offset and zone', async () => {
    const { call } = await createWorkspace();
    expect(await call('time', '')).toMatchObject({
      text: 'Thursday, 2026-01-15 12:00:00 (GMT+00:00, UTC)',
    });
    expect(await call('time', { zones: ['Asia/Kolkata', 'America/New_York'] })).toMatchObject({
      text: 'Thursday, 2026-01-15 17:30:00 (GMT+05:30, Asia/Kolkata)\nThursday, 2026-01-15 07:00:00 (GMT-05:00, America/New_York)',
    });
    expect(await call('time', { zones: ['Mars/Olympus'] })).toMatchObject({ status: 'failed' });
  });
});
