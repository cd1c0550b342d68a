// What the model is told of a run: how it ended, in words, and what it wrote, as text that can be read.

import { stripVTControlCharacters } from 'node:util';
import { ToolError, type ToolFailureKind } from '../../kernel/message/errors.ts';
import type { Kept } from '../../lib/text/head-and-tail.ts';
import type { ExecLimits } from './limits.ts';
import type { RunEnding, RunReport } from './run-confined.ts';

/** Share of bytes that are no text from which on an output is told instead of shown. */
const BINARY_SHARE = 0.1;
const REPLACEMENT = '\uFFFD';
const CONTROLS = /[^\P{Cc}\n\t]/gu;

export type ToldRun = {
  readonly report: RunReport;
  readonly limits: ExecLimits;
  /** What was done about files it made, in our words. */
  readonly notes: readonly string[];
};

/** The result of a run that succeeded. @throws ToolError with the output, of one that did not */
export function toldOutcome({ report, limits, notes }: ToldRun): string {
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
  const cause = ending.kind === 'not_started' ? ending.cause : undefined;
  throw new ToolError(failureOf(ending), how, { output: text, cause });
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
      return `not done within ${limits.timeoutMs / 1000} s: ended with all it had started`;
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
  output: () => 'anybody could read of output',
} as const;

const secondsOf = (ms: number) => `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;

function written({ head, tail, omitted }: Kept, what: string): readonly string[] {
  const whole = head.length + tail.length + omitted;
  if (whole === 0) return [];
  const bytes = (count: number) => `${count.toLocaleString('en-US')} bytes`;
  if (isBinary(head)) return [`(${what}: ${bytes(whole)} that are no text, not shown)`];
  if (omitted === 0) return [readable(Buffer.concat([head, tail]))];
  const cut = `[${bytes(omitted)} left out here: let it write less, or into a file]`;
  return [readable(head), cut, readable(tail)];
}

function isBinary(bytes: Buffer): boolean {
  if (bytes.includes(0)) return true;
  const text = bytes.toString('utf8');
  const strange = text.split(REPLACEMENT).length - 1;
  return strange > Math.max(8, text.length * BINARY_SHARE);
}

/** Without colours and what moves the cursor; of a line that was written over, what stood last. */
function readable(bytes: Buffer): string {
  const lines = stripVTControlCharacters(bytes.toString('utf8')).replace(/\r\n/g, '\n').split('\n');
  const last = lines.map((line) => line.replace(/\r+$/, '').split('\r').at(-1) ?? '');
  return last.join('\n').replace(CONTROLS, '').replace(/\n+$/, '');
}
