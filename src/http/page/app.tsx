// The page: logs in and shows what the address names: a view of the console, or the chats. The code of
// each is loaded when it is first shown. Behind a view the chats begin a moment later: they have the
// unsent messages and the list of places.

import { render } from 'preact';
import { t } from '/texts.js';
import { createApi } from './api.ts';
import type { Chats } from './chat/chats.tsx';
import { byId } from './chat/parts.tsx';
import { takeCode } from './login.tsx';
import { loadOnUse } from './new-version.ts';
import { createNews, Pages } from './pages.tsx';
import { beginView, createRouter, NotLoaded, namedView } from './router.tsx';

/** After the first data of a view. */
const LATER_MS = 1000;

const loadCode = () => import('./chat/chats.tsx');

async function start() {
  const api = createApi();
  const news = createNews(api);
  const parts = { api, waiting: news.waiting };
  const { view, show } = createRouter(parts, byId('console'));
  let beginning: Promise<Chats> | undefined;

  /** Begins the chats once. */
  function begin(): Promise<Chats> {
    beginning ??= loadOnUse(loadCode).then(({ createChats }) => {
      const chats = createChats({ parts, news, view });
      void chats.start();
      return chats;
    });
    return beginning;
  }

  const showNotLoaded = () => render(<NotLoaded />, byId('talk'));
  const withChats = (work: (chats: Chats) => void) => void begin().then(work, showNotLoaded);

  /** Logs in by the link that opened the page, if there was one. */
  async function logIn() {
    const code = takeCode();
    const problem = code === undefined ? undefined : await api.logIn(code);
    if (problem !== undefined) withChats(({ tell }) => tell(t`You are logged in. ${problem}`));
  }

  beginView(api);
  render(<Pages view={view} news={news} />, byId('pages'));
  if (namedView() === undefined) loadCode().catch(() => undefined);
  await logIn();
  show();
  if (view.value === undefined) withChats(() => undefined);
  window.addEventListener('hashchange', async () => {
    await logIn();
    show();
    if (view.value === undefined || beginning !== undefined)
      withChats(({ followAddress }) => followAddress());
  });
  document.addEventListener('keydown', (event) => {
    const isWanted = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
    if (!isWanted || event.key.toLowerCase() !== 'k') return;
    event.preventDefault();
    withChats(({ togglePalette }) => togglePalette());
  });
  setTimeout(() => {
    // Nobody waits for it: a gateway that is away must not take the page from under someone's hands.
    loadCode()
      .then(begin)
      .catch(() => undefined);
    news.follow();
  }, LATER_MS);
}

void start();
