// The list of chats: titles, the time of the last message, which have news; search, and what can be done
// with one: rename, export, archive.

import { signal, useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { ExportedSession, SearchHits } from '../../../features/conversations/rules/views.ts';
import { useAct } from '../console/parts.tsx';
import { Button, bound, Form, Problem, set } from '../controls.tsx';
import { type Api, IconButton, saveFile, storedObject } from './parts.tsx';

const CHATS = '/api/v1/chats';
const REFRESH_MS = 30_000;
const SEEN_KEY = 'nanobot.seen';
const DAY_MS = 86_400_000;
const MAX_TITLE_CHARS = 60;
/** Fewer letters are in too many messages. */
const MIN_SEARCHED_CHARS = 3;

const timeFormat = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const dayFormat = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });

export type Chat = {
  readonly chat: string;
  readonly title: string;
  readonly updatedAt: number;
  readonly lastSeq: number;
};

type ListApi = Pick<Api, 'getJson' | 'postJson'>;

export function createChatList(api: ListApi, onOpen: () => void) {
  const chats = signal<readonly Chat[]>([]);
  const archived = signal<readonly Chat[] | undefined>(undefined);
  const current = signal<string | undefined>(undefined);
  const seen = signal(storedObject<number>(SEEN_KEY));

  function noteSeen() {
    const known = { ...seen.value };
    for (const { chat, lastSeq } of chats.value) {
      if (chat === current.value || known[chat] === undefined) known[chat] = lastSeq;
    }
    seen.value = known;
    localStorage.setItem(SEEN_KEY, JSON.stringify(known));
  }

  async function refresh() {
    chats.value = ((await api.getJson(CHATS)) as { chats: Chat[] }).chats;
    if (archived.value !== undefined) await showArchived();
    noteSeen();
  }

  async function showArchived() {
    const found = (await api.getJson(`${CHATS}?which=archived`)) as { chats: Chat[] };
    archived.value = found.chats;
  }

  function ChatList() {
    const words = useSignal('');
    /** Undefined while they are searched. */
    const hits = useSignal<SearchHits['hits'] | undefined>([]);
    const typed = words.value.trim();
    const isFound = ({ title }: Chat) => title.toLowerCase().includes(typed.toLowerCase());
    useEffect(() => {
      const isSearched = typed.length >= MIN_SEARCHED_CHARS;
      hits.value = isSearched ? undefined : [];
      if (!isSearched) return;
      let isOver = false;
      void searchTexts(api, typed).then((found) => {
        if (!isOver) hits.value = found;
      });
      return () => {
        isOver = true;
      };
    }, [typed]);
    const found = chats.value.filter(isFound);
    const rows = (list: readonly Chat[], isArchived: boolean) =>
      list.map((one) => (
        <Row
          key={one.chat}
          {...{ api, chat: one, isArchived, refresh, onOpen }}
          isCurrent={one.chat === current.value}
          hasNews={
            one.chat !== current.value && one.lastSeq > (seen.value[one.chat] ?? one.lastSeq)
          }
        />
      ));
    return (
      <>
        <input
          type="search"
          class="chat-search"
          dir="auto"
          autocomplete="off"
          placeholder={t`Search chats`}
          aria-label={t`Search chats`}
          {...bound(words)}
        />
        <ul id="chats" class="chats">
          {rows(found, false)}
        </ul>
        {typed !== '' && found.length + (hits.value?.length ?? 1) === 0 && (
          <p class="chat-none">{t`No matches`}</p>
        )}
        {hits.value !== undefined && hits.value.length > 0 && (
          <>
            <h2 class="chat-heading">{t`In messages`}</h2>
            <ul class="chat-hits">
              {hits.value.map(({ session, at, snippet }) => (
                <li key={`${session} ${at} ${snippet}`}>
                  <a href={`#${chatOf(session)}`} onClick={onOpen}>
                    <bdi>{snippet}</bdi>
                  </a>
                </li>
              ))}
            </ul>
          </>
        )}
        {archived.value === undefined ? (
          <button type="button" class="chat-archive" onClick={showArchived}>
            {t`Archived chats`}
          </button>
        ) : (
          <>
            <h2 class="chat-heading">{t`Archived chats`}</h2>
            {archived.value.length === 0 && <p class="chat-none">{t`None`}</p>}
            <ul class="chats-archived">{rows(archived.value.filter(isFound), true)}</ul>
          </>
        )}
      </>
    );
  }

  return {
    View: ChatList,
    refresh,
    /** Refreshes while the page is visible; an unreachable gateway is asked again later. */
    keepFresh() {
      setInterval(() => {
        if (document.visibilityState === 'visible') refresh().catch(() => undefined);
      }, REFRESH_MS);
    },
    select(chat: string) {
      current.value = chat;
      noteSeen();
    },
    all: () => chats.value,
    find: (chat: string) =>
      [...chats.value, ...(archived.value ?? [])].find((one) => one.chat === chat),
    newest: () => chats.value[0]?.chat,
  };
}

const chatOf = (session: string) => /^web:([^#]+)/.exec(session)?.[1] ?? '';

async function searchTexts(api: ListApi, words: string): Promise<SearchHits['hits']> {
  try {
    const { hits } = (await api.postJson('/api/v1/sessions/search', { words })) as SearchHits;
    return hits.filter(({ session }) => chatOf(session) !== '');
  } catch {
    // The titles are found all the same.
    return [];
  }
}

type RowProps = {
  readonly api: ListApi;
  readonly chat: Chat;
  readonly isCurrent: boolean;
  readonly hasNews: boolean;
  readonly isArchived: boolean;
  refresh(): Promise<void>;
  onOpen(): void;
};

function Row({ api, chat: one, isCurrent, hasNews, isArchived, refresh, onOpen }: RowProps) {
  const { chat, title, updatedAt } = one;
  const shown = useSignal<'row' | 'actions' | 'rename'>('row');
  const { problem, act: tried } = useAct();
  const isOpen = shown.value !== 'row';
  const name = title === '' ? t`Untitled` : title;

  const act = (work: () => Promise<unknown>) =>
    tried(async () => {
      await work();
      shown.value = 'row';
      await refresh();
    });
  const change = (changed: object) => act(() => api.postJson(`${CHATS}/${chat}`, changed));

  return (
    <li
      class={isOpen ? 'opened' : ''}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !isOpen) return;
        event.stopPropagation();
        shown.value = 'row';
      }}
    >
      <div class="chat-row">
        <a
          href={`#${chat}`}
          class={hasNews ? 'news' : ''}
          aria-current={isCurrent ? 'page' : undefined}
          onClick={onOpen}
        >
          <span class="chat-title" dir="auto">
            {name}
          </span>
          <time dateTime={new Date(updatedAt).toISOString()}>{momentText(updatedAt)}</time>
        </a>
        <IconButton
          icon="more"
          label={t`Rename, export or archive ${name}`}
          class="small"
          pressed={isOpen}
          onClick={() => {
            shown.value = isOpen ? 'row' : 'actions';
          }}
        />
      </div>
      {shown.value === 'actions' && (
        <div class="chat-actions">
          <Button text={t`Rename`} onClick={set(shown, 'rename')} />
          <Button text={t`Export`} onClick={() => act(() => exportChat(api, chat))} />
          <Button
            text={isArchived ? t`Bring back` : t`Archive`}
            onClick={() => change({ isArchived: !isArchived })}
          />
        </div>
      )}
      {shown.value === 'rename' && (
        <Rename title={title} onRename={(now) => change({ title: now })} />
      )}
      <Problem text={problem.value} />
    </li>
  );
}

type RenameProps = { readonly title: string; onRename(now: string): Promise<unknown> };

function Rename({ title, onRename }: RenameProps) {
  const field = useRef<HTMLInputElement>(null);
  // Before the next key: what is typed at once belongs to the field.
  useLayoutEffect(() => field.current?.select(), []);
  return (
    <Form
      class="chat-actions"
      submit={() => {
        const now = field.current?.value.trim() ?? '';
        if (now !== '') void onRename(now);
      }}
    >
      <input
        ref={field}
        dir="auto"
        class="chat-name"
        maxLength={MAX_TITLE_CHARS}
        defaultValue={title}
        aria-label={t`New title`}
      />
      <Button text={t`Save`} look="primary" type="submit" />
    </Form>
  );
}

async function exportChat(api: ListApi, chat: string) {
  const path = `/api/v1/sessions/${encodeURIComponent(`web:${chat}`)}/export`;
  const { name, text } = (await api.getJson(path)) as ExportedSession;
  saveFile(name, new Blob([text], { type: 'text/markdown' }));
}

function momentText(at: number): string {
  const isToday = Date.now() - at < DAY_MS && new Date(at).getDate() === new Date().getDate();
  return (isToday ? timeFormat : dayFormat).format(at);
}
