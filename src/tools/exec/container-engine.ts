// The programs that run containers, docker and podman, as they are asked from here: by their command,
// with their own settings in the environment and nothing else of ours.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Environment } from '../../core/environment.ts';
import type { RemoteRun } from './sandbox.ts';

export type EngineName = 'docker' | 'podman';

export type ContainerEngine = {
  readonly name: EngineName;
  /** As it is called. */
  readonly program: EngineName;
  readonly env: Environment;
  /** For every container, by this engine. */
  readonly flags: readonly string[];
};

const run = promisify(execFile);
const REMOVAL_MS = 10_000;
const REMOVAL_TRIES = 3;
/** What tells the engine's command where its engine is. */
const SETTINGS = [
  ...['HOME', 'XDG_RUNTIME_DIR', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'DBUS_SESSION_BUS_ADDRESS'],
  ...['DOCKER_HOST', 'DOCKER_CONTEXT', 'DOCKER_CONFIG', 'DOCKER_CERT_PATH', 'DOCKER_TLS_VERIFY'],
  ...['CONTAINER_HOST', 'CONTAINER_CONNECTION', 'CONTAINER_SSHKEY', 'CONTAINERS_CONF'],
];

export function engineEnvironment(env: Environment, path: string): Environment {
  const set = SETTINGS.flatMap((name): readonly (readonly [string, string])[] => {
    const value = env[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(set), PATH: path };
}

/** Its output. @throws where it fails or takes longer */
export async function ask(
  { program, env }: Pick<ContainerEngine, 'program' | 'env'>,
  args: readonly string[],
  timeoutMs: number,
): Promise<string> {
  const { stdout } = await run(program, args, { env, timeout: timeoutMs, cwd: '/' });
  return stdout.trim();
}

/** Ends a container by its name and takes it away, whether it runs yet or not. */
export function removal(engine: ContainerEngine, name: string): RemoteRun {
  const remove = () => ask(engine, ['rm', '--force', name], REMOVAL_MS).catch(() => undefined);
  let removing: Promise<unknown> | undefined;
  return {
    end() {
      removing ??= remove();
    },
    async gone() {
      await removing;
      for (let tries = 0; tries < REMOVAL_TRIES; tries += 1) {
        const left = await ask(engine, ['ps', '-aq', '--filter', `name=${name}`], REMOVAL_MS).catch(
          () => 'unknown',
        );
        if (left === '') return;
        await remove();
      }
    },
  };
}

/** What gateways of this owner left running when they were killed. @throws where it fails */
export async function removeLeft(engine: ContainerEngine, label: string): Promise<number> {
  const listed = await ask(engine, ['ps', '-aq', '--filter', `label=${label}`], REMOVAL_MS);
  const ids = listed.split('\n').filter((id) => /^[0-9a-f]+$/.test(id));
  if (ids.length > 0) await ask(engine, ['rm', '--force', ...ids], REMOVAL_MS);
  return ids.length;
}
