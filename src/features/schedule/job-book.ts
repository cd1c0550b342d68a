// The jobs on disk, and in memory as they are on disk. What another process (a command) wrote is seen
// at the next question.

import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { createLanes } from '../../lib/async/lanes.ts';
import { flag, jsonRow, kind, number, object, rowShape, text } from '../../lib/json/json-row.ts';
import { GoneRows } from '../subagents/gone-rows.ts';
import type { Job } from './rules/job.ts';

export const JOBS_SCOPE = 'jobs';
const PREFIX = 'job:';

export type JobBookDeps = {
  readonly state: KeyValueStore;
  /**
   * Another number once another process has written. Left out: what is on disk is read each time, as it
   * must be beside another book of the same process.
   */
  readonly revision?: () => number;
};

const JOB = rowShape<Job>({
  ...{ id: text, name: text, kind: text, text, schedule: kind, target: object, maker: object },
  ...{ enabled: flag, deleteAfterRun: flag, createdAt: number, failures: number },
});
const GONE = rowShape<Pick<Job, 'id' | 'maker'>>({ id: text, maker: object });

export class JobBook {
  /** Those that were removed and have a conversation on the disk. */
  readonly gone: GoneRows<Pick<Job, 'id' | 'maker'>>;
  readonly #deps: JobBookDeps;
  readonly #lanes = createLanes();
  #known: { readonly revision: number; readonly jobs: Promise<Map<string, Job>> } | undefined;

  constructor(deps: JobBookDeps) {
    this.#deps = deps;
    this.gone = new GoneRows(deps.state, GONE);
  }

  /** Oldest first. */
  async all(): Promise<readonly Job[]> {
    const jobs = [...(await this.#jobs()).values()];
    return jobs.sort((one, other) => one.createdAt - other.createdAt);
  }

  async get(id: string): Promise<Job | undefined> {
    return (await this.#jobs()).get(id);
  }

  add(job: Job): Promise<void> {
    return this.#lanes.run(PREFIX, () => this.#put(job));
  }

  /** One step at a time, from what is on disk now; undefined where the job is gone. */
  change(id: string, step: (job: Job) => Job): Promise<Job | undefined> {
    return this.#lanes.run(PREFIX, async () => {
      const row = await this.#deps.state.get(PREFIX + id);
      const job = row === undefined ? undefined : jsonRow(row, JOB);
      if (job === undefined) return undefined;
      const next = step(job);
      if (next !== job) await this.#put(next);
      return next;
    });
  }

  remove(id: string): Promise<void> {
    return this.#lanes.run(PREFIX, async () => {
      const row = await this.#deps.state.get(PREFIX + id);
      const maker = row === undefined ? undefined : jsonRow(row, JOB)?.maker;
      if (maker === undefined) await this.#deps.state.delete(PREFIX + id);
      else await this.gone.replace(PREFIX + id, { id, maker });
      (await this.#known?.jobs)?.delete(id);
    });
  }

  async #put(job: Job): Promise<void> {
    await this.#deps.state.set(PREFIX + job.id, JSON.stringify(job));
    (await this.#known?.jobs)?.set(job.id, job);
  }

  #jobs(): Promise<Map<string, Job>> {
    if (this.#deps.revision === undefined) return this.#read();
    const revision = this.#deps.revision();
    if (this.#known?.revision === revision) return this.#known.jobs;
    const known = { revision, jobs: this.#read() };
    this.#known = known;
    known.jobs.catch(() => {
      if (this.#known === known) this.#known = undefined;
    });
    return known.jobs;
  }

  async #read(): Promise<Map<string, Job>> {
    const rows = await this.#deps.state.list(PREFIX);
    const jobs = rows.flatMap(({ value }) => jsonRow(value, JOB) ?? []);
    return new Map(jobs.map((job) => [job.id, job]));
  }
}
