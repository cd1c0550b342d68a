// CONTRACT and implementation of the executor, which runs programs for the tools, one at a time in
// a workspace, and the text of an outcome for the model.

import { stripVTControlCharacters } from 'node:util';
import { ToolError, type ToolFailureKind } from '../../kernel/message/errors.ts';
import { createLanes, type Lanes } from '../../lib/async.ts';
import type { Kept } from '../../lib/text/cut.ts';
import { aborted } from '../../lib/time/clock.ts';
import type { StandingTerms } from '../tool.ts';
import {
  type ExecDeps,
  type ExecRequest,
  planRun,
  type RunContext,
  sealOfRequest,
} from './plan-run.ts';
import { MOST_OUTPUT_BYTES, type RunEnding, type RunReport, runConfined } from './run-confined.ts';
import type { ExecLimits, Sandbox } from './sandbox.ts';
import { setAside } from './sandbox.ts';
import { inScriptFolder } from './scripts.ts';

/** From this share of non-text bytes on, an output is described instead of shown. */
const BINARY_SHARE = 0.1;
const REPLACEMENT = '\uFFFD';
const CONTROLS = /[^\P{Cc}\n\t]/gu;

/**
 * The result of a successful run. `notes`: actions on files that it created.
 * @throws ProgramError with the output of a run that failed
 */
function toldOutcome(report: RunReport, limits: ExecLimits, notes: readonly string[]): string {
  const { ending, output, errors } = report;
  const how = `${endingWords(ending, limits)}; ${secondsOf(report.tookMs)}`;
  const texts = [
    ...notes.map((note) => `[${note}]`),
    ...written(output, 'output'),
    ...(errors.head.length === 0 ? [] : ['[errors]', ...written(errors, 'errors')]),
  ];
  if (output.head.length + errors.head.length === 0) texts.push('(no output)');
  const text = texts.join('\n');
  if (ending.kind === 'exit' && ending.code === 0) return `[${how}]\n${text}`;
  throw new ProgramError(ending, how, text);
}

/** A program was run and did not end with exit status 0. */
export class ProgramError extends ToolError {
  /** Undefined where it did not end by itself. */
  readonly exitCode: number | undefined;
  constructor(ending: RunEnding, how: string, output: string) {
    const cause = ending.kind === 'not_started' ? ending.cause : undefined;
    super(failureOf(ending), how, { output, cause });
    this.exitCode = ending.kind === 'exit' ? ending.code : undefined;
  }
}

function failureOf({ kind }: RunEnding): ToolFailureKind {
  if (kind === 'timeout') return 'timeout';
  return kind === 'stopped' ? 'cancelled' : 'execution';
}

function endingWords(ending: RunEnding, limits: ExecLimits): string {
  switch (ending.kind) {
    case 'exit':
      return ending.code === 0 ? 'done, exit code 0' : `failed, exit code ${ending.code}`;
    case 'signal':
      return `ended by ${ending.signal}${SIGNAL_WORDS[ending.signal] ?? ''}`;
    case 'timeout':
      return `timed out after ${limits.timeoutMs / 1000} s; ended with all it had started`;
    case 'stopped':
      return 'stopped with all it had started';
    case 'over':
      return `ended with all it had started: more than ${EXCESS_WORDS[ending.what](limits)}`;
    case 'not_started':
      return 'it could not be started';
  }
}

const SIGNAL_WORDS: Readonly<Record<string, string>> = {
  SIGXCPU: ' (it used up its processor time)',
  SIGXFSZ: ' (a file it wrote became too large)',
  SIGSEGV: ' (it crashed)',
  SIGABRT: ' (it gave up)',
};

const megabytes = (bytes: number) => `${Math.round(bytes / 1_000_000).toLocaleString('en-US')} MB`;
const EXCESS_WORDS = {
  memory: ({ memoryBytes }: ExecLimits) => `${megabytes(memoryBytes)} of memory`,
  processes: ({ maxProcesses }: ExecLimits) => `${maxProcesses} processes`,
  disk: ({ diskBytes }: ExecLimits) => `${megabytes(diskBytes)} on the disk`,
  output: () => `${megabytes(MOST_OUTPUT_BYTES)} of output`,
} as const;

const secondsOf = (ms: number) => `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;

function written({ head, tail, omitted }: Kept, what: string): readonly string[] {
  const whole = head.length + tail.length + omitted;
  if (whole === 0) return [];
  const bytes = (count: number) => `${count.toLocaleString('en-US')} bytes`;
  if (isBinary(head)) return [`(${what}: ${bytes(whole)} that are not text, not shown)`];
  if (omitted === 0) return [readable(Buffer.concat([head, tail]))];
  const cut = `[${bytes(omitted)} left out: print less, or write to a file]`;
  return [readable(head), cut, readable(tail)];
}

function isBinary(bytes: Buffer): boolean {
  if (bytes.includes(0)) return true;
  const text = bytes.toString('utf8');
  const strange = text.split(REPLACEMENT).length - 1;
  return strange > Math.max(8, text.length * BINARY_SHARE);
}

/** Without colours and cursor movements; of an overwritten line, the last version. */
function readable(bytes: Buffer): string {
  const lines = stripVTControlCharacters(bytes.toString('utf8')).replace(/\r\n/g, '\n').split('\n');
  const last = lines.map((line) => line.replace(/\r+$/, '').split('\r').at(-1) ?? '');
  return last.join('\n').replace(CONTROLS, '').replace(/\n+$/, '');
}

// CONTRACT and factory of the executor, which runs programs for the tools, one at a time in a
// workspace: two at once could replace the files on which the other's confinement is based.
// plan-run.ts plans the confinement.

export type Executor = ReturnType<typeof createExecutor>;

/**
 * Run no other program, send nothing and write nothing but their output, whatever the arguments.
 */
const PLAIN_PROGRAMS: ReadonlySet<string> = new Set([
  ...['ls', 'cat', 'head', 'tail', 'wc', 'cut', 'tr', 'nl', 'od', 'cmp', 'comm', 'diff', 'stat'],
  ...['file', 'du', 'df', 'date', 'cal', 'grep', 'basename', 'dirname', 'realpath', 'readlink'],
  ...['md5sum', 'sha1sum', 'sha256sum', 'sha512sum', 'base64', 'seq', 'pdfinfo', 'jq'],
]);
/** Longest wait for another program of the workspace. */
export const MAX_WAIT_MS = 20_000;
const IS_BUSY =
  'another program is running in the workspace; wait until it ends before you start the next';

export function createExecutor(deps: ExecDeps) {
  const lanes = createLanes();
  async function run(request: ExecRequest, context: RunContext): Promise<string> {
    const { signal, clock } = context;
    return inScriptFolder(async (folder) => {
      const plan = await planRun(request, context, { ...deps, sandbox: sandboxOf(deps) }, folder);
      const { workspace, shields } = plan;
      const moved = new Set<string>();
      const tidy = async () => {
        if (shields === undefined) return;
        for (const name of await setAside(workspace, shields)) moved.add(name);
      };
      // Also while it runs: other turns read the rules meanwhile, and the process may die.
      const report = await runConfined({ ...plan.run, atEachLook: tidy }, clock, signal);
      await tidy();
      const notes = [...moved].map(
        (name) => `kept as ${name}, because later turns would have followed it`,
      );
      return toldOutcome(report, plan.run.limits, notes);
    });
  }
  /** No untrusted content can reach a program that gets no files. */
  const isIsolated = () => {
    const found = deps.sandbox();
    const isConfined = found.kind === 'found' && found.sandbox.kind !== 'off';
    return isConfined && !deps.settings().hasNetwork;
  };
  return {
    isAvailable: () => deps.settings().isEnabled && deps.sandbox().kind === 'found',
    unavailableBecause(): string {
      const found = deps.sandbox();
      return found.kind === 'missing' ? `${found.reason}. ${found.remedy}` : 'it is switched off';
    },
    isIsolated,
    /** A description, to follow the place where it runs. */
    confinement(): string {
      const found = deps.sandbox();
      if (found.kind !== 'found' || found.sandbox.kind === 'off') return 'without a sandbox';
      return deps.settings().hasNetwork ? 'with network' : 'no network';
    },
    /** Programs may read folders other than the workspace and those of the system. */
    seesMore: () => deps.settings().readOnly.length > 0,
    defaultTimeoutMs: () => deps.settings().limits.timeoutMs,
    /** What the command depends on besides its arguments, as text. @throws ToolError */
    seal: (request: ExecRequest, workspace: string) =>
      sealOfRequest(request, workspace, { ...deps, sandbox: sandboxOf(deps) }),
    /**
     * What an allow rule is bound to: what is run, where and how long, and how it is confined. A
     * program that only reads and prints is allowed with any arguments, in its folder and the
     * sandbox.
     */
    standing({ work, folder, timeoutMs }: ExecRequest): StandingTerms {
      const { hasNetwork, readOnly, passedOn } = deps.settings();
      const confined = [sandboxOf(deps).kind, hasNetwork, readOnly, passedOn];
      const program = work.kind === 'argv' ? work.argv[0] : '';
      if (PLAIN_PROGRAMS.has(program) && sandboxOf(deps).kind !== 'off') {
        const where = folder === undefined || folder === '.' ? 'the workspace' : `${folder}/`;
        const pattern = JSON.stringify(['program', program, folder, confined]);
        return { pattern, scope: `${program} in ${where}, with any arguments` };
      }
      return { pattern: JSON.stringify([work, folder, timeoutMs, confined]) };
    },
    /** Its output. @throws ToolError */
    run: (request: ExecRequest, context: RunContext) =>
      request.folder === undefined
        ? run(request, context)
        : whenFree(lanes, () => run(request, context), context),
  };
}

/** Runs the task when no other works in the workspace; one that has waited too long never runs. */
async function whenFree(
  lanes: Lanes,
  task: () => Promise<string>,
  { workspace, clock, signal }: RunContext,
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
