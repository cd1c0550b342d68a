// The versions of the program in the npm registry. A request names the package and the wanted version,
// nothing else.

import { execFile } from 'node:child_process';
import { delimiter, dirname } from 'node:path';
import { z } from 'zod';
import type { Environment } from '../../kernel/config/environment.ts';
import { type Home, programName, programVersion } from '../../kernel/config/files/home.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { textIfThere, writeAtomic } from '../../lib/files/files.ts';
import { parseJson } from '../../lib/json/json.ts';
import { fetchThrough } from '../../lib/net/proxies.ts';
import { t } from '../../lib/texts.ts';

const ASK_TIMEOUT_MS = 20_000;
const NPM_TIMEOUT_MS = 10_000;

const manifestShape = z.object({
  version: z.string().regex(/^\d+\.\d+\.\d+(?:-[\w.-]+)?$/),
  homepage: z
    .url({ protocol: /^https?$/ })
    .optional()
    .catch(undefined),
});

/** A version in the registry, with the page that describes it. */
type Published = Readonly<z.infer<typeof manifestShape>>;

const knownShape = manifestShape.extend({ at: z.number() });
type Known = Readonly<z.infer<typeof knownShape>>;

type RegistryOptions = {
  readonly env: Environment;
  /** The setting. */
  readonly proxy: string;
  readonly signal: AbortSignal;
};

/** As set, else of npm's configuration, which has a default. @throws NanobotError */
export async function registryAddress(env: Environment): Promise<string> {
  const found = env['NANOBOT_REGISTRY'] || env['npm_config_registry'] || (await npmRegistry(env));
  if (URL.canParse(found)) return found.endsWith('/') ? found : `${found}/`;
  throw registryError(t`No npm registry is known. Install npm, or set NANOBOT_REGISTRY.`);
}

const npmRegistry = (env: Environment): Promise<string> =>
  new Promise((resolve) => {
    const options = { env: npmEnvironment(env), timeout: NPM_TIMEOUT_MS };
    execFile('npm', ['config', 'get', 'registry'], options, (error, stdout) =>
      resolve(error === null ? stdout.trim() : ''),
    );
  });

/** The npm beside this Node is found first, which the installer may have brought for nanobot alone. */
export const npmEnvironment = (env: Environment): Environment => ({
  ...env,
  PATH: `${dirname(process.execPath)}${delimiter}${env['PATH'] ?? ''}`,
});

/** @param wanted a version, or a tag such as `latest`. @throws NanobotError */
export async function publishedVersion(
  wanted: string,
  { env, proxy, signal }: RegistryOptions,
): Promise<Published> {
  const registry = await registryAddress(env);
  const url = new URL(
    `${encodeURIComponent(programName())}/${encodeURIComponent(wanted)}`,
    registry,
  );
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(ASK_TIMEOUT_MS)]);
  const answer = await fetchThrough(proxy)(url, { signal: deadline }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw registryError(
      t`${url.host} does not answer. Check the connection, or set NANOBOT_REGISTRY.`,
      error,
    );
  });
  if (answer.status === 404) {
    throw registryError(t`${url.host} has no version ${wanted} of ${programName()}.`);
  }
  const manifest = answer.ok ? manifestShape.safeParse(parseJson(await answer.text())) : undefined;
  if (manifest?.success === true) return manifest.data;
  throw registryError(t`${url.host} answered ${answer.status}, and no version. Try again later.`);
}

const registryError = (message: string, cause?: unknown) =>
  new NanobotError('registry_failed', message, { cause });

/** Asks for the newest version, and keeps the answer for those who do not ask. */
export async function askForNewest(
  home: Home,
  now: number,
  options: RegistryOptions,
): Promise<Published> {
  const newest = await publishedVersion('latest', options);
  await writeAtomic(home.newest, JSON.stringify({ ...newest, at: now } satisfies Known));
  return newest;
}

/** As last asked for. */
export async function knownNewest(home: Home): Promise<Known | undefined> {
  const written = await textIfThere(home.newest);
  return written === undefined ? undefined : knownShape.safeParse(parseJson(written)).data;
}

/** Undefined where nothing newer is known. */
export async function knownUpdate(home: Home): Promise<Known | undefined> {
  const known = await knownNewest(home);
  return known !== undefined && isNewer(known.version, programVersion()) ? known : undefined;
}

const VERSIONS = new Intl.Collator('en', { numeric: true });

/** By the order of semantic versions; both are valid. */
export function isNewer(version: string, than: string): boolean {
  const [core = '', ...tag] = version.split('-');
  const [otherCore = '', ...otherTag] = than.split('-');
  const order = VERSIONS.compare(core, otherCore);
  if (order !== 0) return order > 0;
  if (tag.length === 0 || otherTag.length === 0) return tag.length < otherTag.length;
  return VERSIONS.compare(tag.join('-'), otherTag.join('-')) > 0;
}
