// Which page the address names: `#/schedules` is a view of the console, all else a chat. The code of
// the console is loaded with its first view. An entry of the navigation names its views: a view and the
// tabs beside it. A phone shows the last entries when asked for more.

import { t } from '/texts.js';
import type { WholeApi } from './api.ts';
import { followStream } from './connection.ts';
import { firstAsked } from './console/first-asked.ts';
import type { mountConsole } from './console/main.tsx';
import type { PageParts } from './console/parts.tsx';
import { element } from './element.ts';
import { readEvents } from './event-reader.ts';
import { loadOnUse } from './new-version.ts';

const VIEW = /^#\/(?!chat$)([a-z]+)/;
const CLASS = 'in-console';

const loadConsole = () => import('./console/main.tsx');

/** Asks for the code and the data of the view in the address at once. */
export function beginView({ begin }: Pick<WholeApi, 'begin'>): void {
  const view = namedView();
  if (view === undefined) return;
  loadConsole().catch(() => undefined);
  if (location.hash === `#/${view}`) firstAsked(view).forEach(begin);
}

/** The view in the address. */
export const namedView = () => VIEW.exec(location.hash)?.[1];

/** Whether a view of the console is shown. */
export const isElsewhere = () => document.body.classList.contains(CLASS);

/** What a view of the console needs of the page. */
export const pageParts = (api: PageParts['api']): PageParts => ({
  api,
  follow: followStream,
  readEvents,
  loadMarkdown: async () => (await loadOnUse(() => import('./chat/markdown.tsx'))).Markdown,
});

export function createRouter(parts: PageParts, place: HTMLElement) {
  let shown: ReturnType<typeof mountConsole> | undefined;

  /** Shows the view in the address, if there is one. */
  function show(): void {
    const view = namedView();
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
  }

  async function load(view: string): Promise<void> {
    try {
      const console = await loadOnUse(loadConsole);
      shown ??= console.mountConsole(parts, place);
      if (namedView() === view) shown.showView(view);
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

  return { show };
}
