// The gate of a job: a check without a model before each run, which decides whether the run starts.
// Its notation, and what is stored of its checks. Pure; gates.ts carries a check out.

import type { Reach, ToolAccess } from '../../../kernel/access/rights.ts';
import { t } from '../../../lib/texts.ts';
import { JobError } from './schedule.ts';

export type Gate =
  /** Open where the program ends with exit status 0, closed with 1; any other is a failure. */
  | { readonly kind: 'program'; readonly argv: readonly [string, ...string[]] }
  /** Open where the visible text of the page changed. */
  | { readonly kind: 'url'; readonly url: string }
  /** Open where the file of the workspace was created, changed or deleted. */
  | { readonly kind: 'file'; readonly path: string }
  /** Open where a mail arrived that contains all words; without words, any mail. */
  | { readonly kind: 'mail'; readonly words: readonly string[] };

/** What the checks of a gate leave behind. */
export type GateState = {
  /**
   * What the next check compares with: a hash, the newest mails, or the hashes of the program's
   * files as they were approved.
   */
  readonly mark?: string | undefined;
  /** The mark after the current run; a run that failed leaves `mark`, so that it comes again. */
  readonly next?: string | undefined;
  /** When it was checked last, epoch milliseconds. */
  readonly at: number;
  /** Checks that found it closed, since the last run. */
  readonly quiet: number;
  /** Failed checks in a row. */
  readonly failures: number;
  /** Why the last check failed. */
  readonly reason?: string;
  /** The failure was reported. */
  readonly isTold?: true;
};

/** The result of a check. */
export type Look =
  /** `found`: text for the run; untrusted content if `isForeign`. */
  | {
      readonly kind: 'open';
      readonly mark?: string;
      readonly found?: Finding;
    }
  | { readonly kind: 'closed'; readonly mark?: string }
  /** `isFinal`: the next check would fail in the same way. */
  | { readonly kind: 'failed'; readonly reason: string; readonly isFinal?: boolean };

export type Finding = {
  /** In our own text. */
  readonly what: string;
  readonly text: string;
  readonly isForeign: boolean;
};

const MAX_GATE_CHARS = 2000;
const USAGE = t`Write program <command>, url <address>, file <path in the workspace>, or mail <words>.`;

/** `url https://example.org`, `program ./check.sh "two words"`. @throws JobError */
export function readGate(typed: string): Gate {
  const text = typed.trim();
  const [, kind, rest = ''] = /^(\w+)(?:\s+([\s\S]*))?$/.exec(text) ?? [];
  if (text.length > MAX_GATE_CHARS) {
    throw new JobError(t`A check may have at most ${MAX_GATE_CHARS} characters.`);
  }
  switch (kind?.toLowerCase()) {
    case 'program': {
      const [program, ...args] = wordsOf(rest);
      if (program === undefined) break;
      return { kind: 'program', argv: [program, ...args] };
    }
    case 'url':
      if (!/^https?:\/\/[^\s/]+\S*$/i.test(rest)) break;
      return { kind: 'url', url: rest };
    case 'file':
      if (rest === '') break;
      return { kind: 'file', path: rest };
    case 'mail':
      return { kind: 'mail', words: rest.split(/\s+/).filter((word) => word !== '') };
  }
  throw new JobError(t`"${text}" is not a check that a job can wait for. ${USAGE}`);
}

const WORD = /"([^"]*)"|'([^']*)'|([^\s"']+)/g;

const wordsOf = (text: string): readonly string[] =>
  [...text.matchAll(WORD)].map(([, double, single, plain]) => double ?? single ?? plain ?? '');

/** As it is typed. */
export function gateText(gate: Gate): string {
  switch (gate.kind) {
    case 'program':
      return `program ${gate.argv.map((word) => (/^[^\s"']+$/.test(word) ? word : JSON.stringify(word))).join(' ')}`;
    case 'url':
      return `url ${gate.url}`;
    case 'file':
      return `file ${gate.path}`;
    case 'mail':
      return ['mail', ...gate.words].join(' ');
  }
}

/** The right that its checks need, as the tool with the same effect does. */
export function gateNeeds(
  gate: Gate,
  programReach: Reach,
): { readonly access: ToolAccess; readonly reach: Reach } {
  if (gate.kind === 'program') return { access: 'execute', reach: programReach };
  return { access: gate.kind === 'url' ? 'web' : 'read', reach: 'outside' };
}

// How the state changes with each check.

const NEW_STATE = { quiet: 0, failures: 0 };

/** Failed checks in a row after which it is reported; the first check is reported at once. */
const TOLD_FAILURES = 3;

export function closedState(before: GateState | undefined, mark: string | undefined, at: number) {
  const isFirst = before === undefined;
  const quiet = isFirst ? 0 : before.quiet + 1;
  return { ...NEW_STATE, quiet, at, mark: mark ?? before?.mark } satisfies GateState;
}

/** `isOver`: the run has ended already. */
export function openState(
  before: GateState | undefined,
  mark: string | undefined,
  at: number,
  isOver: boolean,
): GateState {
  const next = mark ?? before?.mark;
  return { ...NEW_STATE, at, ...(isOver ? { mark: next } : { mark: before?.mark, next }) };
}

export function failedState(
  before: GateState | undefined,
  { reason, isFinal = false }: Extract<Look, { readonly kind: 'failed' }>,
  at: number,
): GateState {
  const failures = (before?.failures ?? 0) + 1;
  const isSure = isFinal || before === undefined || failures >= TOLD_FAILURES;
  const isTold = isSure || before.isTold === true;
  return {
    ...(before ?? NEW_STATE),
    ...{ at, failures, reason },
    ...(isTold ? { isTold } : {}),
  };
}

/** After a run that did not fail, the next check compares with what this one found. */
export function settledState({ next, ...state }: GateState): GateState {
  return next === undefined ? state : { ...state, mark: next };
}
