// Schedules: jobs with their next and last runs; create, run, pause and remove them. What each does is
// what `/cron` and `nanobot cron` do.

import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { JobList, JobRuns, ShownJob } from '../../../features/schedule/rules/views.ts';
import { FIRST_ASKED } from './first-asked.ts';
import { HeartbeatCards } from './heartbeat.tsx';
import { KINDS, NewJob, type Said } from './new-job.tsx';
import {
  Moment,
  moneyText,
  Page,
  problemText,
  Shown,
  useLive,
  useRead,
  type ViewProps,
} from './parts.tsx';
import { ScheduleTabs } from './runs.tsx';

const SCHEDULES = '/api/v1/schedules';

type Change = 'run' | 'stop' | 'enable' | 'disable' | 'remove';

const ENDINGS: Readonly<Record<NonNullable<ShownJob['last']>['how'], string>> = {
  done: t`done`,
  failed: t`failed`,
  stopped: t`stopped`,
  skipped: t`skipped`,
};
const CHANGED: Readonly<Record<Change, (name: string) => string>> = {
  run: (name) => t`${name} starts now; its schedule stays as it is.`,
  stop: (name) => t`The run of ${name} was stopped.`,
  enable: (name) => t`${name} runs again by its schedule.`,
  disable: (name) => t`${name} is paused.`,
  remove: (name) => t`${name} was removed.`,
};

export function Schedules({ parts }: ViewProps) {
  const live = useLive<JobList>(parts, FIRST_ASKED.schedules.live);
  const isAdding = useSignal(false);
  const said = useSignal<Said>(undefined);
  const opener = useRef<HTMLButtonElement>(null);

  const close = () => {
    isAdding.value = false;
    opener.current?.focus();
  };

  async function change({ id, name }: ShownJob, what: Change) {
    said.value = undefined;
    try {
      await parts.api.postJson(`${SCHEDULES}/${encodeURIComponent(id)}/${what}`, {});
      said.value = { text: CHANGED[what](name), isProblem: false };
    } catch (error) {
      said.value = { text: problemText(error), isProblem: true };
    }
    // The button may be gone with its job.
    if (what === 'remove') opener.current?.focus();
  }

  const action = (
    <button
      ref={opener}
      type="button"
      class="button primary"
      aria-expanded={isAdding.value}
      onClick={() => {
        isAdding.value = !isAdding.value;
      }}
    >
      {t`New schedule`}
    </button>
  );
  return (
    <Page title={t`Schedules`} actions={action}>
      <ScheduleTabs shown="#/schedules" />
      {isAdding.value && <NewJob parts={parts} said={said} close={close} />}
      <Report said={said.value} />
      <Shown
        live={live}
        show={({ jobs, isOn }) => (
          <>
            {!isOn && (
              <p class="view-problem">
                {t`Jobs do not run by themselves: cron.enabled is false in the configuration.`}
              </p>
            )}
            {jobs.length === 0 && !isAdding.value && <Nothing />}
            <ul class="cards">
              {jobs.map((job) => (
                <JobCard key={job.id} job={job} parts={parts} change={change} />
              ))}
            </ul>
          </>
        )}
      />
      <HeartbeatCards parts={parts} />
    </Page>
  );
}

function Report({ said }: { readonly said: Said }) {
  return (
    <>
      <p class="said-so" role="status" hidden={said === undefined || said.isProblem}>
        {said?.isProblem === false && said.text}
      </p>
      <p class="view-problem" role="alert" hidden={said?.isProblem !== true}>
        {said?.isProblem === true && said.text}
      </p>
    </>
  );
}

function Nothing() {
  return (
    <div class="empty">
      <h2>{t`Nothing is scheduled`}</h2>
      <p>{t`A reminder is sent as you write it. A task is done by the agent, which reports to your latest chat.`}</p>
      <p>{t`Choose “New schedule”, or ask in a chat: “remind me at 8 to drink water”.`}</p>
    </div>
  );
}

type CardProps = ViewProps & {
  readonly job: ShownJob;
  readonly change: (job: ShownJob, what: Change) => Promise<void>;
};

function JobCard({ job, parts, change }: CardProps) {
  const { id, name, kind, text, schedule, check, isEnabled, isRunning, nextAt, last } = job;
  const state = isRunning ? t`running` : isEnabled ? undefined : t`paused`;
  return (
    <li class="card" data-job={id}>
      <h2>
        <bdi>{name}</bdi>
        {state !== undefined && <span class="badge">{state}</span>}
        {job.failures > 0 && <span class="badge bad">{t`failed ${job.failures} times`}</span>}
      </h2>
      <p class="soft">
        {KINDS[kind]}, <bdi>{schedule}</bdi>
        {check !== undefined && (
          <>
            , {t`when`} <code>{check}</code>
          </>
        )}
      </p>
      <dl class="facts">
        <dt>{t`Next run`}</dt>
        <dd>{nextAt === undefined ? t`none` : <Moment at={nextAt} />}</dd>
        <dt>{t`Last run`}</dt>
        <dd>{last === undefined ? t`not yet` : <LastRun last={last} />}</dd>
        <dt>{t`Reports to`}</dt>
        <dd>{job.to === undefined ? t`the latest chat` : <bdi>{job.to}</bdi>}</dd>
        {job.maker !== undefined && (
          <>
            <dt>{t`Made by`}</dt>
            <dd>
              <bdi>{job.maker}</bdi>
            </dd>
          </>
        )}
      </dl>
      <details>
        <summary>{t`Text`}</summary>
        <pre dir="auto">{text}</pre>
      </details>
      <History job={job} parts={parts} />
      <Actions job={job} change={(what) => change(job, what)} />
    </li>
  );
}

function LastRun({ last }: { readonly last: NonNullable<ShownJob['last']> }) {
  const { how, at, detail } = last;
  return (
    <>
      <span class={how === 'failed' ? 'problem' : ''}>{ENDINGS[how]}</span>, <Moment at={at} />
      {detail !== undefined && <span class="detail">{detail}</span>}
    </>
  );
}

function Actions(props: {
  readonly job: ShownJob;
  readonly change: (what: Change) => Promise<void>;
}) {
  const { job, change } = props;
  const isBusy = useSignal(false);
  const isSure = useSignal(false);
  const remove = useRef<HTMLButtonElement>(null);
  const keep = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    if (isSure.value) keep.current?.focus();
  }, [isSure.value]);

  async function act(what: Change) {
    isBusy.value = true;
    await change(what);
    isBusy.value = false;
  }

  const button = (what: Change, label: string) => (
    <button type="button" class="button" disabled={isBusy.value} onClick={() => act(what)}>
      {label}
    </button>
  );
  return (
    <fieldset class="actions" aria-label={t`About ${job.name}`}>
      {isSure.value ? (
        <>
          <span>{t`Remove it with its history?`}</span>
          {button('remove', t`Remove`)}
          <button
            ref={keep}
            type="button"
            class="button"
            onClick={() => {
              isSure.value = false;
              setTimeout(() => remove.current?.focus());
            }}
          >
            {t`Keep`}
          </button>
        </>
      ) : (
        <>
          {job.isRunning ? button('stop', t`Stop`) : button('run', t`Run now`)}
          {job.isEnabled ? button('disable', t`Pause`) : button('enable', t`Resume`)}
          <button
            ref={remove}
            type="button"
            class="button"
            onClick={() => {
              isSure.value = true;
            }}
          >
            {t`Remove…`}
          </button>
        </>
      )}
    </fieldset>
  );
}

/** Read when it is opened, and again after each run. */
function History({ job, parts }: Pick<CardProps, 'job' | 'parts'>) {
  const isOpen = useSignal(false);
  const { id, last } = job;
  const address = isOpen.value ? `${SCHEDULES}/${encodeURIComponent(id)}/runs` : undefined;
  const { found, problem } = useRead<JobRuns>(parts, address, last?.at);
  return (
    <details
      onToggle={({ currentTarget }) => {
        isOpen.value = currentTarget.open;
      }}
    >
      <summary>{t`History`}</summary>
      {problem.value !== '' && <p class="problem">{problem.value}</p>}
      {problem.value === '' && found.value === undefined && <p>{t`Loading…`}</p>}
      {found.value?.runs.length === 0 && <p>{t`It has not run yet.`}</p>}
      <ol class="runs">
        {found.value?.runs.map((run) => (
          <li key={run.at}>
            <LastRun last={run} />
            {run.micros > 0 && (
              <span class="soft"> {moneyText(run.micros, found.value?.currency ?? '')}</span>
            )}
            {run.how === 'done' && run.text !== '' && <pre dir="auto">{run.text}</pre>}
          </li>
        ))}
      </ol>
    </details>
  );
}
