// The Dockerfile, really built, and the program in its image really started.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltImage, buildImage, whyNoContainer } from '../support/container.ts';

const absent = await whyNoContainer();
if (absent !== undefined) console.log(`container tests skipped: ${absent}`);

const BUILD_TIMEOUT_MS = 600_000;
const NODE_UID = 1000;

describe.skipIf(absent !== undefined)('the container image', () => {
  let image: BuiltImage;

  beforeAll(async () => {
    image = await buildImage();
  }, BUILD_TIMEOUT_MS);

  afterAll(async () => {
    await image?.[Symbol.asyncDispose]();
  }, BUILD_TIMEOUT_MS);

  it('runs as an unprivileged user, with its state in a volume', () => {
    expect(image.config.User).toBe('node');
    expect(Object.keys(image.config.Volumes)).toEqual(['/data']);
    expect(image.config.Env).toContain('NANOBOT_HOME=/data');
  });

  it('holds what the program needs and nothing for developers', () => {
    const inside = (path: string) => existsSync(join(image.root, 'app', path));
    for (const path of ['src/main.ts', 'workspace', 'config', 'node_modules/fastify']) {
      expect([path, inside(path)]).toEqual([path, true]);
    }
    for (const path of ['test', '.git', 'node_modules/vitest', 'node_modules/typescript']) {
      expect([path, inside(path)]).toEqual([path, false]);
    }
  });

  it('starts a gateway that answers the health check and stops at SIGTERM', async () => {
    const data = join(image.root, 'data');
    await mkdir(data, { recursive: true });
    await chown(data, NODE_UID, NODE_UID);
    const [program = '', ...fixed] = image.config.Entrypoint;
    const args = [...fixed, ...image.config.Cmd, '--port', '0'];
    const child = spawn(
      'chroot',
      [`--userspec=${NODE_UID}:${NODE_UID}`, image.root, 'env', '-C', '/app', program, ...args],
      { env: Object.fromEntries(image.config.Env.map(splitVariable)), stdio: 'pipe' },
    );
    const exited = once(child, 'exit');
    const address = await new Promise<string>((resolve, reject) => {
      let printed = '';
      const read = (part: Buffer) => {
        printed += part.toString();
        const match = /http:\/\/127\.0\.0\.1:\d+/.exec(printed);
        if (match !== null) resolve(match[0]);
      };
      child.stdout.on('data', read);
      child.stderr.on('data', read);
      void exited.then(([code]) => reject(new Error(`left with ${code}: ${printed}`)));
    });
    expect((await fetch(`${address}/healthz`)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  });

  it('has what confines programs', () => {
    const run = spawnSync('chroot', [image.root, 'bwrap', '--version'], { encoding: 'utf8' });
    expect(run.stdout).toMatch(/^bubblewrap \d/);
  });

  it('says its version', () => {
    const [program = '', ...fixed] = image.config.Entrypoint;
    const run = spawnSync(
      'chroot',
      [image.root, 'env', '-C', '/app', program, ...fixed, '--version'],
      { env: Object.fromEntries(image.config.Env.map(splitVariable)), encoding: 'utf8' },
    );
    expect(run.stdout.trim()).toMatch(/^\d+\.\d+\.\d+$/);
  });
});

function splitVariable(variable: string): [string, string] {
  const at = variable.indexOf('=');
  return [variable.slice(0, at), variable.slice(at + 1)];
}
