// A container of docker or podman, created for one run and removed after it: a read-only root from
// an image, the workspace, no network, no privileges. find-sandbox.ts detects the engine and tests
// it.

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import type { Environment } from '../../kernel/config/environment.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import {
  type Confinement,
  type ExecLimits,
  isWithin,
  type Launch,
  type RemoteRun,
  type Sandbox,
  type ToLaunch,
} from './sandbox.ts';

type ContainerChoice = {
  readonly engine: ContainerEngine;
  /** Its id, which identifies one content permanently. */
  readonly image: string;
  readonly imageName: string;
  readonly cpus: number;
  /** `uid:gid` inside. */
  readonly user: string;
  /** The owner of the runs, by which remains of a killed gateway are found. */
  readonly owner: string;
};

/** The label of every container, with its owner. */
export const OWNER_LABEL = 'nanobot.owner';
const SCRIPTS = '/nanobot/script';
const SCRATCH = '/tmp';
const MAX_OPEN_FILES = 1024;
const PROXIES = ['http_proxy', 'https_proxy', 'ftp_proxy', 'no_proxy', 'all_proxy'].flatMap(
  (name) => [name, name.toUpperCase()],
);

export function createContainer(choice: ContainerChoice): Sandbox {
  const { engine, imageName } = choice;
  return {
    kind: 'container',
    about: `a container of ${engine.name} from ${imageName}`,
    endsWithParent: false,
    node: 'node',
    scratch: SCRATCH,
    image: choice.image,
    scriptPath: (_folder, name) => `${SCRIPTS}/${name}`,
    launch(run): Launch {
      const name = `nanobot-${randomUUID()}`;
      const [program, ...args] = run.command;
      return {
        argv: [
          engine.program,
          ...['run', '--rm', '--pull', 'never', '--name', name],
          ...['--label', `${OWNER_LABEL}=${choice.owner}`, '--log-driver', 'none'],
          ...confined(choice, run.confinement),
          ...amounts(choice, run),
          ...mounts(run.confinement),
          ...environment(run.env),
          ...['--workdir', run.confinement.cwd, '--entrypoint', program, choice.image, ...args],
        ],
        cwd: '/',
        // Values that an owner passes on appear in no process list: the engine takes them by name.
        env: { ...run.env, ...engine.env },
        arguments: undefined,
        remote: removal(engine, name),
      };
    },
  };
}

function confined({ engine, user }: ContainerChoice, { hasNetwork }: Confinement) {
  return [
    ...(hasNetwork ? [] : ['--network', 'none']),
    ...['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'],
    ...['--user', user, '--hostname', 'sandbox', '--ipc', 'private', '--no-healthcheck'],
    ...engine.flags,
  ];
}

function amounts({ cpus }: ContainerChoice, { limits, confinement }: ToLaunch) {
  const memory = `${Math.ceil(limits.memoryBytes)}b`;
  return [
    // The same limit including swap: no swap.
    ...['--memory', memory, '--memory-swap', memory, '--cpus', `${cpus}`],
    ...['--pids-limit', `${limits.maxProcesses}`],
    ...ulimits(limits).flatMap((limit) => ['--ulimit', limit]),
    ...['--tmpfs', `${SCRATCH}:rw,exec,nosuid,nodev,size=${confinement.scratchBytes},mode=1777`],
  ];
}

const ulimits = (limits: ExecLimits) => [
  'core=0',
  `cpu=${Math.ceil(limits.cpuSeconds)}`,
  `fsize=${Math.ceil(limits.fileBytes)}`,
  `nofile=${MAX_OPEN_FILES}`,
];

/** Removes proxy credentials that the engine would add by itself. */
function environment(env: ToLaunch['env']): readonly string[] {
  const names = Object.keys(env);
  return [
    ...names.flatMap((name) => ['--env', isShown(name) ? `${name}=${env[name]}` : name]),
    ...PROXIES.filter((name) => !names.includes(name)).flatMap((name) => ['--env', `${name}=`]),
  ];
}

/** Variables of ours whose names mean something else to the engine. */
const isShown = (name: string) => ['HOME', 'TMPDIR', 'LANG', 'TERM', 'NO_COLOR'].includes(name);

type Mount = { readonly source: string; readonly target: string; readonly isReadOnly: boolean };

/** Of two mounts at one place the later one counts. */
function mounts(confinement: Confinement): readonly string[] {
  const { workspace, scriptFolder, extraReadOnly, forbidden } = confinement;
  const readOnly = extraReadOnly.filter((path) => existsSync(path));
  const roots = [...readOnly, ...(workspace === undefined ? [] : [workspace])];
  const masked = forbidden.filter((path) => roots.some((root) => isWithin(path, root)));
  const masks = masksIn(scriptFolder);
  const all = [
    ...readOnly.map(seen),
    ...(workspace === undefined ? [] : files(workspace, confinement, masks)),
    ...masked.map((path) => ({ ...seen(path), source: masks.folder([]) })),
    ...(scriptFolder === undefined ? [] : [{ ...seen(scriptFolder), target: SCRIPTS }]),
  ];
  return [...new Map(all.map((each) => [each.target, each])).values()].flatMap(mountFlag);
}

const seen = (path: string): Mount => ({ source: path, target: path, isReadOnly: true });

function files(
  workspace: string,
  { shields, replaced, isWritable }: Confinement,
  masks: ReturnType<typeof masksIn>,
): readonly Mount[] {
  const { readOnly, hidden, shown, pinned } = shields;
  return [
    { ...seen(workspace), isReadOnly: !isWritable },
    ...(isWritable ? pinned : []).map((path) => ({ ...seen(path), isReadOnly: false })),
    ...readOnly.map(seen),
    ...hidden.map(({ path, kind }) => {
      const below = shown.filter((each) => each !== path && isWithin(each, path));
      const inside = below.map((each) => relative(path, each));
      return { ...seen(path), source: kind === 'file' ? masks.file() : masks.folder(inside) };
    }),
    ...shown.map(seen),
    ...replaced.map(({ path, by }) => ({ ...seen(path), source: by })),
  ];
}

/** What replaces hidden paths: empty and read-only. */
function masksIn(scriptFolder: string | undefined) {
  let count = 0;
  const next = () => {
    if (scriptFolder === undefined) throw new ToolError('blocked', 'nothing to hide a file behind');
    count += 1;
    return join(scriptFolder, `nothing-${count}`);
  };
  return {
    file(): string {
      const path = next();
      writeFileSync(path, '', { mode: 0o400, flag: 'wx' });
      return path;
    },
    /** Empty except for these, over which others are mounted. */
    folder(holding: readonly string[]): string {
      const path = next();
      mkdirSync(path, { mode: 0o700 });
      for (const each of holding) mkdirSync(join(path, each), { recursive: true, mode: 0o700 });
      return path;
    },
  };
}

function mountFlag({ source, target, isReadOnly }: Mount): readonly string[] {
  // The engines parse this as a comma-separated list.
  if (/[,"\r\n]/.test(source + target)) {
    const why = 'a path that has to be mounted or hidden holds a comma, a quote or a line break';
    throw new ToolError('blocked', `${why}, which a container cannot be told; rename it first`);
  }
  const parts = ['type=bind', `source=${source}`, `target=${target}`];
  return ['--mount', [...parts, ...(isReadOnly ? ['readonly'] : [])].join(',')];
}

// The programs that run containers, docker and podman, called by their command with their own
// settings in the environment and no other variables.

export type EngineName = 'docker' | 'podman';

export type ContainerEngine = {
  readonly name: EngineName;
  /** The command. */
  readonly program: EngineName;
  readonly env: Environment;
  /** For every container of this engine. */
  readonly flags: readonly string[];
};

const run = promisify(execFile);
const REMOVAL_MS = 10_000;
const REMOVAL_TRIES = 3;
/** Variables that tell the engine's command where its engine is. */
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

/** Its output. @throws if it fails or takes longer */
export async function ask(
  { program, env }: Pick<ContainerEngine, 'program' | 'env'>,
  args: readonly string[],
  timeoutMs: number,
): Promise<string> {
  const { stdout } = await run(program, args, { env, timeout: timeoutMs, cwd: '/' });
  return stdout.trim();
}

/** Stops and removes a container by its name, whether or not it runs yet. */
function removal(engine: ContainerEngine, name: string): RemoteRun {
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

/** Removes containers that killed gateways of this owner left running. @throws if it fails */
export async function removeLeft(engine: ContainerEngine, label: string): Promise<number> {
  const listed = await ask(engine, ['ps', '-aq', '--filter', `label=${label}`], REMOVAL_MS);
  const ids = listed.split('\n').filter((id) => /^[0-9a-f]+$/.test(id));
  if (ids.length > 0) await ask(engine, ['rm', '--force', ...ids], REMOVAL_MS);
  return ids.length;
}
