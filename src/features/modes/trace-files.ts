// Writes traces/ in the home: one file a day with the decisions of routers and the findings of
// specialists, one JSON object per line. Redacts secrets and removes old files; on a full disk
// lines are lost, never answers.

import { appendFile, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { TurnContext } from '../../agent/turn-context.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { SessionKey, TurnId } from '../../kernel/message/ids.ts';
import { isLineOf, purgeLines } from '../../kernel/observe/purge-records.ts';
import type { Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { shortened } from '../../lib/text/cut.ts';
import type { RouteDecision } from './rules/route-decision.ts';

/** Contains bounded texts of conversations. */
export type TraceRecord = {
  readonly at: number;
  readonly session: SessionKey;
  readonly turnId: TurnId;
  readonly model: string;
  readonly durationMs: number;
  readonly asked: string;
  /** The outcome in a few words, or the specialist's text. */
  readonly outcome: string;
} & (
  | {
      readonly kind: 'route';
      /** How the decision was parsed; `none`: no usable decision. */
      readonly by: 'call' | 'json' | 'lenient' | 'rules' | 'none';
      readonly plan?: RouteDecision;
    }
  | { readonly kind: 'specialist'; readonly domain: string }
);

const MAX_ASKED_CHARS = 500;
const MAX_OUTCOME_CHARS = 4000;

/** The fields that every record of a turn has. `started`: monotonic milliseconds. */
export const tracedCall = (
  { clock, input }: Pick<TurnContext, 'clock' | 'input'>,
  model: string,
  started: number,
  { asked, outcome }: Pick<TraceRecord, 'asked' | 'outcome'>,
) => ({
  at: clock.now(),
  session: input.session,
  turnId: input.turnId,
  model,
  durationMs: Math.round(clock.monotonic() - started),
  asked: shortened(asked, MAX_ASKED_CHARS),
  outcome: shortened(outcome, MAX_OUTCOME_CHARS),
});

type TraceFilesDeps = Pick<Kernel, 'live' | 'clock' | 'log'> & {
  /** The folder. */
  readonly traces: string;
};

/** Size limit of a day's file; further lines are dropped. */
const MAX_BYTES = 10_000_000;
const DAY_MS = 86_400_000;
const FILE_MODE = 0o600;
const FILE = /^\d{4}-\d{2}-\d{2}\.jsonl$/;

export type TraceFiles = ReturnType<typeof createTraceFiles>;

export function createTraceFiles({ traces, live, clock, log }: TraceFilesDeps) {
  let last: Promise<unknown> = Promise.resolve();
  const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

  async function append(record: TraceRecord): Promise<void> {
    const path = join(traces, `${dayOf(record.at)}.jsonl`);
    const bytes = await stat(path).then(
      ({ size }) => size,
      () => undefined,
    );
    if (bytes === undefined) {
      await mkdir(traces, { recursive: true, mode: 0o700 });
      await removeOld();
    }
    const line = `${live.redact(JSON.stringify({ ...record, at: new Date(record.at).toISOString() }))}\n`;
    if ((bytes ?? 0) + line.length > MAX_BYTES) return;
    await appendFile(path, line, { mode: FILE_MODE });
  }

  const files = async () =>
    (await readdir(traces).catch((): string[] => [])).filter((name) => FILE.test(name));

  async function removeOld(): Promise<void> {
    const oldest = dayOf(clock.now() - live.config.logging.keepDays * DAY_MS);
    const names = (await files()).filter((name) => name < oldest);
    await Promise.all(names.map((name) => rm(join(traces, name), { force: true })));
  }

  return {
    /** Removes lines of these chats; returns the number of lines that matched. */
    forget(chats: readonly string[], holds: Holds): Promise<number> {
      const isMeant = (line: string) => holds(line) && isLineOf(line, chats);
      const forgotten = last.then(async () => {
        let lines = 0;
        for (const name of await files()) lines += await purgeLines(join(traces, name), isMeant);
        return lines;
      });
      last = forgotten.catch(() => undefined);
      return forgotten;
    },
    /** Never fails; lines are written in order. */
    write(record: TraceRecord): void {
      last = last
        .then(() => append(record))
        .catch((error: unknown) => log.warn('trace not written', { error }));
    },
  };
}
