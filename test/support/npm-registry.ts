// A registry of npm with versions of one package: strict, so that a request for anything else is known.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { portOf } from './listening.ts';

const execute = promisify(execFile);

export interface NpmRegistry extends AsyncDisposable {
  readonly url: string;
  /** Paths that were asked for. */
  readonly asked: readonly string[];
  /** Of the package, by its name. */
  readonly name: string;
  latest: string;
  /** Publishes the package of this folder; what its bundle leaves outside has to be around. */
  publish(
    folder: string,
    version: string,
    change?: (folder: string) => Promise<void>,
  ): Promise<void>;
  /** Puts these published versions into a folder as `install.sh` does; the first one is in use. */
  installed(prefix: string, versions: readonly string[]): Promise<void>;
}

type Manifest = Readonly<Record<string, unknown>>;

/** @param folder for what it writes */
export async function startNpmRegistry(name: string, folder: string): Promise<NpmRegistry> {
  const versions = new Map<string, { readonly manifest: Manifest; readonly tarball: Buffer }>();
  const unpacked = new Map<string, string>();
  const asked: string[] = [];
  const violations: string[] = [];
  let latest = '';

  function answer(path: string): Manifest | Buffer | undefined {
    const [, of = '', wanted] = path.split('/').map(decodeURIComponent);
    if (of !== name) return undefined;
    if (wanted?.endsWith('.tgz')) return versions.get(wanted.slice(0, -4))?.tarball;
    if (wanted !== undefined) return versions.get(wanted === 'latest' ? latest : wanted)?.manifest;
    const all = [...versions].map(([version, { manifest }]) => [version, manifest] as const);
    return { name, 'dist-tags': { latest }, versions: Object.fromEntries(all) };
  }

  const server = createServer((request, response) => {
    const path = request.url ?? '';
    asked.push(path);
    const found = request.method === 'GET' ? answer(path) : undefined;
    const isOurs = new RegExp(`^/${name}(?:/[\\w.-]+)?$`).test(path);
    if (!isOurs || request.method !== 'GET') violations.push(`${request.method} ${path}`);
    response.statusCode = found === undefined ? 404 : 200;
    response.end(Buffer.isBuffer(found) ? found : JSON.stringify(found ?? { error: 'not found' }));
  });
  const port = await portOf(server);
  const url = `http://127.0.0.1:${port}/`;

  return {
    url,
    asked,
    name,
    get latest() {
      return latest;
    },
    set latest(version) {
      latest = version;
    },
    async publish(from, version, change) {
      const work = await mkdtemp(join(folder, 'packing-'));
      const root = join(work, 'package');
      for (const part of ['bin', 'dist', 'config', 'workspace', 'skills', 'package.json']) {
        await cp(join(from, part), join(root, part), { recursive: true });
      }
      const read: Manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
      const { dependencies: _outside, devDependencies: _dev, scripts: _scripts, ...rest } = read;
      const manifest = { ...rest, name, version, private: false, homepage: `${url}changes` };
      await writeFile(join(root, 'package.json'), JSON.stringify(manifest));
      await change?.(root);
      const file = join(work, 'package.tgz');
      await execute('tar', ['-I', 'gzip -1', '-cf', file, '-C', work, 'package']);
      const tarball = await readFile(file);
      const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
      const dist = { tarball: `${url}${name}/${version}.tgz`, integrity };
      versions.set(version, { manifest: { ...manifest, dist }, tarball });
      latest = version;
      await rm(file);
      unpacked.set(version, root);
    },
    async installed(prefix, wanted) {
      for (const version of wanted) {
        const modules = join(prefix, 'versions', version, 'node_modules');
        await mkdir(modules, { recursive: true });
        await execute('cp', ['-al', unpacked.get(version) ?? '', join(modules, name)]);
      }
      await symlink(join(prefix, 'versions', wanted[0] ?? ''), join(prefix, 'current'));
    },
    async [Symbol.asyncDispose]() {
      server.close();
      if (violations.length > 0) throw new Error(`not asked of a registry: ${violations}`);
    },
  };
}
