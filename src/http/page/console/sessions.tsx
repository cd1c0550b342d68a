// The inbox: conversations of all channels, newest first, searched by words.

import { useSignal } from '@preact/signals';
import { useCallback, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type {
  SearchHits,
  SessionList,
  ShownSession,
} from '../../../features/conversations/rules/views.ts';
import { Button, Form, Problem } from '../controls.tsx';
import { Conversation, SESSIONS } from './conversation.tsx';
import { FIRST_ASKED } from './first-asked.ts';
import { Ago, namedInAddress, Page, Shown, useAct, useLive, type ViewProps } from './parts.tsx';
import { type Range, WindowList } from './window-list.tsx';

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
  const live = useLive<SessionList>(parts, FIRST_ASKED.sessions.live);
  const hits = useSignal<SearchHits | undefined>(undefined);
  const { isBusy, problem, act } = useAct();
  const search = (typed: FormData) => {
    const words = String(typed.get('words')).trim();
    if (words === '') {
      hits.value = undefined;
      return;
    }
    void act(async () => {
      hits.value = (await parts.api.postJson(`${SESSIONS}/search`, { words })) as SearchHits;
    });
  };

  return (
    <Page title={t`Inbox`}>
      <search>
        <Form class="line" submit={search}>
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
          <Button text={t`Search`} type="submit" disabled={isBusy.value} />
        </Form>
      </search>
      <Problem text={problem.value} />
      {hits.value !== undefined ? (
        <Hits found={hits.value} />
      ) : (
        <Shown
          live={live}
          show={({ sessions, total }) => (
            <>
              {sessions.length === 0 && (
                <div class="empty">
                  <h2>{t`No conversations yet`}</h2>
                  <p>{t`What people write on any channel appears here.`}</p>
                </div>
              )}
              <Rows live={live.value.value} total={total} parts={parts} />
            </>
          )}
        />
      )}
    </Page>
  );
}

/** How many the gateway answers at once. */
const PAGE_ROWS = 200;

type RowsProps = ViewProps & { readonly live: SessionList | undefined; readonly total: number };

/** The first page is live; a later one is read when it comes into view, and again after a change. */
function Rows({ live, total, parts }: RowsProps) {
  const pages = useSignal<ReadonlyMap<number, readonly ShownSession[]>>(new Map());
  const asked = useRef(new Map<number, SessionList | undefined>());
  const onShown = useCallback(
    ({ first, end }: Range) => {
      const last = Math.floor(Math.max(0, end - 1) / PAGE_ROWS);
      for (let page = Math.floor(first / PAGE_ROWS); page <= last; page += 1) {
        if (page === 0 || (asked.current.has(page) && asked.current.get(page) === live)) continue;
        asked.current.set(page, live);
        parts.api.getJson(`${SESSIONS}/from/${page * PAGE_ROWS}`).then(
          (list) => {
            pages.value = new Map(pages.value).set(page, (list as SessionList).sessions);
          },
          // Asked again when it comes into view the next time.
          () => asked.current.delete(page),
        );
      }
    },
    [live, parts, pages],
  );
  const row = (index: number) => {
    const page = Math.floor(index / PAGE_ROWS);
    const known = page === 0 ? live?.sessions : pages.value.get(page);
    const session = known?.[index % PAGE_ROWS];
    return session === undefined ? (
      <span class="row soft">{t`Loading…`}</span>
    ) : (
      <Row session={session} />
    );
  };
  return <WindowList total={total} onShown={onShown} row={row} />;
}

function Row({ session }: { readonly session: ShownSession }) {
  const { key, channel, name, messages, updatedAt, problem, isTakenOver } = session;
  return (
    <a class="row" href={addressOf(key)}>
      <span class="badge mark">
        <svg class="icon" aria-hidden="true">
          <use href={`/icons.svg#on-${channel}`} />
        </svg>
        {channel}
      </span>
      <span class="row-name">
        <bdi>{name ?? key}</bdi>
        {name !== undefined && (
          <span class="soft">
            <bdi>{key}</bdi>
          </span>
        )}
        {problem !== undefined && (
          <span class="problem">{t`Cannot be read as a whole: ${problem}`}</span>
        )}
      </span>
      <span class="soft row-facts">
        <span>
          {isTakenOver && <span class="badge">{t`taken over`}</span>}{' '}
          {messages === 1 ? t`1 message` : t`${messages} messages`}
        </span>
        <Ago at={updatedAt} />
      </span>
    </a>
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
