// Builds the project's Dockerfile without a container engine. The full campaign takes buildah in a
// chroot, on a base image made by debootstrap and this test's own Node: no registry of images is needed
// that way. The short one carries the steps out on this machine.

import { type ChildProcess, type ExecFileOptions, execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chown, copyFile, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { isFullCampaign } from './campaign.ts';
import { DockerfileRun, type ImageConfig } from './dockerfile.ts';

const ROOT = join(import.meta.dirname, '../..');
const SYSTEM_IMAGE = 'docker.io/library/debian:bookworm-slim';
const NODE_IMAGE = 'docker.io/library/node:24-bookworm-slim';
const MIRROR = 'http://deb.debian.org/debian';
const NODE_UID = 1000;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
const execute = promisify(execFile);

/** The image trusts what this machine trusts: packages may come through a proxy of its own. */
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';

const SYSTEM_DOCKERFILE = `FROM scratch
ADD rootfs.tar /
COPY authorities.crt /etc/ssl/certs/ca-certificates.crt
ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
`;
const NODE_DOCKERFILE = `FROM ${SYSTEM_IMAGE}
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
`;
/** What the image of Debian that is called slim leaves out too. */
const NOT_SLIM = [
  ...['usr/share/doc', 'usr/share/info', 'usr/share/locale', 'usr/share/man'],
  ...['var/cache/apt', 'var/lib/apt/lists', 'var/log'],
];

/** Why no image can be built here; undefined where one can. */
export async function whyNoContainer(): Promise<string | undefined> {
  if (isFullCampaign() && process.getuid?.() !== 0) return 'building needs root here';
  for (const tool of isFullCampaign() ? ['buildah', 'debootstrap'] : ['bwrap']) {
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
  readonly config: ImageConfig;
  /** What runs a command in the image, as its user and with its variables. */
  command(command: readonly string[]): readonly string[];
  /** Tells a command that was started that way to stop. */
  stop(child: ChildProcess): void;
}

export async function buildImage(): Promise<BuiltImage> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-image-'));
  return isFullCampaign() ? buildWithBuildah(folder) : buildOnThisMachine(folder);
}

function buildOnThisMachine(folder: string): BuiltImage {
  const built = new DockerfileRun(ROOT, folder);
  return {
    root: built.root,
    config: built.config,
    command: (command) => built.command(command),
    stop({ pid = 0 }) {
      // Of bubblewrap, which passes no signal on.
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
      process.kill(Number(children.split(' ')[0]), 'SIGTERM');
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

async function buildWithBuildah(folder: string): Promise<BuiltImage> {
  const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run')];
  const buildah = (args: readonly string[], options: ExecFileOptions = {}) =>
    execute('buildah', ['--storage-driver', 'vfs', ...storage, ...args], {
      ...options,
      encoding: 'utf8',
      maxBuffer: MAX_OUTPUT_BYTES,
    });
  const bud = (...args: readonly string[]) => buildah(['bud', '--isolation', 'chroot', ...args]);
  const [system, node] = [join(folder, 'system'), join(folder, 'node')];
  await makeSystem(system);
  await bud('-t', SYSTEM_IMAGE, system);
  await addNode(node);
  await bud('--pull-never', '-t', NODE_IMAGE, node);
  await bud('--pull-never', '--format', 'docker', '-t', 'nanobot', ROOT);
  const container = (await buildah(['from', '--pull-never', 'nanobot'])).stdout.trim();
  const root = (await buildah(['mount', container])).stdout.trim();
  const inspected = await buildah(['inspect', '--type', 'image', 'nanobot']);
  const { Docker } = JSON.parse(inspected.stdout) as { Docker: { config: ImageConfig } };
  const { config } = Docker;
  const data = join(root, 'data');
  await mkdir(data, { recursive: true });
  await chown(data, NODE_UID, NODE_UID);
  return {
    root,
    config,
    command: (command) => [
      ...['chroot', `--userspec=${NODE_UID}:${NODE_UID}`, root],
      ...['env', '-i', '-C', '/app', ...config.Env, ...command],
    ],
    stop: (child) => void child.kill('SIGTERM'),
    async [Symbol.asyncDispose]() {
      await buildah(['umount', container]);
      await buildah(['rm', container]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function makeSystem(context: string): Promise<void> {
  await mkdir(context, { recursive: true });
  const rootfs = join(context, 'rootfs');
  await execute('debootstrap', ['--variant=minbase', 'bookworm', rootfs, MIRROR], {
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  const excluded = ['dev', ...NOT_SLIM].map((path) => `--exclude=./${path}/*`);
  await execute('tar', ['-C', rootfs, '-cf', `${rootfs}.tar`, ...excluded, '.']);
  await rm(rootfs, { recursive: true, force: true });
  await copyFile(AUTHORITIES, join(context, 'authorities.crt'));
  await writeFile(join(context, 'Dockerfile'), SYSTEM_DOCKERFILE);
}

async function addNode(context: string): Promise<void> {
  await mkdir(context, { recursive: true });
  await copyFile(process.execPath, join(context, 'node'));
  const { stdout } = await execute('sh', ['-c', 'realpath "$(command -v npm)"']);
  await cp(join(dirname(stdout), '..'), join(context, 'npm'), { recursive: true });
  await writeFile(join(context, 'Dockerfile'), NODE_DOCKERFILE);
}
