// Plans a confined run: the request, the program file, the environment (case X07), and the seal
// that binds an approval to the content of the files involved; copies of the compared files are run
// (case X06).

import { createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { access, open, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Environment } from '../../kernel/config/environment.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { guardedNames } from '../../lib/files/guarded-path.ts';
import { checkNotes } from '../files/file-tools.ts';
import type { ToolContext } from '../tool.ts';
import type { FoundSandbox } from './find-sandbox.ts';
import type { ConfinedRun } from './run-confined.ts';
import {
  type Argv,
  type Confinement,
  type ExecLimits,
  isWithin,
  NO_SHIELDS,
  type Sandbox,
  shieldsOf,
  type WorkspaceShields,
} from './sandbox.ts';
import { type Script, writeScript } from './scripts.ts';
import { isLoaderVariable } from './settings.ts';

export type ExecSettings = {
  readonly isEnabled: boolean;
  readonly limits: ExecLimits;
  readonly hasNetwork: boolean;
  /** Folders that programs may read besides the workspace and the system's. */
  readonly readOnly: readonly string[];
  /** Names of environment variables that are passed on. */
  readonly passedOn: readonly string[];
};

export type ExecDeps = {
  /** What is known about it now. */
  sandbox(): FoundSandbox;
  settings(): ExecSettings;
  /** Absolute real paths that no program sees. */
  readonly forbidden: readonly string[];
  readonly env: Environment;
  readonly nodePath: string;
  /** Masks the values of configured secrets. */
  redact(text: string): string;
};

/** The turn, or the check of a job, that a program runs for. */
export type RunContext = Pick<
  ToolContext,
  'signal' | 'clock' | 'seal' | 'workspace' | 'rights' | 'person'
>;

export type ExecRequest = {
  readonly work: { readonly kind: 'argv'; readonly argv: Argv } | Script;
  /** Relative to the workspace; undefined: no files. */
  readonly folder: string | undefined;
  readonly timeoutMs: number;
};

// The environment of a program: what it needs to run, and what an owner lists; never the gateway's
// own environment (case X07).

function programEnvironment(
  { env, sandbox, redact }: PlanDeps,
  passedOn: readonly string[],
  home: string,
): Environment {
  const listed = passedOn.flatMap((name): readonly (readonly [string, string])[] => {
    const value = env[name];
    const isFit = value !== undefined && !isLoaderVariable(name) && redact(value) === value;
    return isFit ? [[name, value]] : [];
  });
  return {
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    NO_COLOR: '1',
    ...Object.fromEntries(listed),
    // `node` is the program that runs the gateway; an image has its own, and its own PATH.
    ...(sandbox.image === undefined
      ? { PATH: [dirname(sandbox.node), ...PROGRAM_FOLDERS].join(':') }
      : {}),
    HOME: home,
    TMPDIR: sandbox.scratch,
  };
}

// Resolves a program's name: in a fixed list of folders, never in one that the model names.

const PROGRAM_FOLDERS: readonly string[] = [
  ...['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'],
  ...(process.platform === 'darwin' ? ['/opt/homebrew/bin'] : []),
];

export type Program = {
  /** Its path in the sandbox. */
  readonly called: string;
  /** The file outside of it; undefined for a program of the sandbox itself. */
  readonly file: string | undefined;
};

type ProgramPlaces = {
  readonly sandbox: Sandbox;
  readonly nodePath: string;
  readonly cwd: string;
  readonly workspace: string;
  /** Further folders that a command may see. */
  readonly visible: readonly string[];
};

/** @throws ToolError not_found, blocked */
async function findProgram(name: string, places: ProgramPlaces): Promise<Program> {
  const { sandbox, nodePath } = places;
  if (sandbox.image !== undefined) return inImage(name, places);
  if (name === 'node') return { called: sandbox.node, file: nodePath };
  if (!name.includes('/')) return inFolders(name);
  const called = resolve(places.cwd, name);
  const isSeen = [places.workspace, ...PROGRAM_FOLDERS, ...places.visible, '/usr'].some((folder) =>
    isWithin(called, folder),
  );
  if (!isSeen) throw notFound(`${name} lies where programs cannot be run from`);
  const file = await executable(called);
  if (file === undefined) throw notFound(`there is no program ${name}`);
  return { called, file };
}

/** Programs outside the workspace are resolved inside the image. */
async function inImage(name: string, { cwd, workspace }: ProgramPlaces): Promise<Program> {
  if (!name.includes('/')) return { called: name, file: undefined };
  const called = resolve(cwd, name);
  if (!isWithin(called, workspace)) return { called, file: undefined };
  const file = await executable(called);
  if (file === undefined) throw notFound(`there is no program ${name}`);
  return { called, file };
}

async function inFolders(name: string): Promise<Program> {
  for (const folder of PROGRAM_FOLDERS) {
    const called = join(folder, name);
    const file = await executable(called);
    if (file !== undefined) return { called, file };
  }
  throw notFound(`there is no program ${name} on this machine`);
}

const notFound = (message: string) => new ToolError('not_found', message);

async function executable(path: string): Promise<string | undefined> {
  try {
    await access(path, constants.X_OK);
    const file = await realpath(path);
    return (await stat(file)).isFile() ? file : undefined;
  } catch {
    return undefined;
  }
}

// Binds a command to the files it depends on: by path, inode and content. An approval applies to
// these; copies of the compared files are run, so that nothing can be exchanged in between (case
// X06).

type SealedFile = {
  readonly path: string;
  readonly inode: string;
  /** SHA-256, hexadecimal. */
  readonly hash: string;
};

export type Replaced = Confinement['replaced'][number];

const INTERPRETER_NAMES =
  /^(?:[abdkz]?sh|bash|dash|fish|busybox|node(?:js)?|deno|bun|pypy[\d.]*|python[\d.]*|perl[\d.]*|ruby[\d.]*|php[\d.]*|lua[\d.]*|tclsh[\d.]*|[gmn]?awk|sed|Rscript|g?make|java|env|nice|nohup|setsid|stdbuf|time|timeout|xargs)$/;
/** Larger files are data, not programs. */
const MAX_COPIED_BYTES = 20_000_000;

/** The program, and the files of the workspace that an interpreter is given. */
export async function sealOf(
  program: Program,
  args: readonly string[],
  { cwd, workspace }: Pick<ProgramPlaces, 'cwd' | 'workspace'>,
): Promise<readonly SealedFile[]> {
  const given = INTERPRETER_NAMES.test(basename(program.called)) ? args : [];
  const paths = given.map((arg) => resolve(cwd, arg)).filter((path) => isWithin(path, workspace));
  const files = program.file === undefined ? paths : [program.file, ...paths];
  const sealed = await Promise.all([...new Set(files)].map(sealedFile));
  return sealed.filter((file) => file !== undefined);
}

async function sealedFile(path: string): Promise<SealedFile | undefined> {
  const info = await stat(path, { bigint: true }).catch(() => undefined);
  if (info === undefined || !info.isFile()) return undefined;
  return { path, inode: `${info.dev}:${info.ino}`, hash: await hashOf(path) };
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/** `image`: the source of the programs, if not this machine. */
function sealText(files: readonly SealedFile[], image: string | undefined): string {
  const lines = files.map(({ path, inode, hash }) => `${path} ${inode} sha256:${hash}`);
  return [...(image === undefined ? [] : [`image ${image}`]), ...lines].join('\n');
}

/**
 * Copies the sealed files of the workspace, which anybody may change: the first is run and seen as
 * its copy, verified by the hash of the copy; others are data and only compared.
 */
async function allowedCopies(
  files: readonly SealedFile[],
  workspace: string,
  folder: string,
): Promise<{ readonly files: readonly SealedFile[]; readonly replaced: readonly Replaced[] }> {
  const first = files.findIndex(({ path }) => isWithin(path, workspace));
  const script = files[first];
  if (script === undefined) return { files, replaced: [] };
  const by = join(folder, 'allowed');
  const copied = await copyOf(script, by);
  return {
    files: files.map((file, index) => (index === first ? copied : file)),
    replaced: [{ path: script.path, by }],
  };
}

async function copyOf(file: SealedFile, to: string): Promise<SealedFile> {
  await using source = await open(file.path, constants.O_RDONLY | constants.O_NOFOLLOW).catch(
    () => {
      throw new ToolError('blocked', 'the file to be run is a link, or gone');
    },
  );
  const { size, mode } = await source.stat();
  if (size > MAX_COPIED_BYTES) return file;
  const content = await source.readFile();
  const copy = await open(to, 'wx', mode & 0o700);
  await copy.writeFile(content).finally(() => copy.close());
  return { ...file, hash: createHash('sha256').update(content).digest('hex') };
}

// Turns the model's request into a confined run: folder, program file, visible paths. Compares what
// the owner approved with what would run, as late as possible.

type PlanDeps = Omit<ExecDeps, 'sandbox'> & { readonly sandbox: Sandbox };

export type Plan = {
  readonly run: ConfinedRun;
  readonly workspace: string;
  /** Undefined if nothing of the workspace needs a shield. */
  readonly shields: WorkspaceShields | undefined;
};

const CHANGED =
  'the program or one of its files changed after an owner approved this; nothing was run';

/** @throws ToolError, GuardedFileError */
export async function planRun(
  request: ExecRequest,
  context: RunContext,
  deps: PlanDeps,
  folder: string,
): Promise<Plan> {
  const { sandbox } = deps;
  mustBeEnforceable(request, context, sandbox);
  const places = await placesOf(request, context.workspace, deps);
  if (request.folder !== undefined) checkNotes(request.folder, context);
  const { command, replaced } = await commandOf(request, places, folder, context.seal);
  const hasFiles = request.folder !== undefined;
  const { workspace, cwd } = places;
  const shields =
    hasFiles && sandbox.kind !== 'off' ? await shieldsOf(workspace, context.person) : undefined;
  const { limits, passedOn, hasNetwork, readOnly } = deps.settings();
  const home = hasFiles ? workspace : cwd;
  return {
    workspace,
    shields,
    run: {
      command,
      sandbox,
      env: programEnvironment(deps, passedOn, home),
      limits: { ...limits, timeoutMs: request.timeoutMs },
      confinement: {
        workspace: hasFiles ? workspace : undefined,
        isWritable: context.rights.write === 'free',
        cwd,
        shields: shields ?? NO_SHIELDS,
        extraReadOnly: readOnly,
        forbidden: deps.forbidden,
        scriptFolder: folder,
        replaced,
        hasNetwork,
        scratchBytes: limits.memoryBytes,
      },
    },
  };
}

/** What the command depends on besides its arguments. */
export async function sealOfRequest(
  request: ExecRequest,
  workspace: string,
  deps: PlanDeps,
): Promise<string> {
  const places = await placesOf(request, workspace, deps);
  const { work } = request;
  const [name, ...args] = work.kind === 'argv' ? work.argv : ([work.interpreter] as const);
  const files = await sealOf(await findProgram(name, places), args, places);
  return sealText(files, deps.sandbox.image);
}

/** Access that the sandbox cannot restrict is not given. */
function mustBeEnforceable(
  { folder }: ExecRequest,
  { rights, person }: RunContext,
  { kind }: Sandbox,
): void {
  const sees = folder !== undefined || kind === 'off';
  if (sees && rights.read !== 'free') {
    throw new ToolError('permission', 'this user may not see files of the workspace');
  }
  if (kind === 'off' && (rights.write !== 'free' || person.notes !== '')) {
    const why = 'without a sandbox, programs run only for an owner';
    throw new ToolError('permission', why);
  }
}

async function placesOf(
  { folder }: ExecRequest,
  workspace: string,
  { sandbox, settings, nodePath, forbidden }: PlanDeps,
): Promise<ProgramPlaces> {
  const root = await realpath(workspace);
  if (forbidden.includes(root)) {
    throw new ToolError('blocked', 'the workspace is the home of nanobot itself');
  }
  const common = { sandbox, nodePath, workspace: root, visible: settings().readOnly };
  if (folder === undefined) return { ...common, cwd: sandbox.scratch };
  const cwd = join(root, ...guardedNames(folder, [workspace, root]));
  const info = await stat(cwd).catch(() => undefined);
  if (info?.isDirectory() !== true) {
    throw new ToolError('not_found', `there is no folder ${folder}`);
  }
  return { ...common, cwd };
}

type Command = { readonly command: Argv; readonly replaced: readonly Replaced[] };

async function commandOf(
  { work }: ExecRequest,
  places: ProgramPlaces,
  folder: string,
  seal: string | undefined,
): Promise<Command> {
  const [name, ...args] = work.kind === 'argv' ? work.argv : ([work.interpreter] as const);
  const program = await findProgram(name, places);
  const sealed = seal === undefined ? [] : await sealOf(program, args, places);
  const { files, replaced } = await allowedCopies(sealed, places.workspace, folder);
  const isSame = seal === undefined || sealText(files, places.sandbox.image) === seal;
  if (!isSame) throw new ToolError('blocked', CHANGED);
  if (work.kind === 'argv') return { command: [program.called, ...args], replaced };
  const script = places.sandbox.scriptPath(folder, await writeScript(folder, work));
  return { command: [program.called, script], replaced };
}
