// The chats: opens the one that the address names, and connects its parts. All state is on the gateway
// except unsent messages, which the outbox keeps.

import { computed, signal } from '@preact/signals';
import { render } from 'preact';
import { t } from '/texts.js';
import type { SetupState } from '../../../features/setup/rules/views.ts';
import { chatPath, RefusedError, type WholeApi } from '../api.ts';
import { followChat } from '../connection.ts';
import type { PageParts } from '../console/parts.tsx';
import { createDrawer } from '../drawer.ts';
import { byId, element, iconButton } from '../element.ts';
import { type Also, createOutbox, type Unsent } from '../outbox.ts';
import { isElsewhere } from '../router.ts';
import { createChatList } from './chat-list.tsx';
import { createComposer } from './composer.tsx';
import { type Conversation, ConversationView, createConversation } from './conversation.tsx';
import type { Amendment } from './events.ts';
import { createPalette } from './palette.tsx';
import { reasonOf } from './parts.tsx';
import { createScrollKeeper } from './scroll.ts';
import { createTurns } from './tool-steps.tsx';
import { Welcome } from './welcome.tsx';

/** Messages of a long chat shown at first, and added at a time. */
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

/** Begins when a chat is first shown, or a moment after another view. */
export class Chats {
  readonly #api: WholeApi;
  readonly #place = createScrollKeeper({
    scroller: byId('scroll'),
    content: byId('conversation'),
    toEnd: byId('to-end'),
  });
  readonly #drawer = createDrawer();
  readonly #turns: ReturnType<typeof createTurns>;
  readonly #list: ReturnType<typeof createChatList>;
  readonly #outbox: ReturnType<typeof createOutbox>;
  readonly #parts: PageParts;
  readonly #composer: ReturnType<typeof createComposer>;
  readonly #palette: ReturnType<typeof createPalette>;
  readonly #model = signal<string | undefined>(undefined);
  readonly #isShown = signal(false);
  readonly #open = signal<Opened | undefined>(undefined);
  readonly #isAnswering = computed(() => this.#open.value?.conversation.isAnswering.value ?? false);
  #lostTimer: ReturnType<typeof setTimeout> | undefined;
  #refreshTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(api: WholeApi, parts: PageParts) {
    this.#api = api;
    this.#parts = parts;
    this.#turns = createTurns(api);
    this.#list = createChatList(api, byId('chat-list'), {
      onOpen: () => this.#drawer.close(),
      onChange: () => this.#showTitle(),
    });
    this.#outbox = createOutbox(api, {
      onWaiting: (message, reason) => this.#shown(message)?.stillUnsent(message, reason),
      onRefused: (message, reason) => this.#shown(message)?.refused(message, reason),
    });
    this.#composer = createComposer(api, byId('composer'), {
      onSend: (text, files) => this.#send(text, files === undefined ? {} : { files }),
      onStop: () => this.#stop(),
      isAnswering: this.#isAnswering,
    });
    const Shown = () => this.#shownChat();
    render(<Shown />, byId('conversation'));
    this.#palette = createPalette({
      api,
      chats: () => this.#list.all(),
      onNew: () => this.#openNew(),
      onCommand: (text) => this.#write(text),
    });
    byId('new-place').append(
      iconButton('plus', t`New chat`, () => this.#openNew(), 'new-chat-icon'),
    );
    byId('new-chat').addEventListener('click', () => this.#openNew());
    byId('skip').addEventListener('click', () => this.#composer.focus());
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && !event.isComposing) this.#escape();
    });
    document.addEventListener('visibilitychange', () => this.#showTitle());
  }

  async start() {
    await this.#list.refresh().catch(() => undefined);
    this.#outbox.resume();
    this.followAddress();
    this.#list.keepFresh();
    await this.#showModel();
  }

  tell(problem: string) {
    this.#composer.tell(problem);
  }

  /** Opens the list of places to jump to, or closes it. */
  togglePalette() {
    this.#palette.toggle();
  }

  /** The chat in the address, else the latest of this tab, else the newest one, else a new one; none beside a view of the console. */
  followAddress() {
    this.#isShown.value = !isElsewhere();
    if (isElsewhere()) return;
    const named = decodeURIComponent(location.hash.slice(1));
    if (named === this.#open.value?.chat) return this.#showTitle();
    if (named === '/chat' && this.#open.value !== undefined) {
      history.replaceState(undefined, '', `#${this.#open.value.chat}`);
      return this.#showTitle();
    }
    if (CHAT_NAME.test(named)) return this.#openChat(named);
    const latest = named === '/chat' ? sessionStorage.getItem(LATEST) : null;
    if (latest !== null && CHAT_NAME.test(latest)) return this.#openChat(latest);
    const newest = this.#list.newest();
    if (newest === undefined) this.#openNew();
    else this.#openChat(newest.chat);
  }

  #openNew() {
    const random = crypto.getRandomValues(new Uint32Array(2));
    this.#openChat(`c${Date.now().toString(36)}-${random.join('')}`);
  }

  #openChat(chat: string, fromSeq?: number): void {
    this.#open.value?.controller.abort();
    const lastSeq = this.#list.find(chat)?.lastSeq ?? 0;
    const afterSeq = fromSeq ?? Math.max(0, lastSeq - SHOWN_MESSAGES);
    const controller = new AbortController();
    const conversation = createConversation({
      loadFile: this.#api.download,
      turns: this.#turns,
      onTakeBack: (text) => this.#composer.takeBack(text),
      onPress: (label, press) => this.#send(label, { press }),
      onChange: (amends, text) => this.#change(text, amends),
    });
    const opened = { chat, controller, conversation, afterSeq, hasHistory: lastSeq > 0 };
    this.#open.value = opened;
    sessionStorage.setItem(LATEST, chat);
    // An address that names no chat leads back here: it must not stay in the history.
    if (['', '#/chat'].includes(location.hash)) history.replaceState(undefined, '', `#${chat}`);
    else if (location.hash !== `#${chat}`) history.pushState(undefined, '', `#${chat}`);
    for (const message of this.#outbox.waiting(chat)) conversation.addUnsent(message);
    this.#list.select(chat);
    this.#showTitle();
    this.#place.scrollToEnd();
    this.#drawer.close();
    this.#composer.openChat(chat);
    this.#composer.focus();
    void this.#follow(opened);
  }

  #shownChat() {
    const opened = this.#open.value;
    if (opened === undefined) return null;
    const { chat, conversation, afterSeq, hasHistory } = opened;
    return (
      <>
        {afterSeq > 0 && (
          <button
            type="button"
            class="earlier"
            onClick={() => this.#openChat(chat, Math.max(0, afterSeq - SHOWN_MESSAGES))}
          >
            {t`Show earlier messages`}
          </button>
        )}
        <ConversationView key={`${chat} ${afterSeq}`} conversation={conversation} />
        {this.#isShown.value && (
          <Welcome
            key={chat}
            parts={this.#parts}
            model={this.#model.value}
            isEmpty={!hasHistory && conversation.isEmpty.value}
            onTry={(text) => this.#send(text)}
            onConnected={() => {
              this.#composer.focus();
              void this.#showModel();
            }}
          />
        )}
      </>
    );
  }

  async #follow({ chat, controller, conversation, afterSeq }: Opened): Promise<void> {
    await followChat(this.#api, chat, afterSeq, {
      signal: controller.signal,
      onConnected: () => {
        this.#showLost(undefined);
        conversation.connected();
        void this.#showModel();
      },
      onLost: (problem) => this.#showLost(lostText(problem)),
      onEvent: (event) => {
        conversation.show(event);
        this.#place.noteNews();
        if (event.type === 'said') this.#noteSaid();
      },
    });
  }

  #noteSaid() {
    if (document.visibilityState === 'hidden') document.title = `● ${byId('title').textContent}`;
    clearTimeout(this.#refreshTimer);
    this.#refreshTimer = setTimeout(async () => {
      await this.#list.refresh().catch(() => undefined);
      this.#showTitle();
    }, REFRESH_DELAY_MS);
  }

  #send(text: string, also: Also = {}): void {
    if (this.#open.value === undefined) return;
    const { chat, conversation } = this.#open.value;
    const message = this.#outbox.send(chat, text, also);
    conversation.addUnsent(message);
    this.#place.scrollToEnd();
  }

  /** Puts a command into the message field of the chat. */
  #write(text: string): void {
    if (isElsewhere()) location.hash = '#/chat';
    this.#composer.takeBack(text);
  }

  #change(text: string, amends: Amendment): void {
    if (this.#open.value === undefined) return;
    const { chat, conversation } = this.#open.value;
    conversation.addUnsent(this.#outbox.send(chat, text, { amends }));
    this.#composer.focus();
  }

  async #stop() {
    if (this.#open.value === undefined) return;
    try {
      await this.#api.postJson(`${chatPath(this.#open.value.chat)}/stop`, {});
    } catch (error) {
      this.#composer.tell(t`The answer could not be stopped: ${reasonOf(error)}`);
    }
  }

  #escape() {
    if (this.#drawer.isOpen()) return this.#drawer.close();
    if (this.#isAnswering.value && document.querySelector('dialog[open]') === null)
      void this.#stop();
  }

  #shown({ chat }: Unsent): Conversation | undefined {
    return chat === this.#open.value?.chat ? this.#open.value.conversation : undefined;
  }

  #showTitle() {
    if (isElsewhere()) return;
    const title = this.#list.find(this.#open.value?.chat ?? '')?.title || t`New chat`;
    byId('title').textContent = title;
    if (document.visibilityState === 'visible') document.title = `${title} – nanobot`;
  }

  #showLost(text: string | undefined): void {
    clearTimeout(this.#lostTimer);
    const notice = byId('connection');
    notice.hidden = true;
    if (text === undefined) return;
    this.#lostTimer = setTimeout(() => {
      notice.textContent = text;
      notice.hidden = false;
    }, LOST_NOTICE_MS);
  }

  async #showModel() {
    const setup = (await this.#api.getJson('/api/v1/setup').catch(() => undefined)) as
      | SetupState
      | undefined;
    if (setup === undefined || setup.model.name === this.#model.value) return;
    this.#model.value = setup.model.name;
    byId('model-line').replaceChildren('Model ', element('b', {}, this.#model.value));
  }
}

function lostText(problem: unknown): string {
  if (problem instanceof RefusedError) return problem.message;
  return t`Connection lost, reconnecting…`;
}
