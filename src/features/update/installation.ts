// Where this program is installed, and how another version takes its place. Versions stand beside each
// other, each in a folder of npm; what people and services start is found through one symbolic link,
// which is replaced in one step.

import { execFile } from 'node:child_process';
import { existsSync, lstatSync, realpathSync } from 'node:fs';
import { access, constants, mkdir, readdir, rename, rm, symlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Environment } from '../../kernel/config/environment.ts';
import { PACKAGE_ROOT, programName } from '../../kernel/config/files/home.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { syncFolder } from '../../lib/files/files.ts';
import { isContained } from '../../lib/process-group.ts';
import { t } from '../../lib/texts.ts';
import { npmEnvironment, registryAddress } from './registry.ts';

const INSTALL_TIMEOUT_MS = 600_000;
const SAID_CHARS = 2000;
const NAMES = [programName(), 'nanobot'];
/** Beside npm's global packages: their link leads here after the first update. */
const NPM_FOLDER = '.nanobot-versions';

export interface Installation {
  /** Contains `versions/`. */
  readonly prefix: string;
  /** The script that starts this version; undefined if it is not installed. */
  program(version: string): string | undefined;
  /** Completely or not at all. @throws NanobotError with what npm said */
  install(version: string, env: Environment, signal: AbortSignal): Promise<void>;
  /** The next start runs this version. Can be repeated. `from`: the version of now. */
  switchTo(version: string, from: string): Promise<void>;
  /** Removes all versions but these. */
  keepOnly(versions: readonly string[]): Promise<void>;
}

export type Found =
  | { readonly kind: 'updatable'; readonly installation: Installation }
  | { readonly kind: 'other'; readonly remedy: string };

/** @param root the folder of the package */
export function findInstallation(env: Environment, root = realpathSync(PACKAGE_ROOT)): Found {
  const [, beside, name = ''] = /^(.*)\/versions\/[^/]+\/node_modules\/([^/]+)$/.exec(root) ?? [];
  if (beside !== undefined && basename(beside) === NPM_FOLDER) {
    return updatable(beside, join(dirname(beside), 'node_modules', name), true);
  }
  if (beside !== undefined) return updatable(beside, join(beside, 'current'), false);
  const [, lib] = /^(.*\/lib)\/node_modules\/[^/]+$/.exec(root) ?? [];
  if (lib !== undefined && existsSync(join(lib, '../bin/nanobot'))) {
    return updatable(join(lib, NPM_FOLDER), root, true);
  }
  if (existsSync(join(root, '.git')) || existsSync(join(root, 'src/main.ts'))) {
    return other(t`This is a checkout: git pull && npm ci, then restart the gateway.`);
  }
  if (isContained(env)) {
    return other(
      t`This runs in a container: pull or build the newer image and create the container again. ` +
        t`The home is in its volume and stays.`,
    );
  }
  return other(t`Update it with the program that installed it, then restart the gateway.`);
}

/** An installation of another place, e.g. of a version that had no \`update\`. */
export function installationIn(prefix: string): Found {
  if (existsSync(join(prefix, 'versions')) && existsSync(join(prefix, 'current'))) {
    return updatable(prefix, join(prefix, 'current'), false);
  }
  return other(t`${prefix} contains no installation: there is no versions/ and no current in it.`);
}

const other = (remedy: string): Found => ({ kind: 'other', remedy });

/** @param link leads to the version in use: to its package, or to its folder */
function updatable(prefix: string, link: string, isToPackage: boolean): Found {
  const folderOf = (version: string) => join(prefix, 'versions', version);
  const packageOf = (version: string) =>
    NAMES.map((name) => join(folderOf(version), 'node_modules', name)).find(existsSync);
  const installation: Installation = {
    prefix,
    program(version) {
      const found = packageOf(version);
      return found && join(found, 'bin/nanobot.js');
    },
    async install(version, env, signal) {
      if (packageOf(version) !== undefined) return;
      await requireWritable([dirname(prefix), dirname(link)]);
      const partial = join(prefix, 'versions', `.${version}`);
      await rm(partial, { recursive: true, force: true });
      await mkdir(partial, { recursive: true });
      const cache = join(prefix, 'versions', '.npm-cache');
      const options = { npm_config_cache: cache, ...env };
      await runNpm(partial, `${programName()}@${version}`, options, signal);
      await rm(cache, { recursive: true, force: true });
      await rename(partial, folderOf(version));
      await syncFolder(join(prefix, 'versions'));
    },
    async switchTo(version, from) {
      const target = isToPackage ? packageOf(version) : folderOf(version);
      if (target === undefined || !existsSync(target)) {
        throw new NanobotError('version_missing', t`version ${version} is not in ${prefix}`);
      }
      if (lstatSync(link, { throwIfNoEntry: false })?.isDirectory() === true) {
        const kept = join(folderOf(from), 'node_modules');
        await mkdir(kept, { recursive: true });
        await rename(link, join(kept, basename(link)));
      }
      const made = `${link}.${process.pid}.new`;
      await rm(made, { force: true });
      await symlink(target, made);
      await rename(made, link);
      await syncFolder(dirname(link));
    },
    async keepOnly(versions) {
      const names = await readdir(join(prefix, 'versions'));
      for (const name of names.filter((each) => !versions.includes(each))) {
        await rm(join(prefix, 'versions', name), { recursive: true, force: true });
      }
    },
  };
  return { kind: 'updatable', installation };
}

async function requireWritable(folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    await access(folder, constants.W_OK).catch((cause: unknown) => {
      const message = t`${folder} cannot be written. Update as the user who installed nanobot.`;
      throw new NanobotError('update_forbidden', message, { cause });
    });
  }
}

/** Scripts of packages are not run: the program needs none. */
async function runNpm(
  folder: string,
  what: string,
  env: Environment,
  signal: AbortSignal,
): Promise<void> {
  const registry = await registryAddress(env);
  const quiet = ['--no-audit', '--no-fund', '--ignore-scripts', '--no-update-notifier'];
  const args = ['install', '--prefix', folder, '--registry', registry, ...quiet, what];
  const options = {
    ...{ env: npmEnvironment(env), cwd: folder },
    ...{ signal, timeout: INSTALL_TIMEOUT_MS },
  };
  await new Promise<void>((resolve, reject) => {
    execFile('npm', args, options, (error, _stdout, stderr) => {
      if (error === null) return resolve();
      const said = stderr.trim().slice(-SAID_CHARS) || error.message;
      reject(new NanobotError('install_failed', t`npm could not install ${what}: ${said}`));
    });
  });
}
