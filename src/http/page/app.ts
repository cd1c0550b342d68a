// The page: logs in and shows what the address names: a view of the console, or the chats. The code of
// each is loaded when it is first shown. Behind a view the chats begin a moment later: they have the
// unsent messages and the list of places.

import { t } from '/texts.js';
import { createApi } from './api.ts';
import { watchChannels } from './channel-notice.ts';
import type { Chats } from './chat/chats.tsx';
import { byId, element } from './element.ts';
import { takeCode } from './login.ts';
import { loadOnUse } from './new-version.ts';
import { followWaiting } from './people-news.ts';
import { beginView, createRouter, namedView, pageParts } from './router.ts';

/** After the first data of a view. */
const LATER_MS = 1000;

const loadCode = () => import('./chat/chats.tsx');

class App {
  #api = createApi();
  #parts = pageParts(this.#api);
  #router = createRouter(this.#parts, byId('console'));
  #beginning: Promise<Chats> | undefined;
  #chats: Chats | undefined;

  async start() {
    beginView(this.#api);
    if (namedView() === undefined) loadCode().catch(() => undefined);
    await this.#logIn();
    this.#show();
    window.addEventListener('hashchange', async () => {
      await this.#logIn();
      this.#show();
    });
    document.addEventListener('keydown', (event) => {
      const isWanted = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
      if (!isWanted || event.key.toLowerCase() !== 'k') return;
      event.preventDefault();
      // What is typed at once belongs to the field.
      if (this.#chats !== undefined) this.#chats.togglePalette();
      else this.#begin().then((chats) => chats.togglePalette(), showNotLoaded);
    });
    setTimeout(() => {
      followWaiting(this.#api);
      watchChannels(this.#api);
      void this.#begin().catch(() => undefined);
    }, LATER_MS);
  }

  #show() {
    this.#router.show();
    if (this.#chats !== undefined) return this.#chats.followAddress();
    if (namedView() === undefined) this.#begin().catch(showNotLoaded);
  }

  /** Logs in by the link that opened the page, if there was one. */
  async #logIn() {
    const code = takeCode();
    const problem = code === undefined ? undefined : await this.#api.logIn(code);
    if (problem === undefined) return;
    this.#begin().then((chats) => chats.tell(t`You are logged in. ${problem}`), showNotLoaded);
  }

  /** Begins the chats once. */
  #begin(): Promise<Chats> {
    this.#beginning ??= loadOnUse(loadCode).then(({ Chats }) => {
      this.#chats = new Chats(this.#api, this.#parts);
      void this.#chats.start();
      return this.#chats;
    });
    return this.#beginning;
  }
}

function showNotLoaded() {
  const text = t`This page could not be loaded. Reload it.`;
  byId('conversation').replaceChildren(element('p', { className: 'notice', role: 'alert' }, text));
}

void new App().start();
