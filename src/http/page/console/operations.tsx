// Operations: whether the gateway is well, and what its owner does about it.

import { t } from '/texts.js';
import type { OperationsState } from '../../../features/health/rules/views.ts';
import { Button, Problem } from '../controls.tsx';
import { Audit } from './audit.tsx';
import { Backups } from './backups.tsx';
import { ChannelHealth } from './channel-health.tsx';
import { Lines } from './chart.tsx';
import { FIRST_ASKED } from './first-asked.ts';
import { Log } from './log.tsx';
import {
  AskedTwice,
  Fact,
  Moment,
  namedInAddress,
  Page,
  Shown,
  Tabs,
  useAct,
  useLive,
  type ViewProps,
} from './parts.tsx';
import { UpdatePart } from './update.tsx';

const HOME = '#/operations';
const LINKS = [
  [HOME, t`Overview`],
  [`${HOME}/log`, t`Log`],
  [`${HOME}/audit`, t`Audit`],
] as const;

export function Operations({ parts }: ViewProps) {
  const named = namedInAddress();
  const shown = named === 'log' || named === 'audit' ? named : undefined;
  return (
    <Page title={t`Operations`}>
      <Tabs
        label={t`Parts of operations`}
        shown={shown === undefined ? HOME : `${HOME}/${shown}`}
        links={LINKS}
      />
      {shown === 'log' && <Log parts={parts} />}
      {shown === 'audit' && <Audit parts={parts} />}
      {shown === undefined && <Overview parts={parts} />}
    </Page>
  );
}

type Act = (path: string, body: object) => Promise<unknown>;
type CardProps = { readonly state: OperationsState; readonly act: Act };

function Overview({ parts }: ViewProps) {
  const live = useLive<OperationsState>(parts, FIRST_ASKED.operations.live);
  const { problem, act: tried } = useAct();
  const act = (path: string, body: object) => tried(() => parts.api.postJson(path, body));
  return (
    <>
      <Problem class="view-problem" text={problem.value} />
      <Shown
        live={live}
        show={(state) => (
          <>
            <Gateway parts={parts} state={state} />
            {state.deadCount > 0 && <SetAside state={state} act={act} />}
            <ChannelHealth channels={state.channels} since={state.since} />
            <Doctor state={state} act={act} />
          </>
        )}
      />
      <Backups parts={parts} />
    </>
  );
}

function Gateway({
  parts,
  state: { version, since, update, queue },
}: ViewProps & Pick<CardProps, 'state'>) {
  const { waiting, running, toSend, oldestAt } = queue;
  return (
    <section class="card" aria-label={t`Gateway`}>
      <h2>{t`Gateway`}</h2>
      <dl class="facts">
        <Fact name={t`Version`}>{version}</Fact>
        <Fact name={t`Running since`}>
          <Moment at={since} />
        </Fact>
        <Fact name={t`Messages`}>
          {t`${waiting} waiting, ${running} being answered, ${toSend} to send`}
          {oldestAt !== undefined && (
            <span class="detail">
              {t`The oldest waits since`} <Moment at={oldestAt} />
            </span>
          )}
        </Fact>
      </dl>
      <QueueDepths depths={queue.depths} />
      <UpdatePart parts={parts} version={version} update={update} />
    </section>
  );
}

/** A gap is a gateway that did not run. */
const GAP_MS = 900_000;

function QueueDepths({ depths }: Pick<OperationsState['queue'], 'depths'>) {
  if (depths.length < 2) return null;
  const rows = depths.flatMap((one, at) => {
    const before = depths[at - 1];
    const isGap = before !== undefined && one.at - before.at > GAP_MS;
    return isGap ? [{ at: one.at - 1, toAnswer: null, toSend: null }, one] : [one];
  });
  const most = (of: 'toAnswer' | 'toSend') => Math.max(...depths.map((one) => one[of]));
  return (
    <Lines
      title={t`Messages in the last 24 hours: waiting or being answered (area), to send (dashed)`}
      label={t`At most ${most('toAnswer')} messages waited or were being answered, and ${most('toSend')} were to be sent, in the last 24 hours`}
      times={rows.map(({ at }) => at)}
      first={rows.map(({ toAnswer }) => toAnswer)}
      second={rows.map(({ toSend }) => toSend)}
    />
  );
}

function SetAside({ state: { dead, deadCount }, act }: CardProps) {
  const dropText = t`Delete all ${deadCount} for good?`;
  return (
    <section class="card" aria-label={t`Messages set aside`}>
      <h2>
        {t`Messages set aside`} <span class="badge bad">{deadCount}</span>
      </h2>
      <p class="soft">{t`They could not be answered or delivered. Retry them when the cause is gone.`}</p>
      <ul class="backups">
        {dead.map((letter) => (
          <DeadLetter key={letter.id} letter={letter} act={act} />
        ))}
      </ul>
      {deadCount > dead.length && (
        <p class="soft">{t`The oldest ${dead.length} are shown; the buttons below are for all.`}</p>
      )}
      <fieldset class="actions" aria-label={t`About all`}>
        <Button
          text={t`Retry all`}
          look="primary"
          onClick={() => act('/api/v1/dead/retry', { all: true })}
        />
        <AskedTwice
          text={t`Delete all…`}
          question={dropText}
          sure={t`Delete`}
          onSure={() => act('/api/v1/dead/drop', { all: true })}
        />
      </fieldset>
    </section>
  );
}

type LetterProps = { readonly letter: OperationsState['dead'][number]; readonly act: Act };

function DeadLetter({ letter, act }: LetterProps) {
  const { id, direction, session, state, reason, attempts, excerpt, at } = letter;
  const way = direction === 'inbound' ? t`not answered` : t`not delivered`;
  const ids = { ids: [id] };
  return (
    <li data-dead={id}>
      <span>
        <a href={`#/sessions/${encodeURIComponent(session)}`}>
          <bdi>{session}</bdi>
        </a>
        {': '}
        <bdi>{excerpt}</bdi>
        <span class="detail soft">
          {state === 'unknown' ? t`maybe delivered` : way}, {t`attempts: ${attempts}`},{' '}
          <Moment at={at} />
        </span>
        <span class="detail problem">
          <bdi>{reason}</bdi>
        </span>
      </span>
      <span class="actions">
        <Button text={t`Retry`} onClick={() => act('/api/v1/dead/retry', ids)} />
        <Button text={t`Delete`} onClick={() => act('/api/v1/dead/drop', ids)} />
      </span>
    </li>
  );
}

const LEVELS = { ok: t`fine`, warn: t`look at it`, fail: t`broken` } as const;

function Doctor({ state: { doctor }, act }: CardProps) {
  const { running, at, findings = [], problem } = doctor;
  const trouble = findings.filter(({ level }) => level !== 'ok');
  const fine = findings.filter(({ level }) => level === 'ok');
  return (
    <section class="card" aria-label={t`Check-up`}>
      <h2>
        {t`Check-up`}
        {at !== undefined && running === undefined && (
          <span class="soft detail">
            <Moment at={at} />
          </span>
        )}
      </h2>
      {at === undefined && running === undefined && (
        <p class="soft">{t`Checks files, settings, channels and the model, and says what to do.`}</p>
      )}
      {running !== undefined && (
        <p class="said-so" role="status">
          {running === 'check'
            ? t`The checks are running.`
            : t`It is being fixed and checked again.`}
        </p>
      )}
      {problem !== undefined && <p class="view-problem">{problem}</p>}
      {findings.length > 0 && trouble.length === 0 && <p>{t`Everything is fine.`}</p>}
      <ul class="backups">
        {trouble.map((finding) => (
          <Trouble
            key={`${finding.check} ${finding.text}`}
            finding={finding}
            isBusy={running !== undefined}
            fix={() => act('/api/v1/doctor/fix', { check: finding.check })}
          />
        ))}
      </ul>
      {fine.length > 0 && (
        <details>
          <summary>{t`Fine: ${fine.length}`}</summary>
          <ul class="backups">
            {fine.map(({ check, text }) => (
              <li key={`${check} ${text}`}>
                <span>
                  <span class="soft">{check}</span> <bdi>{text}</bdi>
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
      <div class="actions">
        <Button
          text={at === undefined ? t`Check now` : t`Check again`}
          disabled={running !== undefined}
          onClick={() => act('/api/v1/doctor', {})}
        />
      </div>
    </section>
  );
}

type TroubleProps = {
  readonly finding: NonNullable<OperationsState['doctor']['findings']>[number];
  readonly isBusy: boolean;
  readonly fix: () => Promise<unknown>;
};

function Trouble({ finding, isBusy, fix }: TroubleProps) {
  const { check, level, text, remedy, fix: what, notFixed } = finding;
  return (
    <li data-check={check}>
      <span>
        <span class={level === 'fail' ? 'badge bad' : 'badge'}>{LEVELS[level]}</span>{' '}
        <span class="soft">{check}</span> <bdi>{text}</bdi>
        {remedy !== undefined && <span class="detail soft">{remedy}</span>}
        {what !== undefined && <span class="detail">{t`The fix: ${what}`}</span>}
        {notFixed !== undefined && <span class="detail problem">{t`Not fixed: ${notFixed}`}</span>}
      </span>
      {what !== undefined && <Button text={t`Fix`} disabled={isBusy} onClick={fix} />}
    </li>
  );
}
