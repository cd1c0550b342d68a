// The chats: opens the one that the address names, and connects its parts. All state is on the gateway
// except unsent messages, which the outbox keeps.

import { computed, effect, type ReadonlySignal, signal } from '@preact/signals';
import { render } from 'preact';
import { useLayoutEffect } from 'preact/hooks';
import { t } from '/texts.js';
import { chatPath } from '../api.ts';
import { followChat, lostText } from '../connection.ts';
import type { PageParts } from '../console/parts.tsx';
import { type Also, createOutbox } from '../outbox.ts';
import type { News } from '../pages.tsx';
import { createChatList } from './chat-list.tsx';
import { createComposer } from './composer.tsx';
import { type Conversation, ConversationView, createConversation } from './conversation.tsx';
import type { Amendment } from './events.ts';
import { createPalette } from './palette.tsx';
import { byId, IconButton, reasonOf } from './parts.tsx';
import { createScrollKeeper } from './scroll.ts';
import { createTurns } from './tool-steps.tsx';
import { Welcome } from './welcome.tsx';

/** Messages of a long chat shown at first, and added at a time. */
const BRAND = 'nanobot';
const SHOWN_MESSAGES = 200;
/** A connection restored within this time is not reported. */
const LOST_NOTICE_MS = 800;
/** Messages within this time refresh the list once. */
const REFRESH_DELAY_MS = 200;
/** The chat that was open last in this tab: also a new one, whose draft is kept. */
const LATEST = 'nanobot.chat';
const CHAT_NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/;

type Opened = {
  readonly chat: string;
  readonly controller: AbortController;
  readonly conversation: Conversation;
  /** What is older is not shown. */
  readonly afterSeq: number;
  readonly hasHistory: boolean;
};

type ChatsParts = {
  readonly parts: PageParts;
  readonly news: News;
  /** The view of the console that is shown instead. */
  readonly view: ReadonlySignal<string | undefined>;
};

export type Chats = ReturnType<typeof createChats>;

/** Begins when a chat is first shown, or a moment after another view. */
export function createChats({ parts, news, view }: ChatsParts) {
  const { api } = parts;
  const open = signal<Opened | undefined>(undefined);
  const lost = signal('');
  const isDrawerOpen = signal(false);
  /** Something was said while the page was hidden. */
  const hasUnseen = signal(false);
  const model = computed(() => news.setup.value?.model.name);
  const isAnswering = computed(() => open.value?.conversation.isAnswering.value ?? false);
  const title = computed(() => list.find(open.value?.chat ?? '')?.title || t`New chat`);
  const turns = createTurns(api);
  const place = createScrollKeeper();
  const list = createChatList(api, () => setDrawer(false));
  const outbox = createOutbox(api, (message, reason) => {
    if (message.chat === open.value?.chat) open.value.conversation.stillUnsent(message, reason);
  });
  const composer = createComposer(api, {
    onSend: (text, files) => send(text, files === undefined ? {} : { files }),
    onStop: stop,
    isAnswering,
  });
  const palette = createPalette({
    api,
    chats: list.all,
    onNew: openNew,
    /** Puts a command into the message field of the chat. */
    onCommand(text) {
      if (view.value !== undefined) location.hash = '#/chat';
      composer.takeBack({ text });
    },
  });
  let isListed = false;
  let lostTimer: ReturnType<typeof setTimeout> | undefined;
  let refreshTimer: ReturnType<typeof setTimeout> | undefined;

  /** The chat in the address, else the latest of this tab, else the newest one, else a new one; none beside a view of the console. */
  function followAddress(): void {
    if (view.value !== undefined || !isListed) return;
    const named = decodeURIComponent(location.hash.slice(1));
    if (named === open.value?.chat) return;
    if (named === '/chat' && open.value !== undefined) {
      history.replaceState(undefined, '', `#${open.value.chat}`);
      return;
    }
    const latest = named === '/chat' ? sessionStorage.getItem(LATEST) : null;
    const wanted = [named, latest ?? ''].find((chat) => CHAT_NAME.test(chat)) ?? list.newest();
    if (wanted === undefined) openNew();
    else openChat(wanted);
  }

  function openNew() {
    const random = crypto.getRandomValues(new Uint32Array(2));
    openChat(`c${Date.now().toString(36)}-${random.join('')}`);
  }

  function openChat(chat: string, fromSeq?: number) {
    open.value?.controller.abort();
    const lastSeq = list.find(chat)?.lastSeq ?? 0;
    const conversation = createConversation({
      loadFile: api.download,
      turns,
      onTakeBack(message) {
        outbox.forget(message);
        composer.takeBack(message);
      },
      onPress: (label, press) => send(label, { press }),
      onChange: change,
    });
    for (const message of outbox.waiting(chat)) conversation.addUnsent(message);
    const opened = {
      ...{ chat, conversation, controller: new AbortController(), hasHistory: lastSeq > 0 },
      afterSeq: fromSeq ?? Math.max(0, lastSeq - SHOWN_MESSAGES),
    };
    open.value = opened;
    sessionStorage.setItem(LATEST, chat);
    // An address that names no chat leads back here: it must not stay in the history.
    if (['', '#/chat'].includes(location.hash)) history.replaceState(undefined, '', `#${chat}`);
    else if (location.hash !== `#${chat}`) history.pushState(undefined, '', `#${chat}`);
    list.select(chat);
    place.scrollToEnd();
    setDrawer(false);
    composer.openChat(chat);
    composer.focus();
    void follow(opened);
  }

  async function follow({ chat, controller, conversation, afterSeq }: Opened) {
    let connections = 0;
    await followChat(api, chat, afterSeq, {
      signal: controller.signal,
      onConnected() {
        showLost('');
        conversation.connected();
        connections += 1;
        // A gateway that was away may have another model.
        if (connections > 1) void news.lookAtSetup();
      },
      onLost: (problem) => showLost(lostText(problem)),
      onEvent(event) {
        conversation.show(event);
        place.noteNews();
        if (event.type === 'said') noteSaid();
      },
    });
  }

  function noteSaid() {
    hasUnseen.value = document.visibilityState === 'hidden';
    clearTimeout(refreshTimer);
    refreshTimer = setTimeout(() => list.refresh().catch(() => undefined), REFRESH_DELAY_MS);
  }

  function showLost(text: string) {
    clearTimeout(lostTimer);
    lost.value = '';
    if (text === '') return;
    lostTimer = setTimeout(() => {
      lost.value = text;
    }, LOST_NOTICE_MS);
  }

  function send(text: string, also: Also = {}) {
    if (open.value === undefined) return;
    const { chat, conversation } = open.value;
    conversation.addUnsent(outbox.send(chat, text, also));
    if (also.amends === undefined) place.scrollToEnd();
  }

  function change(amends: Amendment, text: string) {
    send(text, { amends });
    composer.focus();
  }

  async function stop() {
    if (open.value === undefined) return;
    try {
      await api.postJson(`${chatPath(open.value.chat)}/stop`, {});
    } catch (error) {
      composer.tell(t`The answer could not be stopped: ${reasonOf(error)}`);
    }
  }

  /** The list of chats on a narrow screen is a drawer over the conversation. */
  function setDrawer(isOpen: boolean) {
    isDrawerOpen.value = isOpen;
    document.body.classList.toggle('drawer-open', isOpen);
    if (isOpen) document.getElementById('new-chat')?.focus();
  }

  function Sidebar() {
    return (
      <>
        <div class="brand">
          <img src="/logo.svg" alt="" width={28} height={28} />
          <span>{BRAND}</span>
        </div>
        <button type="button" class="new-chat" id="new-chat" onClick={openNew}>
          {t`New chat`}
        </button>
        <nav aria-label={t`Chats`} id="chat-list">
          <list.View />
        </nav>
        <footer id="model-line">
          {model.value !== undefined && (
            <>
              {t`Model`} <b>{model.value}</b>
            </>
          )}
        </footer>
      </>
    );
  }

  function Talk() {
    useLayoutEffect(place.begin, []);
    return (
      <>
        <header>
          <IconButton
            icon="menu"
            label={t`Chats`}
            class="menu"
            controls="sidebar"
            expanded={isDrawerOpen.value}
            onClick={() => setDrawer(!isDrawerOpen.value)}
          />
          <h1 id="title" dir="auto">
            {title.value}
          </h1>
          <IconButton icon="plus" label={t`New chat`} class="new-chat-icon" onClick={openNew} />
        </header>
        <p id="connection" role="status" hidden={lost.value === ''}>
          {lost.value}
        </p>
        <div id="scroll" tabIndex={-1} ref={place.scroller}>
          <div id="conversation" ref={place.content}>
            {open.value !== undefined && <OpenedChat {...open.value} />}
          </div>
        </div>
        <button type="button" id="to-end" hidden={!place.hasNews.value} onClick={place.scrollToEnd}>
          {t`New messages below`}
        </button>
        <composer.View />
      </>
    );
  }

  function OpenedChat({ chat, conversation, afterSeq, hasHistory }: Opened) {
    return (
      <>
        {afterSeq > 0 && (
          <button
            type="button"
            class="earlier"
            onClick={() => openChat(chat, Math.max(0, afterSeq - SHOWN_MESSAGES))}
          >
            {t`Show earlier messages`}
          </button>
        )}
        <ConversationView key={`${chat} ${afterSeq}`} conversation={conversation} />
        {view.value === undefined && (
          <Welcome
            key={chat}
            parts={parts}
            model={model.value}
            isEmpty={!hasHistory && conversation.isEmpty.value}
            onTry={send}
            onConnected={() => {
              composer.focus();
              void news.lookAtSetup();
            }}
          />
        )}
      </>
    );
  }

  render(<Sidebar />, byId('sidebar'));
  render(<Talk />, byId('talk'));
  effect(() => {
    if (view.value === undefined)
      document.title = hasUnseen.value ? `● ${title.value}` : `${title.value} – nanobot`;
  });
  byId('skip').addEventListener('click', composer.focus);
  byId('backdrop').addEventListener('click', () => setDrawer(false));
  document.addEventListener('visibilitychange', () => {
    hasUnseen.value = false;
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.isComposing) return;
    if (isDrawerOpen.value) setDrawer(false);
    else if (isAnswering.value && document.querySelector('dialog[open]') === null) void stop();
  });

  return {
    async start() {
      void news.lookAtSetup();
      await list.refresh().catch(() => undefined);
      isListed = true;
      outbox.resume();
      followAddress();
      list.keepFresh();
    },
    followAddress,
    tell: composer.tell,
    /** Opens the list of places to jump to, or closes it. */
    togglePalette: palette.toggle,
  };
}
