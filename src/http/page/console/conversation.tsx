// One conversation of the inbox: its turns with tool calls and costs, live, and what happened to each
// message.

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type {
  MessageTrace,
  SessionTurns,
  ShownStep,
  ShownTurn,
} from '../../../features/conversations/rules/views.ts';
import { Moment, moneyText, Page, problemText, Shown, useLive, type ViewProps } from './parts.tsx';
import { OwnAnswer, TakeOver } from './take-over.tsx';

export const SESSIONS = '/api/v1/sessions';
const MINUTE_MS = 60_000;
const SECOND_MS = 1000;

/** A chat of the page is continued where it was written. */
const chatOf = (key: string) => /^web:([^#]+)$/.exec(key)?.[1];

type OneSession = ViewProps & { readonly session: string };

export function Conversation({ session, parts }: OneSession) {
  const path = `${SESSIONS}/${encodeURIComponent(session)}`;
  const live = useLive<SessionTurns>(parts, `${path}/events`);
  const seen = useRef(new Map<number, ShownTurn>());
  const hasOlder = useSignal<boolean | undefined>(undefined);
  const problem = useSignal('');

  const remember = (turns: readonly ShownTurn[]) => {
    for (const turn of turns) seen.current.set(turn.turn, turn);
  };

  async function showOlder(before: number) {
    problem.value = '';
    try {
      const found = (await parts.api.getJson(`${path}/turns/${before}`)) as SessionTurns;
      remember(found.turns);
      hasOlder.value = found.hasOlder;
    } catch (error) {
      problem.value = problemText(error);
    }
  }

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
            ...(hasOlder.value === undefined ? [] : before(seen.current, turns)),
            ...turns,
          ];
          remember(turns);
          const [first] = all;
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
              {first !== undefined && (hasOlder.value ?? shown.hasOlder) && (
                <button type="button" class="button" onClick={() => showOlder(first.turn)}>
                  {t`Show earlier messages`}
                </button>
              )}
              <p class="problem" role="alert">
                {problem.value}
              </p>
              <ol class="turns">
                {all.map((turn) => (
                  <Turn key={turn.turn} turn={turn} currency={currency} parts={parts} />
                ))}
              </ol>
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

type TurnProps = ViewProps & { readonly turn: ShownTurn; readonly currency: string };

function Turn({ turn, currency, parts }: TurnProps) {
  const { steps, outcome, models, calls, tokens, micros } = turn;
  const asked = steps.flatMap((step) => (step.kind === 'said' && step.message) || []);
  const facts = [
    ...(outcome === undefined ? [t`in progress`] : []),
    ...(outcome === 'recorded' ? [t`not answered by the agent`] : []),
    ...(outcome === 'failed' ? [t`failed`] : []),
    ...(outcome === 'stopped' ? [t`stopped`] : []),
    ...models,
    ...(calls === 0 ? [] : [calls === 1 ? t`1 model call` : t`${calls} model calls`]),
    ...(tokens === 0 ? [] : [t`${tokens.toLocaleString()} tokens`]),
    ...(micros === 0 ? [] : [moneyText(micros, currency)]),
  ];
  return (
    <li class="turn">
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
      <p class="spoken-text" dir="auto">
        {step.text}
      </p>
    </div>
  );
}

const STATES: Readonly<Record<Extract<ShownStep, { kind: 'tool' }>['status'], string>> = {
  running: t`running`,
  ok: t`done`,
  failed: t`failed`,
  unknown: t`interrupted: it is not known whether it had an effect`,
};

function ToolCall({ step }: { readonly step: Extract<ShownStep, { kind: 'tool' }> }) {
  return (
    <details class="tool-call">
      <summary>
        {t`Tool`} <code>{step.name}</code>{' '}
        <span class={step.status === 'failed' ? 'problem' : 'soft'}>{STATES[step.status]}</span>
        {step.isUntrusted && <span class="badge">{t`untrusted`}</span>}
      </summary>
      <p class="soft">{t`Arguments`}</p>
      <pre dir="auto">{readable(step.arguments)}</pre>
      {step.result !== undefined && (
        <>
          <p class="soft">{t`Result`}</p>
          <pre dir="auto">{step.result}</pre>
        </>
      )}
    </details>
  );
}

/** JSON with line breaks; invalid JSON as the model wrote it. */
function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function Life({ message, parts }: ViewProps & { readonly message: string }) {
  const isOpen = useSignal(false);
  const found = useSignal<MessageTrace | undefined>(undefined);
  const problem = useSignal('');
  useEffect(() => {
    if (!isOpen.value) return;
    parts.api.getJson(`/api/v1/messages/${encodeURIComponent(message)}/trace`).then(
      (trace) => {
        found.value = trace as MessageTrace;
        problem.value = '';
      },
      (error) => {
        problem.value = problemText(error);
      },
    );
  }, [isOpen.value, message]);
  const trace = found.value;
  const begun = trace?.steps[0]?.at ?? 0;
  return (
    <details
      onToggle={({ currentTarget }) => {
        isOpen.value = currentTarget.open;
      }}
    >
      <summary>{t`What happened to this message`}</summary>
      {problem.value !== '' && <p class="problem">{problem.value}</p>}
      {problem.value === '' && trace === undefined && <p>{t`Loading…`}</p>}
      {trace !== undefined && (
        <ol class="life">
          {[trace, ...trace.answers].map(({ steps }, index) =>
            steps.map(({ at, what, text, detail }) => (
              <li key={`${index} ${at} ${what}`}>
                <span class="soft">{spanText(at - begun)}</span>
                <span>
                  {index === 0 ? t`Message` : t`Answer`}: {text}
                  {detail !== undefined && <span class="detail soft">{detail}</span>}
                </span>
              </li>
            )),
          )}
        </ol>
      )}
    </details>
  );
}

const spanText = (ms: number) =>
  ms < MINUTE_MS
    ? t`after ${(ms / SECOND_MS).toFixed(1)} s`
    : t`after ${Math.round(ms / MINUTE_MS)} min`;
