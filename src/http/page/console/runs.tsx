// Runs: workflows and subagents as a tree, from what started it down to what it started. What stopping
// does is what `/kill` and `/workflow cancel` do.

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { RunList, ShownRun } from '../../../features/conversations/rules/runs.ts';
import { Button, Problem, Said } from '../controls.tsx';
import { FIRST_ASKED } from './first-asked.ts';
import {
  Ago,
  moneyText,
  Page,
  Shown,
  spanText,
  Tabs,
  useAct,
  useLive,
  type ViewProps,
} from './parts.tsx';

const RUNS = '/api/v1/runs';
const TICK_MS = 1000;

type Tree = { readonly run: ShownRun; readonly below: readonly Tree[] };

const KINDS: Readonly<Record<ShownRun['kind'], string>> = {
  workflow: t`Workflow`,
  task: t`Subagent`,
  pipeline: t`Pipeline of subagents`,
  loop: t`Loop of subagents`,
};
const STATES: Readonly<Record<ShownRun['state'], string>> = {
  running: t`running`,
  waiting: t`waits for an approval`,
  done: t`done`,
  failed: t`failed`,
  undecided: t`undecided`,
  cancelled: t`stopped`,
};

export function ScheduleTabs({ shown }: { readonly shown: string }) {
  const links = [
    ['#/schedules', t`Schedules`],
    ['#/runs', t`Runs`],
  ] as const;
  return <Tabs label={t`Schedules`} shown={shown} links={links} />;
}

export function Runs({ parts }: ViewProps) {
  const live = useLive<RunList>(parts, FIRST_ASKED.runs.live);
  return (
    <Page title={t`Runs`}>
      <ScheduleTabs shown="#/runs" />
      <Shown live={live} show={(list) => <Trees parts={parts} list={list} />} />
    </Page>
  );
}

function Trees({ parts, list: { runs, currency } }: ViewProps & { readonly list: RunList }) {
  const { said, problem, act } = useAct();
  const status = useRef<HTMLParagraphElement>(null);

  async function stop({ id, label }: ShownRun) {
    const work = () => parts.api.postJson(`${RUNS}/${encodeURIComponent(id)}/stop`, {});
    await act(work, t`${label} was stopped.`);
    // The button is gone with the run.
    status.current?.focus();
  }

  const trees = treesOf(runs);
  const isAtWork = ({ run, below }: Tree): boolean =>
    run.endedAt === undefined || below.some(isAtWork);
  const atWork = trees.filter(isAtWork);
  const ended = trees.filter((tree) => !isAtWork(tree));
  const branches = (shown: readonly Tree[]) => (
    <ul class="cards">
      {shown.map((tree) => (
        <li key={tree.run.id} class="card">
          <Branch tree={tree} currency={currency} stop={stop} isTop />
        </li>
      ))}
    </ul>
  );
  return (
    <>
      <Said text={said.value} ref={status} tabIndex={-1} />
      <Problem class="view-problem" text={problem.value} />
      {atWork.length === 0 && <Nothing />}
      {branches(atWork)}
      {ended.length > 0 && (
        <section class="section" aria-label={t`Ended`}>
          <h2>{t`Ended in the last 7 days`}</h2>
          {branches(ended)}
        </section>
      )}
    </>
  );
}

function Nothing() {
  return (
    <div class="empty">
      <h2>{t`Nothing is running`}</h2>
      <p>{t`Workflows, and subagents that the agent gives a part of its work, are shown here while they run.`}</p>
      <p>{t`Start a workflow in a chat: /workflow list names them.`}</p>
    </div>
  );
}

/** Parents that are not in the list any more are left out. */
function treesOf(runs: readonly ShownRun[]): readonly Tree[] {
  const ids = new Set(runs.map(({ id }) => id));
  const grown = (run: ShownRun): Tree => ({
    run,
    below: runs
      .filter(({ parent }) => parent === run.id)
      .toReversed()
      .map(grown),
  });
  return runs
    .filter(({ parent }) => parent === undefined || !ids.has(parent))
    .map((run) => grown(run));
}

type BranchProps = {
  readonly tree: Tree;
  readonly currency: string;
  readonly stop: (run: ShownRun) => Promise<void>;
  readonly isTop?: boolean;
};

function Branch({ tree, currency, stop, isTop = false }: BranchProps) {
  const { run, below } = tree;
  const { id, kind, label, state, doing, session, name, canStop } = run;
  const isBusy = useSignal(false);
  const isBad = state === 'failed' || state === 'undecided';
  return (
    <div class="branch" data-run={id}>
      <div class="branch-head">
        <div>
          {isTop ? (
            <h2>
              <bdi>{label}</bdi>
              <span class={`badge ${isBad ? 'bad' : ''}`}>{STATES[state]}</span>
            </h2>
          ) : (
            <h3>
              <bdi>{label}</bdi> <span class={`badge ${isBad ? 'bad' : ''}`}>{STATES[state]}</span>
            </h3>
          )}
          <p class="soft">
            {KINDS[kind]}, <Age run={run} />, {costText(tree, currency)}
          </p>
        </div>
        {canStop && (
          <Button
            text={t`Stop`}
            aria-label={t`Stop ${label}`}
            disabled={isBusy.value}
            onClick={async () => {
              isBusy.value = true;
              await stop(run);
              isBusy.value = false;
            }}
          />
        )}
      </div>
      {doing !== undefined && (
        <p class="doing">
          <bdi>{doing}</bdi>
        </p>
      )}
      {isTop && (
        <p class="soft">
          {t`Started from`}{' '}
          <a href={`#/sessions/${encodeURIComponent(session)}`}>
            <bdi>{name ?? session}</bdi>
          </a>
        </p>
      )}
      <Texts run={run} />
      {below.length > 0 && (
        <ul class="branches" aria-label={t`Started by ${label}`}>
          {below.map((each) => (
            <li key={each.run.id}>
              <Branch tree={each} currency={currency} stop={stop} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Texts({ run: { asked, result } }: { readonly run: ShownRun }) {
  return (
    <details>
      <summary>{result === undefined ? t`Task` : t`Task and result`}</summary>
      <pre dir="auto">{asked}</pre>
      {result !== undefined && (
        <pre dir="auto" class="result">
          {result}
        </pre>
      )}
    </details>
  );
}

/** Counts while it runs. */
function Age({ run: { startedAt, endedAt } }: { readonly run: ShownRun }) {
  const now = useSignal(Date.now());
  useEffect(() => {
    if (endedAt !== undefined) return;
    const ticking = setInterval(() => {
      now.value = Date.now();
    }, TICK_MS);
    return () => clearInterval(ticking);
  }, [endedAt, now]);
  if (endedAt === undefined) return <>{t`for ${spanText(now.value - startedAt)}`}</>;
  return (
    <>
      {t`took ${spanText(endedAt - startedAt)}`}, <Ago at={endedAt} />
    </>
  );
}

/** Of the run and all below it. */
function costText(tree: Tree, currency: string): string {
  const sum = ({ run, below }: Tree, of: 'tokens' | 'micros'): number =>
    below.reduce((all, each) => all + sum(each, of), run[of]);
  const micros = sum(tree, 'micros');
  const tokens = t`${sum(tree, 'tokens').toLocaleString()} tokens`;
  return micros === 0 ? tokens : `${tokens}, ${moneyText(micros, currency)}`;
}
