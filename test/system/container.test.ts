// The Dockerfile, really built, and the program in its image really started.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chown, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltImage, buildImage, whyNoContainer } from '../support/container.ts';

const absent = await whyNoContainer();
if (absent !== undefined) console.log(`container tests skipped: ${absent}`);

const BUILD_TIMEOUT_MS = 1_200_000;
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
    for (const path of ['dist/main.js', 'workspace', 'config', 'node_modules/fastify']) {
      expect([path, inside(path)]).toEqual([path, true]);
    }
    for (const path of [
      'src',
      'scripts',
      'test',
      '.git',
      'node_modules/vitest',
      'node_modules/typescript',
    ]) {
      expect([path, inside(path)]).toEqual([path, false]);
    }
  });

  it('starts a gateway that answers the health check and stops at SIGTERM', async () => {
    const data = join(image.root, 'data');
    await mkdir(data, { recursive: true });
    await chown(data, NODE_UID, NODE_UID);
    const compiled = await compiledFolders();
    expect(compiled).toHaveLength(1);
    const [program = '', ...fixed] = image.config.Entrypoint;
    const args = [...fixed, ...image.config.Cmd, '--port', '0'];
    const child = spawn(
      'chroot',
      [`--userspec=${NODE_UID}:${NODE_UID}`, image.root, 'env', '-C', '/app', program, ...args],
      { env: Object.fromEntries(image.config.Env.map(splitVariable)), stdio: 'pipe' },
    );
    const exited = once(child, 'exit');
    let printed = '';
    const address = await new Promise<string>((resolve, reject) => {
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
    expect(inImage(image.config.Healthcheck.Test.slice(1)).status).toBe(0);
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    expect(inImage(image.config.Healthcheck.Test.slice(1)).status).not.toBe(0);
    expect(printed).not.toMatch(/#login=|nanobot\.js/);
    for (const line of printed.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('msg');
    expect(await compiledFolders()).toEqual(compiled);
  });

  it('has what confines programs', () => {
    const run = spawnSync('chroot', [image.root, 'bwrap', '--version'], { encoding: 'utf8' });
    expect(run.stdout).toMatch(/^bubblewrap \d/);
  });

  it('has the command that all texts name', () => {
    expect(inImage(['nanobot', '--version']).stdout.trim()).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it('says its version', () => {
    const run = inImage([...image.config.Entrypoint, '--version']);
    expect(run.stdout.trim()).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it('knows that it is a container', () => {
    const { stdout } = inImage(['nanobot', 'doctor', '--json']);
    expect(stdout).not.toContain('kernel.unprivileged_userns_clone');
  });

  function inImage(command: readonly string[]) {
    const user = `--userspec=${NODE_UID}:${NODE_UID}`;
    return spawnSync('chroot', [user, image.root, 'env', '-C', '/app', ...command], {
      env: Object.fromEntries(image.config.Env.map(splitVariable)),
      encoding: 'utf8',
    });
  }

  /** One for each version and set of flags of Node that compiled. */
  const compiledFolders = () => readdir(join(image.root, 'home/node/.cache/nanobot/compiled'));
});

function splitVariable(variable: string): [string, string] {
  const at = variable.indexOf('=');
  return [variable.slice(0, at), variable.slice(at + 1)];
}
