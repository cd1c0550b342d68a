// The list of chats: titles, the time of the last message, which have news.

import { element } from './element.js';
import { t } from './texts.js';

const REFRESH_MS = 30_000;
const SEEN_KEY = 'nanobot.seen';
const DAY_MS = 86_400_000;

const timeFormat = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const dayFormat = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });

export function createChatList(api, list, { onOpen }) {
  let chats = [];
  let current;
  const seen = readSeen();

  function draw() {
    list.replaceChildren(...chats.map(entry));
  }

  function entry({ chat, title, updatedAt, lastSeq }) {
    const isCurrent = chat === current;
    const hasNews = !isCurrent && lastSeq > (seen[chat] ?? lastSeq);
    const link = element(
      'a',
      { href: `#${chat}`, className: hasNews ? 'news' : '', on: { click: onOpen } },
      element('span', { className: 'chat-title', dir: 'auto' }, title === '' ? t`Untitled` : title),
      element('time', { dateTime: new Date(updatedAt).toISOString() }, momentText(updatedAt)),
    );
    if (isCurrent) link.setAttribute('aria-current', 'page');
    return element('li', {}, link);
  }

  function noteSeen() {
    for (const { chat, lastSeq } of chats) {
      if (chat === current || seen[chat] === undefined) seen[chat] = lastSeq;
    }
    localStorage.setItem(SEEN_KEY, JSON.stringify(seen));
  }

  async function refresh() {
    chats = (await api.getJson('/api/web/chats')).chats;
    noteSeen();
    draw();
  }

  return {
    refresh,
    /** Refreshes while the page is visible; an unreachable gateway is asked again later. */
    keepFresh() {
      setInterval(() => {
        if (document.visibilityState === 'visible') refresh().catch(() => undefined);
      }, REFRESH_MS);
    },
    select(chat) {
      current = chat;
      noteSeen();
      draw();
    },
    find: (chat) => chats.find((one) => one.chat === chat),
    newest: () => chats[0],
  };
}

function momentText(at) {
  const isToday = Date.now() - at < DAY_MS && new Date(at).getDate() === new Date().getDate();
  return (isToday ? timeFormat : dayFormat).format(at);
}

function readSeen() {
  try {
    const stored = JSON.parse(localStorage.getItem(SEEN_KEY) ?? '{}');
    return typeof stored === 'object' && stored !== null ? stored : {};
  } catch {
    return {};
  }
}
