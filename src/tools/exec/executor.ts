// CONTRACT and making of what runs programs for the tools, one at a time in a workspace: two at once
// could exchange what the other's confinement is made from. How a run is confined is planned in
// plan-run.ts.

import { ToolError } from '../../kernel/message/errors.ts';
import { createLanes, type Lanes } from '../../lib/async/lanes.ts';
import { aborted } from '../../lib/time/aborted.ts';
import type { StandingTerms, ToolContext } from '../tool.ts';
import type { ExecDeps, ExecRequest } from './exec-request.ts';
import { toldOutcome } from './outcome.ts';
import { planRun, sealOfRequest } from './plan-run.ts';
import { runConfined } from './run-confined.ts';
import type { Sandbox } from './sandbox.ts';
import { inScriptFolder } from './scripts.ts';
import { setAside } from './shields.ts';

export interface Executor {
  isAvailable(): boolean;
  unavailableBecause(): string;
  /** Nothing that others wrote can reach a program that gets no files. */
  isIsolated(): boolean;
  defaultTimeoutMs(): number;
  /** What the command stands on beside its words, as a text. @throws ToolError */
  seal(request: ExecRequest, workspace: string): Promise<string>;
  /**
   * What a standing yes is bound to: what is run, where and how long, and how it is confined. Confined
   * without the net, a program can do nothing that a conversation with words of others may not do
   * anyway.
   */
  standing(request: ExecRequest): StandingTerms;
  /** What it wrote. @throws ToolError */
  run(request: ExecRequest, context: ToolContext): Promise<string>;
}

/** Longest wait for another program of the workspace. */
export const MAX_WAIT_MS = 20_000;
const IS_BUSY =
  'another program is at work in the workspace; wait for it to end before you start the next';

export function createExecutor(deps: ExecDeps): Executor {
  const lanes = createLanes();
  async function run(request: ExecRequest, context: ToolContext): Promise<string> {
    const { signal, clock } = context;
    return inScriptFolder(async (folder) => {
      const plan = await planRun(request, context, { ...deps, sandbox: sandboxOf(deps) }, folder);
      const { workspace, shields } = plan;
      const moved = new Set<string>();
      const tidy = async () => {
        if (shields === undefined) return;
        for (const name of await setAside(workspace, shields)) moved.add(name);
      };
      // While it runs as well: other turns read the rules meanwhile, and a process may die.
      const report = await runConfined({ ...plan.run, atEachLook: tidy }, clock, signal);
      await tidy();
      const notes = [...moved].map((name) => `kept as ${name}: later turns would have followed it`);
      return toldOutcome({ report, limits: plan.run.limits, notes });
    });
  }
  const isIsolated = () => {
    const found = deps.sandbox();
    const isConfined = found.kind === 'found' && found.sandbox.kind !== 'off';
    return isConfined && !deps.settings().hasNetwork;
  };
  return {
    isAvailable: () => deps.settings().isEnabled && deps.sandbox().kind === 'found',
    unavailableBecause() {
      const found = deps.sandbox();
      return found.kind === 'missing' ? `${found.reason}. ${found.remedy}` : 'it is switched off';
    },
    isIsolated,
    defaultTimeoutMs: () => deps.settings().limits.timeoutMs,
    seal: (request, workspace) =>
      sealOfRequest(request, workspace, { ...deps, sandbox: sandboxOf(deps) }),
    standing({ work, folder, timeoutMs }) {
      const { hasNetwork, readOnly, passedOn } = deps.settings();
      const confined = [sandboxOf(deps).kind, hasNetwork, readOnly, passedOn];
      const pattern = JSON.stringify([work, folder, timeoutMs, confined]);
      return { pattern, evenTainted: isIsolated() };
    },
    run: (request, context) =>
      request.folder === undefined
        ? run(request, context)
        : whenFree(lanes, () => run(request, context), context),
  };
}

/** Runs the task when no other works in the workspace; one that has waited too long never runs. */
async function whenFree(
  lanes: Lanes,
  task: () => Promise<string>,
  { workspace, clock, signal }: ToolContext,
): Promise<string> {
  const waiting = new AbortController();
  const timer = clock.timer(MAX_WAIT_MS, () => waiting.abort());
  const turn = Promise.withResolvers<void>();
  const done = lanes.run(workspace, async () => {
    const isLate = waiting.signal.aborted || signal.aborted;
    timer[Symbol.dispose]();
    turn.resolve();
    return isLate ? '' : task();
  });
  await Promise.race([turn.promise, aborted(waiting.signal)]);
  if (waiting.signal.aborted) throw new ToolError('execution', IS_BUSY);
  return done;
}

function sandboxOf(deps: ExecDeps): Sandbox {
  const found = deps.sandbox();
  if (found.kind === 'found') return found.sandbox;
  throw new ToolError('blocked', found.reason);
}
