// The inbox: conversations of all channels, newest first, searched by words.

import { useSignal } from '@preact/signals';
import { t } from '/texts.js';
import type {
  SearchHits,
  SessionList,
  ShownSession,
} from '../../../features/conversations/rules/views.ts';
import { Conversation, SESSIONS } from './conversation.tsx';
import {
  Ago,
  namedInAddress,
  Page,
  problemText,
  Shown,
  useLive,
  type ViewProps,
} from './parts.tsx';

const addressOf = (key: string) => `#/sessions/${encodeURIComponent(key)}`;

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
      {sessions.map(({ key, channel, name, messages, updatedAt, problem, isTakenOver }) => (
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
              {isTakenOver && <span class="badge">{t`taken over`}</span>}
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
