// Case X09: 40 ways to name a file that is not the workspace's, and none of them is sent.

import { link, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { NO_RIGHTS } from '../../src/kernel/access/rights.ts';
import { createWorkspace } from '../tools/workspace-fixture.ts';

const FORMS = [
  '/etc/passwd',
  '//etc/passwd',
  'file:///etc/passwd',
  'file://localhost/etc/passwd',
  'file:/etc/passwd',
  'FILE:///etc/passwd',
  'MEDIA:/etc/passwd',
  'MEDIA:///etc/passwd',
  'media:../config.json',
  '\\\\server\\share\\secret',
  '//server/share/secret',
  '\\\\?\\C:\\secret',
  'C:\\Users\\ann\\secret.txt',
  'C:/Users/ann/secret.txt',
  'smb://server/share/secret',
  'http://169.254.169.254/latest/meta-data',
  'https://example.com/a.png',
  'ftp://example.com/a',
  'data:text/plain,hello',
  '../config.json',
  'notes/../../config.json',
  './../config.json',
  '..%2fconfig.json',
  '%2e%2e/config.json',
  '~/.ssh/id_rsa',
  '~root/.bashrc',
  '$HOME/.ssh/id_rsa',
  '/proc/self/environ',
  '/proc/self/fd/0',
  '/dev/stdin',
  '/dev/zero',
  '.env',
  '.ssh/id_rsa',
  'certificate.pem',
  '.git/hooks/pre-commit',
  'linked',
  'linked-folder/config.json',
  'hello.txt\u0000.png',
  'notes',
  'hello.txt/..//../config.json',
];

describe('sending a file that is not the workspace’s', () => {
  test('there are 40 forms of it', () => expect(new Set(FORMS).size).toBe(40));

  test.each(FORMS)('is refused for %j', async (path) => {
    const { home, workspace, call, sent } = await createWorkspace();
    await symlink(join(home, 'config.json'), join(workspace, 'linked'));
    await symlink(home, join(workspace, 'linked-folder'));
    await writeFile(join(workspace, '.env'), 'KEY=1');
    await writeFile(join(workspace, 'certificate.pem'), 'KEY');
    expect(await call('send_file', { paths: [path] })).toMatchObject({ status: 'failed' });
    expect(await call('send_file', { paths: ['hello.txt', path] })).toMatchObject({
      status: 'failed',
    });
    expect(sent).toEqual([]);
  });

  test('is refused too where a link takes its place while it is looked at', async () => {
    const { home, workspace, media, call, sent } = await createWorkspace();
    const [target, spare, linked] = ['a.txt', 'b.txt', 'c.txt'].map((name) =>
      join(workspace, name),
    );
    if (target === undefined || spare === undefined || linked === undefined) throw new Error();
    await writeFile(target, 'harmless');
    let isOver = false;
    const swapping = (async () => {
      while (!isOver) {
        await rename(target, spare);
        await symlink(join(home, 'config.json'), linked);
        await rename(linked, target);
        await rm(target);
        await rename(spare, target);
      }
    })();
    for (let round = 0; round < 200; round += 1) await call('send_file', { paths: ['a.txt'] });
    isOver = true;
    await swapping;
    const contents = await Promise.all(sent.map(async (file) => media.read(file.media)));
    for (const content of contents) expect(Buffer.from(content ?? []).toString()).toBe('harmless');
  });

  test('is refused for a second name of a file outside, and for an empty file', async () => {
    const { home, workspace, call, sent } = await createWorkspace();
    await mkdir(join(home, 'other'));
    await writeFile(join(home, 'other', 'secret'), 'secret');
    await link(join(home, 'other', 'secret'), join(workspace, 'second.txt'));
    await writeFile(join(workspace, 'empty.txt'), '');
    for (const path of ['second.txt', 'empty.txt']) {
      expect(await call('send_file', { paths: [path] })).toMatchObject({ status: 'failed' });
    }
    expect(sent).toEqual([]);
  });

  test('is refused to somebody who may not read the workspace', async () => {
    const { toolbox, context, sent } = await createWorkspace();
    const bound = toolbox.bind('send_file', JSON.stringify({ paths: ['hello.txt'] }));
    if (bound.kind === 'refused') throw new Error('the tool is not there');
    const rights = { ...NO_RIGHTS, say: 'free' } as const;
    expect(await bound.run({ ...context, rights })).toMatchObject({ status: 'failed' });
    expect(sent).toEqual([]);
  });
});
