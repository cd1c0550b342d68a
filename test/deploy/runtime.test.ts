import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { SETTLED_FLAGS } from '../../src/cli/gateway-command.ts';
import { RUNTIME_ENV, RUNTIME_FLAGS } from '../../src/cli/service/service.ts';

const read = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');

it('npm start, the service and the image run Node with the same flags', () => {
  const { scripts } = JSON.parse(read('package.json'));
  expect(scripts.start).toBe(`node ${RUNTIME_FLAGS.join(' ')} bin/nanobot.js gateway`);
  const dockerfile = read('Dockerfile');
  const [, entrypoint = ''] = /^ENTRYPOINT (.*)$/m.exec(dockerfile) ?? [];
  expect(JSON.parse(entrypoint)).toEqual(['node', ...RUNTIME_FLAGS, '/usr/local/bin/nanobot']);
  expect(dockerfile).toContain(`node ${RUNTIME_FLAGS.join(' ')} /usr/local/bin/nanobot gateway`);
});

it('the service and the image set the same variables of malloc', () => {
  const set = [...read('Dockerfile').matchAll(/\b(MALLOC_\w+)=(\d+)/g)];
  expect(Object.fromEntries(set.map(([, name, value]) => [name, value]))).toEqual(RUNTIME_ENV);
});

const compiledFor = (...flags: readonly string[]) =>
  execFileSync(process.execPath, [...flags, '-p', 'v8.cachedDataVersionTag()'], {
    encoding: 'utf8',
  });

it('with the flags of a start V8 accepts what Node was built with', () => {
  expect(compiledFor(...RUNTIME_FLAGS)).toBe(compiledFor());
});

it('V8 knows the flags that are set later, which a start would compile everything for', () => {
  expect(compiledFor(...SETTLED_FLAGS)).not.toBe(compiledFor());
});
