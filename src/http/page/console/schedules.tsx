// Schedules: jobs with their next and last runs; create, run, pause and remove them. What each does is
// what `/cron` and `nanobot cron` do.

import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { JobList, JobRuns, ShownJob } from '../../../features/schedule/rules/views.ts';
import { Button, Problem, Said, set } from '../controls.tsx';
import { FIRST_ASKED } from './first-asked.ts';
import { HeartbeatCards } from './heartbeat.tsx';
import { KINDS, NewJob } from './new-job.tsx';
import {
  AskedTwice,
  Fact,
  Moment,
  moneyText,
  Page,
  ReadWhenOpen,
  Shown,
  useAct,
  useLive,
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
  const { said, problem, act } = useAct();
  const opener = useRef<HTMLButtonElement>(null);

  const close = () => {
    isAdding.value = false;
    opener.current?.focus();
  };

  async function change({ id, name }: ShownJob, what: Change) {
    const path = `${SCHEDULES}/${encodeURIComponent(id)}/${what}`;
    await act(() => parts.api.postJson(path, {}), CHANGED[what](name));
    // The button may be gone with its job.
    if (what === 'remove') opener.current?.focus();
  }

  const action = (
    <Button
      text={t`New schedule`}
      look="primary"
      ref={opener}
      aria-expanded={isAdding.value}
      onClick={set(isAdding, !isAdding.value)}
    />
  );
  return (
    <Page title={t`Schedules`} actions={action}>
      <ScheduleTabs shown="#/schedules" />
      {isAdding.value && (
        <NewJob
          parts={parts}
          made={(name) => {
            said.value = t`${name} is scheduled.`;
            problem.value = '';
          }}
          close={close}
        />
      )}
      <Said text={said.value} />
      <Problem class="view-problem" text={problem.value} />
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
        <Fact name={t`Next run`}>{nextAt === undefined ? t`none` : <Moment at={nextAt} />}</Fact>
        <Fact name={t`Last run`}>{last === undefined ? t`not yet` : <LastRun last={last} />}</Fact>
        <Fact name={t`Reports to`}>
          {job.to === undefined ? t`the latest chat` : <bdi>{job.to}</bdi>}
        </Fact>
        {job.maker !== undefined && (
          <Fact name={t`Made by`}>
            <bdi>{job.maker}</bdi>
          </Fact>
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

  async function act(what: Change) {
    isBusy.value = true;
    await change(what);
    isBusy.value = false;
  }

  const button = (what: Change, label: string) => <Button text={label} onClick={() => act(what)} />;
  return (
    <fieldset class="actions" aria-label={t`About ${job.name}`} disabled={isBusy.value}>
      {job.isRunning ? button('stop', t`Stop`) : button('run', t`Run now`)}
      {job.isEnabled ? button('disable', t`Pause`) : button('enable', t`Resume`)}
      <AskedTwice
        text={t`Remove…`}
        question={t`Remove it with its history?`}
        sure={t`Remove`}
        onSure={() => act('remove')}
      />
    </fieldset>
  );
}

/** Read when it is opened, and again after each run. */
function History({ job, parts }: Pick<CardProps, 'job' | 'parts'>) {
  return (
    <ReadWhenOpen<JobRuns>
      parts={parts}
      title={t`History`}
      path={`${SCHEDULES}/${encodeURIComponent(job.id)}/runs`}
      version={job.last?.at}
      show={({ runs, currency }) => (
        <>
          {runs.length === 0 && <p>{t`It has not run yet.`}</p>}
          <ol class="runs">
            {runs.map((run) => (
              <li key={run.at}>
                <LastRun last={run} />
                {run.micros > 0 && <span class="soft"> {moneyText(run.micros, currency)}</span>}
                {run.how === 'done' && run.text !== '' && <pre dir="auto">{run.text}</pre>}
              </li>
            ))}
          </ol>
        </>
      )}
    />
  );
}
