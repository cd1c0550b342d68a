// The inbox: conversations of all channels, newest first, searched by words; one of them with its tool
// calls and costs, and what happened to each message.

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type {
  MessageTrace,
  SearchHits,
  SessionList,
  SessionTurns,
  ShownSession,
  ShownStep,
  ShownTurn,
} from '../../../features/conversations/rules/views.ts';
import {
  Ago,
  Moment,
  moneyText,
  namedInAddress,
  Page,
  problemText,
  Shown,
  useLive,
  type ViewProps,
} from './parts.tsx';

const SESSIONS = '/api/v1/sessions';
const MINUTE_MS = 60_000;
const SECOND_MS = 1000;

const addressOf = (key: string) => `#/sessions/${encodeURIComponent(key)}`;
/** A chat of the page is continued where it was written. */
const chatOf = (key: string) => /^web:([^#]+)$/.exec(key)?.[1];

export function Sessions({ parts }: ViewProps) {
  const key = namedInAddress();
  return key === undefined ? (
    <Inbox parts={parts} />
  ) : (
    <Conversation key={key} session={key} parts={parts} />
  );
}

function Inbox({ parts }: ViewProps) {
  const live = useLive<SessionList>(parts, `${SESSIONS}/events`);
  const older = useSignal<SessionList | undefined>(undefined);
  const hits = useSignal<SearchHits | undefined>(undefined);
  const problem = useSignal('');
  const isBusy = useSignal(false);

  async function ask(work: () => Promise<void>) {
    isBusy.value = true;
    problem.value = '';
    try {
      await work();
    } catch (error) {
      problem.value = problemText(error);
    }
    isBusy.value = false;
  }

  const search = (event: SubmitEvent) => {
    event.preventDefault();
    const words = String(new FormData(event.currentTarget as HTMLFormElement).get('words')).trim();
    if (words === '') {
      hits.value = undefined;
      return;
    }
    void ask(async () => {
      hits.value = (await parts.api.postJson(`${SESSIONS}/search`, { words })) as SearchHits;
    });
  };

  return (
    <Page title={t`Inbox`}>
      <search>
        <form class="line" onSubmit={search}>
          <input
            type="search"
            name="words"
            dir="auto"
            autocomplete="off"
            maxLength={500}
            aria-label={t`Search all conversations`}
            placeholder={t`Search all conversations`}
            onInput={({ currentTarget }) => {
              if (currentTarget.value === '') hits.value = undefined;
            }}
          />
          <button type="submit" class="button" disabled={isBusy.value}>
            {t`Search`}
          </button>
        </form>
      </search>
      <p class="problem" role="alert">
        {problem.value}
      </p>
      {hits.value !== undefined ? (
        <Hits found={hits.value} />
      ) : (
        <Shown
          live={live}
          show={({ sessions, hasMore }) => (
            <>
              {sessions.length === 0 && (
                <div class="empty">
                  <h2>{t`No conversations yet`}</h2>
                  <p>{t`What people write on any channel appears here.`}</p>
                </div>
              )}
              <Rows sessions={joined(sessions, older.value)} />
              {hasMore && older.value === undefined && (
                <button
                  type="button"
                  class="button"
                  disabled={isBusy.value}
                  onClick={() =>
                    ask(async () => {
                      older.value = (await parts.api.getJson(SESSIONS)) as SessionList;
                    })
                  }
                >
                  {t`Show older conversations`}
                </button>
              )}
            </>
          )}
        />
      )}
    </Page>
  );
}

function joined(newest: readonly ShownSession[], all: SessionList | undefined) {
  const shown = new Set(newest.map(({ key }) => key));
  return [...newest, ...(all?.sessions.filter(({ key }) => !shown.has(key)) ?? [])];
}

function Rows({ sessions }: { readonly sessions: readonly ShownSession[] }) {
  return (
    <ul class="rows">
      {sessions.map(({ key, channel, name, messages, updatedAt, problem }) => (
        <li key={key}>
          <a class="row" href={addressOf(key)}>
            <span class="badge">{channel}</span>
            <span class="row-name">
              <bdi>{name ?? key}</bdi>
              {name !== undefined && (
                <span class="soft">
                  <bdi>{key}</bdi>
                </span>
              )}
            </span>
            <span class="soft row-facts">
              <span>{messages === 1 ? t`1 message` : t`${messages} messages`}</span>
              <Ago at={updatedAt} />
            </span>
            {problem !== undefined && (
              <span class="problem">{t`Cannot be read as a whole: ${problem}`}</span>
            )}
          </a>
        </li>
      ))}
    </ul>
  );
}

function Hits({ found }: { readonly found: SearchHits }) {
  return (
    <>
      <p role="status">
        {found.hits.length === 0
          ? t`Nothing was found.`
          : found.hits.length === 1
            ? t`Found once.`
            : t`Found ${found.hits.length} times.`}{' '}
        {found.unreadable > 0 && t`${found.unreadable} files cannot be read.`}
      </p>
      <ul class="rows">
        {found.hits.map(({ session, at, role, snippet }) => (
          <li key={`${session} ${at} ${role} ${snippet}`}>
            <a class="row" href={addressOf(session)}>
              <span class="badge">{ROLES[role] ?? role}</span>
              <span class="row-name">
                <bdi>{snippet}</bdi>
                <span class="soft">
                  <bdi>{session}</bdi>
                </span>
              </span>
              <span class="soft row-facts">
                <Ago at={at} />
              </span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

const ROLES: Readonly<Record<string, string>> = {
  user: t`person`,
  assistant: t`answer`,
  tool: t`tool`,
  summary: t`summary`,
};

type OneSession = ViewProps & { readonly session: string };

function Conversation({ session, parts }: OneSession) {
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
  const actions = (
    <span class="actions">
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

function Step({ step }: { readonly step: ShownStep }) {
  if (step.kind === 'tool') return <ToolCall step={step} />;
  return (
    <div class={`spoken ${step.by}`}>
      <p class="soft">
        {step.by === 'person' ? t`Person` : t`Agent`}, <Moment at={step.at} />
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
