// Which page the address names: `#/schedules` is a view of the console, all else a chat. The code of
// the console is loaded with its first view. An entry of the navigation names its views: a view and the
// tabs beside it. A phone shows the last entries when asked for more.

import { followStream } from './connection.js';
import { element } from './element.ts';
import { readEvents } from './event-reader.ts';
import { createMarkdownView } from './markdown-view.ts';
import { t } from './texts.js';

const VIEW = /^#\/(?!chat$)([a-z]+)/;
const CLASS = 'in-console';

// Where the address names a view already, its code is fetched while the page logs in.
if (VIEW.test(location.hash)) import('./console/main.tsx').catch(() => undefined);

const drawMarkdown = (container, text) => createMarkdownView(container).finish(text);

/** What a view of the console needs of the page. */
export const pageParts = (api) => ({ api, follow: followStream, readEvents, drawMarkdown });

export function createRouter(parts, place) {
  let shown;

  /** Shows the view in the address; returns whether there is one. */
  function show() {
    const view = VIEW.exec(location.hash)?.[1];
    document.body.classList.toggle(CLASS, view !== undefined);
    place.hidden = view === undefined;
    for (const link of document.querySelectorAll('#pages a')) {
      const isShown = link.dataset.page.split(' ').includes(view ?? 'chat');
      if (isShown) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    document.getElementById('more-pages').hidePopover();
    // A hidden view follows nothing.
    if (view === undefined) shown?.showView(undefined);
    else load(view);
    return view !== undefined;
  }

  async function load(view) {
    try {
      const { mountConsole } = await import('./console/main.tsx');
      shown ??= mountConsole(parts, place);
      if (VIEW.exec(location.hash)?.[1] === view) shown.showView(view);
    } catch {
      place.replaceChildren(
        element(
          'p',
          { className: 'notice', role: 'alert' },
          t`This page could not be loaded. Reload it.`,
        ),
      );
    }
  }

  return { show, isElsewhere: () => document.body.classList.contains(CLASS) };
}
