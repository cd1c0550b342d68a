// The Dockerfile, built, and the program in its image, started.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isFullCampaign } from '../support/campaign.ts';
import { type BuiltImage, buildImage, whyNoContainer } from '../support/container.ts';

const absent = await whyNoContainer();
if (absent !== undefined) console.log(`container tests skipped: ${absent}`);

const BUILD_TIMEOUT_MS = 1_200_000;
const MAX_IMAGE_MB = 250;

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
    for (const path of ['dist/main.js', 'workspace', 'config', 'node_modules/sharp']) {
      expect([path, inside(path)]).toEqual([path, true]);
    }
    for (const path of [
      'src',
      'scripts',
      'test',
      '.git',
      'node_modules/esbuild',
      'node_modules/fastify',
    ]) {
      expect([path, inside(path)]).toEqual([path, false]);
    }
  });

  it('starts a gateway that answers the health check and a message, and stops at SIGTERM', async () => {
    const compiled = await compiledFolders();
    expect(compiled).toHaveLength(1);
    const { Entrypoint, Cmd } = image.config;
    const [program = '', ...args] = image.command([...Entrypoint, ...Cmd, '--port', '0']);
    const child = spawn(program, args, { stdio: 'pipe' });
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
    const asked = inImage([...Entrypoint, 'agent', '-m', 'what time is it']);
    expect(asked.stdout).toMatch(/\d{4}-\d{2}-\d{2}/);
    image.stop(child);
    expect(await exited).toEqual([0, null]);
    expect(inImage(image.config.Healthcheck.Test.slice(1)).status).not.toBe(0);
    expect(printed).not.toMatch(/#login=|nanobot\.js/);
    for (const line of printed.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('msg');
    expect(await compiledFolders()).toEqual(compiled);
  });

  // The packages of Debian are in a real image alone.
  if (isFullCampaign()) {
    it('has what confines programs', () => {
      expect(inImage(['bwrap', '--version']).stdout).toMatch(/^bubblewrap \d/);
    });

    it(`takes less than ${MAX_IMAGE_MB} MB, Node included`, () => {
      const options = ['-sx', '--apparent-size', '--block-size=MB'];
      const used = spawnSync('du', [...options, image.root], { encoding: 'utf8' });
      console.log(`the image takes ${used.stdout.split('\t')[0]}`);
      expect(Number.parseInt(used.stdout, 10)).toBeLessThan(MAX_IMAGE_MB);
    });
  }

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
    const [program = '', ...args] = image.command(command);
    return spawnSync(program, args, { encoding: 'utf8' });
  }

  /** One for each version and set of flags of Node that compiled. */
  const compiledFolders = () => readdir(join(image.root, 'home/node/.cache/nanobot/compiled'));
});
