// The history of a job for people: each run with its outcome, cost and text. Outcomes are stored
// with the job; cost and text are those of its conversation, as long as that is on the disk.

import type { Config } from '../../kernel/config/config.ts';
import type { TurnId } from '../../kernel/message/ids.ts';
import { spanWords } from '../../kernel/message/message-limits.ts';
import type { TranscriptEntry } from '../../kernel/message/transcript.ts';
import { readSession } from '../../kernel/sessions/catalog.ts';
import { stemOf } from '../../kernel/sessions/file-lines.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import { createMinuteText } from '../../lib/time/zone-time.ts';
import type { JobRows, JobRun } from './job-rows.ts';
import { type Job, readReport } from './rules/job.ts';
import { jobSession } from './settings.ts';

export type RunReport = JobRun & {
  /** Of its model calls; without the money where no price is known. */
  readonly calls: number;
  readonly tokens: number;
  readonly micros: number;
  /** Its answer; empty if it had nothing to report or is no longer stored. */
  readonly text: string;
};

type RunsDeps = {
  readonly jobs: Pick<JobRows, 'history'>;
  /** The folder of the session files. */
  readonly folder: string;
  readonly config: Config;
};

const MAX_SHOWN_CHARS = 300;

/** Newest first. */
export async function readRuns(job: Job, deps: RunsDeps): Promise<readonly RunReport[]> {
  const { runs = [] } = (await deps.jobs.history.get(job.id)) ?? {};
  const turns = job.kind === 'ask' ? await turnsOf(job, runs, deps.folder) : new Map();
  const { conversationCost } = await import('../spending/rules/conversation-cost.ts');
  const { prices } = deps.config.models;
  const { currency } = deps.config.limits.budget;
  return runs.map((run) => {
    const entries = turns.get(run.run) ?? [];
    const { calls, spent } = conversationCost(entries, prices, currency);
    const text = job.kind === 'say' ? job.text : answerIn(entries);
    return { ...run, calls, ...spent, text };
  });
}

/** The entries of each run, by the message that began it. */
async function turnsOf(job: Job, runs: readonly JobRun[], folder: string) {
  const wanted = new Set<string>(runs.map(({ run }) => run));
  const begun = new Map<TurnId, string>();
  const turns = new Map<string, TranscriptEntry[]>();
  for await (const entry of readSession(folder, stemOf(jobSession(job.id)))) {
    if (!('turnId' in entry)) continue;
    if (entry.role === 'user' && entry.messageId !== undefined && wanted.has(entry.messageId)) {
      begun.set(entry.turnId, entry.messageId);
    }
    const run = begun.get(entry.turnId);
    if (run !== undefined) turns.set(run, [...(turns.get(run) ?? []), entry]);
  }
  return turns;
}

function answerIn(entries: readonly TranscriptEntry[]): string {
  const answers = entries.flatMap((entry) => (entry.role === 'turn_end' ? entry.answers : []));
  const report = readReport(answers.join('\n\n'), false);
  return report.kind === 'text' ? report.text : '';
}

/** One line for each run, and the quiet checks since the last. */
export async function runLines(
  job: Job,
  runs: readonly RunReport[],
  timeZone: string,
  currency: string,
): Promise<readonly string[]> {
  const { amountText } = await import('../spending/rules/budget-limits.ts');
  const minuteText = createMinuteText();
  const { gate, when } = job;
  const isQuiet = when !== undefined && gate !== undefined && gate.quiet > 0;
  const quiet = isQuiet
    ? [t`${minuteText(gate.at, timeZone)} not due: ${gate.quiet} checks found nothing`]
    : [];
  const lines = runs.map((run) => {
    const took = run.begunAt === undefined ? '' : t` in ${spanWords(run.at - run.begunAt)}`;
    const cost = run.calls === 0 ? '' : `, ${amountText(run, currency)}`;
    const said = run.how === 'done' && run.text !== '' ? run.text : (run.detail ?? '');
    const text = said === '' ? '' : `: ${headOf(said.replace(/\s+/g, ' '), MAX_SHOWN_CHARS)}`;
    return `${minuteText(run.at, timeZone)} ${run.how}${took}${cost}${text}`;
  });
  return [...quiet, ...lines];
}
