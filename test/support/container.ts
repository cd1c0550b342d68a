// Builds the project's Dockerfile without a container engine: buildah in a chroot, on a base image
// made by debootstrap and this test's own Node, since no registry of images is needed that way.

import { type ExecFileOptions, execFile } from 'node:child_process';
import { copyFile, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '../..');
const BASE_IMAGE = 'docker.io/library/node:24-bookworm-slim';
const MIRROR = 'http://deb.debian.org/debian';
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
const execute = promisify(execFile);

/** The image trusts what this machine trusts: packages may come through a proxy of its own. */
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';

const BASE_DOCKERFILE = `FROM scratch
ADD rootfs.tar /
COPY authorities.crt /etc/ssl/certs/ca-certificates.crt
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \\
 && groupadd -g 1000 node && useradd -u 1000 -g 1000 -m node
`;

/** Why no image can be built here; undefined where one can. */
export async function whyNoContainer(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'building needs root here';
  for (const tool of ['buildah', 'debootstrap']) {
    const found = await execute(tool, ['--version']).then(
      () => true,
      () => false,
    );
    if (!found) return `${tool} is not installed`;
  }
  return undefined;
}

export interface BuiltImage extends AsyncDisposable {
  /** Folder that holds the image's files. */
  readonly root: string;
  readonly config: {
    readonly User: string;
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly Volumes: Readonly<Record<string, unknown>>;
    readonly Env: readonly string[];
    readonly Healthcheck: { readonly Test: readonly string[] };
  };
}

export async function buildImage(): Promise<BuiltImage> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-image-'));
  const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run')];
  const buildah = (args: readonly string[], options: ExecFileOptions = {}) =>
    execute('buildah', ['--storage-driver', 'vfs', ...storage, ...args], {
      ...options,
      encoding: 'utf8',
      maxBuffer: MAX_OUTPUT_BYTES,
    });
  const context = join(folder, 'base');
  await makeBaseContext(context);
  await buildah(['bud', '--isolation', 'chroot', '-t', BASE_IMAGE, context]);
  await buildah(['bud', '--isolation', 'chroot', '--format', 'docker', '-t', 'nanobot', ROOT]);
  const container = (await buildah(['from', '--pull-never', 'nanobot'])).stdout.trim();
  const root = (await buildah(['mount', container])).stdout.trim();
  const inspected = await buildah(['inspect', '--type', 'image', 'nanobot']);
  const { Docker } = JSON.parse(inspected.stdout) as { Docker: { config: BuiltImage['config'] } };
  return {
    root,
    config: Docker.config,
    async [Symbol.asyncDispose]() {
      await buildah(['umount', container]);
      await buildah(['rm', container]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function makeBaseContext(context: string): Promise<void> {
  await mkdir(context, { recursive: true });
  const rootfs = join(context, 'rootfs');
  const include = '--include=ca-certificates';
  await execute('debootstrap', ['--variant=minbase', include, 'bookworm', rootfs, MIRROR], {
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  await execute('tar', ['-C', rootfs, '-cf', `${rootfs}.tar`, '--exclude=./dev', '.']);
  await rm(rootfs, { recursive: true, force: true });
  await copyFile(AUTHORITIES, join(context, 'authorities.crt'));
  await copyFile(process.execPath, join(context, 'node'));
  const { stdout } = await execute('npm', ['root', '--global']);
  await cp(join(stdout.trim(), 'npm'), join(context, 'npm'), { recursive: true });
  await writeFile(join(context, 'Dockerfile'), BASE_DOCKERFILE);
}
