// Usage: what models cost and how fast they answer. Budgets follow each call; the sums of the last
// days are read again when a call ended.

import { t } from '/texts.js';
import type {
  UsageGroup,
  UsageReport,
  UsageToday,
} from '../../../features/spending/rules/usage.ts';
import { Problem } from '../controls.tsx';
import { Bars } from './chart.tsx';
import { FIRST_ASKED } from './first-asked.ts';
import { Page, Shown, useLive, useRead, type ViewProps } from './parts.tsx';

const USAGE = '/api/v1/usage';
const MICROS = 1_000_000;

const count = (value: number) => value.toLocaleString();

function money(micros: number, currency: string): string {
  const digits = micros > 0 && micros < MICROS / 10 ? 4 : 2;
  return `${(micros / MICROS).toFixed(digits)} ${currency}`;
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(ms < 1000 ? 2 : 1)} s`;

export function Usage({ parts }: ViewProps) {
  const live = useLive<UsageToday>(parts, FIRST_ASKED.usage.live);
  // A call is counted when it begins, and priced when it ends.
  const { calls, tokens, micros } = live.value.value?.spent ?? {};
  const address = calls === undefined ? undefined : USAGE;
  const { found, problem } = useRead<UsageReport>(parts, address, `${calls} ${tokens} ${micros}`);
  return (
    <Page title={t`Usage`}>
      <Shown live={live} show={(today) => <Today today={today} />} />
      <Problem class="view-problem" text={problem.value} />
      {found.value !== undefined && <Report report={found.value} />}
    </Page>
  );
}

function Today({ today: { spent, budgets, currency } }: { readonly today: UsageToday }) {
  return (
    <section class="card" aria-label={t`Today`}>
      <h2>{t`Today`}</h2>
      <p>
        {t`${money(spent.micros, currency)}, ${count(spent.tokens)} tokens in ${count(spent.calls)} calls`}
      </p>
      {budgets.length === 0 ? (
        <p class="soft">
          {t`No budget was used today. limits.budget sets one for all together, for each person and for each job.`}{' '}
          <a href="#/configuration">{t`Configuration`}</a>
        </p>
      ) : (
        <ul class="runs">
          {budgets.map((budget) => (
            <Budget key={budget.key} budget={budget} currency={currency} />
          ))}
        </ul>
      )}
    </section>
  );
}

type BudgetProps = {
  readonly budget: UsageToday['budgets'][number];
  readonly currency: string;
};

function Budget({ budget, currency }: BudgetProps) {
  const { key, name, spent, limit, left } = budget;
  const title = key === 'total' ? t`All together` : (name ?? payerText(key));
  const parts = [
    limit.micros > 0 && t`${money(left.micros, currency)} of ${money(limit.micros, currency)} left`,
    limit.tokens > 0 && t`${count(left.tokens)} of ${count(limit.tokens)} tokens left`,
  ].filter((part) => part !== false);
  const share = Math.max(
    limit.micros > 0 ? spent.micros / limit.micros : 0,
    limit.tokens > 0 ? spent.tokens / limit.tokens : 0,
  );
  return (
    <li>
      <bdi title={key}>{title}</bdi>: {parts.join(', ')}
      <progress class="share" max={1} value={Math.min(1, share)} aria-label={t`Used of ${title}`} />
    </li>
  );
}

/** The login of this page and of the terminal has no name of its own. */
const payerText = (key: string) =>
  /^(?:person )?(?:web|terminal):owner$/.test(key) ? t`You` : key.replace(/^person /, '');

function Report({ report }: { readonly report: UsageReport }) {
  const { days, people, jobs, calls, times, currency } = report;
  const sum = (of: 'tokens' | 'micros' | 'calls') => days.reduce((all, day) => all + day[of], 0);
  if (sum('calls') === 0 && calls === undefined) {
    return (
      <div class="empty">
        <h2>{t`No model was used in the last 30 days`}</h2>
        <p>{t`Tokens and cost are shown here after the first answer.`}</p>
      </div>
    );
  }
  const hasCost = sum('micros') > 0;
  const groups = { currency, hasCost };
  return (
    <>
      <section class="card" aria-label={t`The last 30 days`}>
        <h2>{t`The last 30 days`}</h2>
        <p>
          {t`${money(sum('micros'), currency)}, ${count(sum('tokens'))} tokens in ${count(sum('calls'))} calls`}
        </p>
        {hasCost && (
          <Bars
            labels={days.map(({ day }) => day)}
            values={days.map(({ micros }) => micros / MICROS)}
            title={t`Cost by day (${currency})`}
          />
        )}
        <Bars
          labels={days.map(({ day }) => day)}
          values={days.map(({ tokens }) => tokens)}
          title={t`Tokens by day`}
        />
        <details>
          <summary>{t`Figures`}</summary>
          <GroupTable
            {...groups}
            title={t`Day`}
            rows={days
              .filter((day) => day.calls > 0)
              .map(({ day, ...rest }) => ({ name: day, ...rest }))}
          />
        </details>
      </section>
      <Part
        {...groups}
        heading={t`People`}
        title={t`Person`}
        rows={people.map((person) => ({ ...person, name: payerText(person.name) }))}
      />
      <Part {...groups} heading={t`Jobs`} title={t`Job`} rows={jobs} />
      {calls !== undefined && <Calls calls={calls} times={times} {...groups} />}
    </>
  );
}

type GroupsProps = {
  readonly title: string;
  readonly rows: readonly UsageGroup[];
  readonly currency: string;
  /** Without a known price, only tokens are shown. */
  readonly hasCost: boolean;
};

function Part({ heading, ...groups }: GroupsProps & { readonly heading: string }) {
  if (groups.rows.length === 0) return null;
  return (
    <section class="card" aria-label={heading}>
      <h2>{heading}</h2>
      <GroupTable {...groups} />
    </section>
  );
}

function GroupTable({ title, rows, currency, hasCost }: GroupsProps) {
  const size = ({ tokens, micros }: UsageGroup) => (hasCost ? micros : tokens);
  const largest = Math.max(1, ...rows.map(size));
  return (
    <table class="figures">
      <thead>
        <tr>
          <th scope="col">{title}</th>
          <th scope="col">{t`Calls`}</th>
          <th scope="col">{t`Tokens`}</th>
          {hasCost && <th scope="col">{t`Cost`}</th>}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ name, ...row }) => (
          <tr key={name}>
            <th scope="row">
              <bdi>{name}</bdi>
              <svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
                <rect width={(100 * size({ name, ...row })) / largest} height={1} />
              </svg>
            </th>
            <td>{count(row.calls)}</td>
            <td>{count(row.tokens)}</td>
            {hasCost && <td>{money(row.micros, currency)}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

type CallsProps = Pick<GroupsProps, 'currency' | 'hasCost'> & {
  readonly calls: NonNullable<UsageReport['calls']>;
  readonly times: UsageReport['times'];
};

function Calls({ calls, times, ...groups }: CallsProps) {
  const { models, channels, inputTokens, cachedTokens, failed, answering, waiting } = calls;
  const share = inputTokens === 0 ? 0 : Math.round((100 * cachedTokens) / inputTokens);
  const since = new Date(calls.since).toLocaleDateString(undefined, { dateStyle: 'medium' });
  const spans = [
    [t`Waiting for its turn`, times.queue],
    [t`Waiting for a local model`, waiting],
    [t`Model answers`, answering],
    [t`Tools`, times.tools],
    [t`Delivery`, times.delivery],
  ] as const;
  return (
    <>
      <Part {...groups} heading={t`Models`} title={t`Model`} rows={models} />
      <Part {...groups} heading={t`Channels`} title={t`Channel`} rows={channels} />
      <section class="card" aria-label={t`Cache and speed`}>
        <h2>{t`Cache and speed`}</h2>
        <p>
          {t`${share} % of the input was read from the vendors’ caches. ${count(failed)} calls failed.`}
        </p>
        <table class="figures">
          <thead>
            <tr>
              <th scope="col">{t`Time`}</th>
              <th scope="col">{t`Half of them within`}</th>
              <th scope="col">{t`90 %`}</th>
              <th scope="col">{t`99 %`}</th>
            </tr>
          </thead>
          <tbody>
            {spans.map(
              ([name, time]) =>
                time !== undefined && (
                  <tr key={name}>
                    <th scope="row">{name}</th>
                    <td>{seconds(time.p50)}</td>
                    <td>{seconds(time.p90)}</td>
                    <td>{seconds(time.p99)}</td>
                  </tr>
                ),
            )}
          </tbody>
        </table>
        <p class="soft">
          {t`Models, channels and cache are of the calls recorded since ${since}; waiting for its turn, tools and delivery are of the last 1,000 of each since the gateway started.`}
        </p>
      </section>
    </>
  );
}
