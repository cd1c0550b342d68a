// Which page the address names: `#/schedules` is a view of the console, all else a chat. The code of
// the console is loaded with its first view. An entry of the navigation names its views: a view and the
// tabs beside it. A phone shows the last entries when asked for more.

import { t } from '/texts.js';
import { followStream } from './connection.ts';
import type { mountConsole } from './console/main.tsx';
import type { PageParts } from './console/parts.tsx';
import { element } from './element.ts';
import { readEvents } from './event-reader.ts';
import { createMarkdownView } from './markdown-view.ts';

const VIEW = /^#\/(?!chat$)([a-z]+)/;
const CLASS = 'in-console';

// Where the address names a view already, its code is fetched while the page logs in.
if (VIEW.test(location.hash)) import('./console/main.tsx').catch(() => undefined);

const drawMarkdown = (container: HTMLElement, text: string) =>
  createMarkdownView(container).finish(text);

/** What a view of the console needs of the page. */
export const pageParts = (api: PageParts['api']): PageParts => ({
  api,
  follow: followStream,
  readEvents,
  drawMarkdown,
});

export function createRouter(parts: PageParts, place: HTMLElement) {
  let shown: ReturnType<typeof mountConsole> | undefined;

  /** Shows the view in the address; returns whether there is one. */
  function show(): boolean {
    const view = VIEW.exec(location.hash)?.[1];
    document.body.classList.toggle(CLASS, view !== undefined);
    place.hidden = view === undefined;
    for (const link of document.querySelectorAll<HTMLAnchorElement>('#pages a')) {
      const isShown = (link.dataset['page'] ?? '').split(' ').includes(view ?? 'chat');
      if (isShown) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    document.getElementById('more-pages')?.hidePopover();
    // A hidden view follows nothing.
    if (view === undefined) shown?.showView(undefined);
    else void load(view);
    return view !== undefined;
  }

  async function load(view: string): Promise<void> {
    try {
      const console = await import('./console/main.tsx');
      shown ??= console.mountConsole(parts, place);
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
