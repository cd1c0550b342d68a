// One conversation of the inbox: its turns with tool calls and costs, live, and what happened to each
// message.

import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type {
  SessionTurns,
  ShownStep,
  ShownTurn,
} from '../../../features/conversations/rules/views.ts';
import { Button, Problem } from '../controls.tsx';
import { Markdown, Moment, Page, Shown, useAct, useLive, type ViewProps } from './parts.tsx';
import { OwnAnswer, TakeOver } from './take-over.tsx';
import { Life } from './timeline.tsx';
import { ToolDetails, type ToolStep, turnFacts } from './tool-details.tsx';

export const SESSIONS = '/api/v1/sessions';

/** A chat of the page is continued where it was written. */
const chatOf = (key: string) => /^web:([^#]+)$/.exec(key)?.[1];

/** In place of the number of a turn: the newest of a part. */
const BEFORE_ALL = Number.MAX_SAFE_INTEGER;

/** What lies before the oldest turn that was read; `part`: the reset that ended its part. */
type Oldest = {
  readonly hasOlder: boolean;
  readonly beganAt: number | undefined;
  readonly part: number | undefined;
};

type OneSession = ViewProps & { readonly session: string };

export function Conversation({ session, parts }: OneSession) {
  const path = `${SESSIONS}/${encodeURIComponent(session)}`;
  const live = useLive<SessionTurns>(parts, `${path}/events`);
  const seen = useRef(new Map<number, ShownTurn>());
  const oldest = useSignal<Oldest | undefined>(undefined);
  /** By the first turn after it: the resets between the turns that were read. */
  const resets = useRef(new Map<number, number>());
  const { problem, act } = useAct();

  const remember = (turns: readonly ShownTurn[]) => {
    for (const turn of turns) seen.current.set(turn.turn, turn);
  };

  const showOlder = (before: number, { hasOlder, beganAt, part }: Oldest) =>
    act(async () => {
      const wanted = hasOlder ? part : beganAt;
      const of = wanted === undefined ? '' : `/before-reset/${wanted}`;
      const found = (await parts.api.getJson(`${path}${of}/turns/${before}`)) as SessionTurns;
      remember(found.turns);
      if (wanted !== part && wanted !== undefined) resets.current.set(before, wanted);
      oldest.value = { hasOlder: found.hasOlder, beganAt: found.beganAt, part: wanted };
    });

  const chat = chatOf(session);
  const answeredBy = live.value.value?.answeredBy;
  const actions = (
    <span class="actions">
      {answeredBy === 'agent' && <TakeOver path={path} parts={parts} />}
      {chat !== undefined && (
        <a class="button" href={`#${chat}`}>
          {t`Open in Chat`}
        </a>
      )}
      <a class="button" href="#/sessions">
        {t`All conversations`}
      </a>
    </span>
  );
  return (
    <Page title={live.value.value?.name ?? session} actions={actions}>
      <Shown
        live={live}
        show={(shown) => {
          const { name, currency, turns } = shown;
          const all = [
            ...(oldest.value === undefined ? [] : before(seen.current, turns)),
            ...turns,
          ];
          remember(turns);
          const [first] = all;
          const { hasOlder, beganAt } = shown;
          const end = oldest.value ?? { hasOlder, beganAt, part: undefined };
          return (
            <>
              {name !== undefined && (
                <p class="soft">
                  <bdi>{session}</bdi>
                </p>
              )}
              {first === undefined && (
                <p class="empty">{t`Nothing was said since this conversation began anew.`}</p>
              )}
              {(end.hasOlder || end.beganAt !== undefined) && (
                <Button
                  text={end.hasOlder ? t`Show earlier messages` : t`Show what was said before /new`}
                  onClick={() => showOlder(first?.turn ?? BEFORE_ALL, end)}
                />
              )}
              <Problem text={problem.value} />
              <ol class="turns">
                {all.map((turn) => (
                  <Turn
                    key={turn.turn}
                    turn={turn}
                    reset={resets.current.get(turn.turn)}
                    currency={currency}
                    parts={parts}
                  />
                ))}
              </ol>
              {resets.current.has(BEFORE_ALL) && <Reset at={resets.current.get(BEFORE_ALL) ?? 0} />}
              {answeredBy === 'owner' && <OwnAnswer path={path} parts={parts} />}
            </>
          );
        }}
      />
    </Page>
  );
}

/** What was seen and has left the live part since. */
function before(seen: ReadonlyMap<number, ShownTurn>, live: readonly ShownTurn[]) {
  const first = live[0]?.turn ?? Number.POSITIVE_INFINITY;
  const left = [...seen.values()].filter(({ turn }) => turn < first);
  return left.toSorted((a, b) => a.turn - b.turn);
}

const Reset = ({ at }: { readonly at: number }) => (
  <p class="soft reset">
    {t`Began anew (/new)`}, <Moment at={at} />
  </p>
);

type TurnProps = ViewProps & {
  readonly turn: ShownTurn;
  /** When the conversation began anew before it. */
  readonly reset: number | undefined;
  readonly currency: string;
};

function Turn({ turn, reset, currency, parts }: TurnProps) {
  const { steps, outcome } = turn;
  const asked = steps.flatMap((step) => (step.kind === 'said' && step.message) || []);
  const facts = [
    ...(outcome === undefined ? [t`in progress`] : []),
    ...(outcome === 'recorded' ? [t`not answered by the agent`] : []),
    ...(outcome === 'failed' ? [t`failed`] : []),
    ...(outcome === 'stopped' ? [t`stopped`] : []),
    turnFacts(turn, currency),
  ].filter((fact) => fact !== '');
  const said = (
    <>
      {steps.map((step, index) => (
        // Steps of a turn are only appended.
        <Step key={index} step={step} />
      ))}
      <p class="soft turn-facts">
        <bdi>{facts.join(' · ')}</bdi>
      </p>
      {asked.map((message) => (
        <Life key={message} message={message} parts={parts} />
      ))}
    </>
  );
  return (
    <li class="turn">
      {reset !== undefined && <Reset at={reset} />}
      {turn.isUndone === true ? (
        <details class="undone">
          <summary>{t`Taken back or answered again: the model does not see this`}</summary>
          {said}
        </details>
      ) : (
        said
      )}
    </li>
  );
}

const SPEAKERS = { person: t`Person`, agent: t`Agent`, owner: t`You` };

function Step({ step }: { readonly step: ShownStep }) {
  if (step.kind === 'tool') return <ToolCall step={step} />;
  return (
    <div class={`spoken ${step.by}`}>
      <p class="soft">
        {SPEAKERS[step.by]}, <Moment at={step.at} />
        {step.isUntrusted && <span class="badge">{t`untrusted`}</span>}
        {step.files > 0 && (
          <span class="badge">{step.files === 1 ? t`1 file` : t`${step.files} files`}</span>
        )}
      </p>
      {step.by === 'agent' ? (
        <Markdown text={step.text} />
      ) : (
        <p class="spoken-text" dir="auto">
          {step.text}
        </p>
      )}
    </div>
  );
}

const STATES: Readonly<Record<ToolStep['status'], string>> = {
  running: t`running`,
  ok: t`done`,
  failed: t`failed`,
  unknown: t`interrupted: it is not known whether it had an effect`,
};

function ToolCall({ step }: { readonly step: ToolStep }) {
  return (
    <details class="tool-call">
      <summary>
        {t`Tool`} <code>{step.name}</code>{' '}
        <span class={step.status === 'failed' ? 'problem' : 'soft'}>{STATES[step.status]}</span>
        {step.isUntrusted && <span class="badge">{t`untrusted`}</span>}
      </summary>
      <ToolDetails step={step} />
    </details>
  );
}
