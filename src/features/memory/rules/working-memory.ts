// The text of `SESSION_{hash}.md`, the working memory of one conversation: front matter that tells its
// state, and what the last summary said.

import { workingTokens } from '../../../agent/rules/budget.ts';
import { workingMemoryNote } from '../../../agent/rules/context-marks.ts';
import { CHARS_PER_TOKEN } from '../../../agent/rules/tokens.ts';

export type WorkingStatus = 'active' | 'completed' | 'archived';

export type WorkingMemory = {
  readonly sessionKey: string;
  /** ISO 8601 in UTC, as is `updated`. */
  readonly created: string;
  readonly updated: string;
  readonly status: WorkingStatus;
  /** Number of the last turn that it tells of. */
  readonly lastUpdatedTurn: number;
  /** It tells what others wrote. */
  readonly isForeign: boolean;
  readonly body: string;
};

/** What the model is told of it. */
export type WorkingNote = Pick<WorkingMemory, 'body' | 'isForeign'> & {
  /** Below the workspace. */
  readonly path: string;
};

/** Within its share of the window. */
export function workingNoteText({ body, path }: WorkingNote, contextTokens: number): string {
  return workingMemoryNote(body.trim(), path, workingTokens(contextTokens) * CHARS_PER_TOKEN);
}

const FRONT_MATTER = /^---\n([\s\S]*?)\n---\n+([\s\S]*)$/;
const STATUSES: readonly string[] = ['active', 'completed', 'archived'];

export function workingMemoryText(memory: WorkingMemory): string {
  return [
    '---',
    `session_key: ${JSON.stringify(memory.sessionKey)}`,
    `created: ${memory.created}`,
    `updated: ${memory.updated}`,
    `status: ${memory.status}`,
    `last_updated_turn: ${memory.lastUpdatedTurn}`,
    ...(memory.isForeign ? ['foreign: true'] : []),
    '---',
    '',
    `${memory.body.trim()}\n`,
  ].join('\n');
}

/** Undefined where it is something else, e.g. an extract of a session file. */
export function readWorkingMemory(text: string): WorkingMemory | undefined {
  const [, head = '', body = ''] = FRONT_MATTER.exec(text) ?? [];
  const fields = new Map(
    head.split('\n').map((line): [string, string] => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    }),
  );
  const status = fields.get('status') ?? '';
  const key = keyFrom(fields.get('session_key') ?? '');
  if (!STATUSES.includes(status) || key === undefined) return undefined;
  return {
    sessionKey: key,
    created: fields.get('created') ?? '',
    updated: fields.get('updated') ?? '',
    status: status as WorkingStatus,
    lastUpdatedTurn: Number(fields.get('last_updated_turn') ?? 0),
    isForeign: fields.get('foreign') === 'true',
    body,
  };
}

function keyFrom(quoted: string): string | undefined {
  try {
    const value: unknown = JSON.parse(quoted);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}
