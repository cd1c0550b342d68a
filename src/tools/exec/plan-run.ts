// From what the model asks for to a run that is confined: where, which file, what it may see. What an
// owner was shown is compared here with what would run, as late as can be.

import { realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ToolError } from '../../kernel/message/errors.ts';
import { guardedNames } from '../../lib/files/guarded-path.ts';
import { checkNotes } from '../files/workspace-access.ts';
import type { ToolContext } from '../tool.ts';
import { programEnvironment } from './environment.ts';
import type { ExecDeps, ExecRequest } from './exec-request.ts';
import { findProgram, type ProgramPlaces } from './programs.ts';
import type { ConfinedRun } from './run-confined.ts';
import { type Argv, NO_SHIELDS, type Sandbox } from './sandbox.ts';
import { writeScript } from './scripts.ts';
import { allowedCopies, type Replaced, sealOf, sealText } from './seal.ts';
import { shieldsOf, type WorkspaceShields } from './shields.ts';

export type PlanDeps = Omit<ExecDeps, 'sandbox'> & { readonly sandbox: Sandbox };

export type Plan = {
  readonly run: ConfinedRun;
  readonly workspace: string;
  /** Undefined where nothing of the workspace is there to be shielded. */
  readonly shields: WorkspaceShields | undefined;
};

const CHANGED =
  'the program or a file it was given is another one than when an owner allowed this; nothing was run';

/** @throws ToolError, GuardedFileError */
export async function planRun(
  request: ExecRequest,
  context: ToolContext,
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
      env: programEnvironment({ ...deps, passedOn, home, sandbox }),
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

/** What the command stands on beside its words. */
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

/** A right that nothing holds a program to is one it does not get. */
function mustBeEnforceable(
  { folder }: ExecRequest,
  { rights, person }: ToolContext,
  { kind }: Sandbox,
): void {
  const sees = folder !== undefined || kind === 'off';
  if (sees && rights.read !== 'free') {
    throw new ToolError('permission', 'whoever asks may not see files of the workspace');
  }
  if (kind === 'off' && (rights.write !== 'free' || person.notes !== '')) {
    const why = 'without a sandbox programs run for an owner alone';
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
