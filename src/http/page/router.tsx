// Which page the address names: `#/schedules` is a view of the console, all else a chat. The code of
// the console is loaded with its first view.

import { type ReadonlySignal, signal } from '@preact/signals';
import { render } from 'preact';
import { t } from '/texts.js';
import type { WholeApi } from './api.ts';
import { firstAsked } from './console/first-asked.ts';
import type { PageParts } from './console/parts.tsx';
import { loadOnUse } from './new-version.ts';

const VIEW = /^#\/(?!chat$)([a-z]+)/;

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

export function createRouter(parts: PageParts, place: HTMLElement) {
  const view = signal(namedView());
  let isMounted = false;

  async function load(): Promise<void> {
    try {
      const { mountConsole } = await loadOnUse(loadConsole);
      if (!isMounted) mountConsole(parts, place, view);
      isMounted = true;
    } catch {
      render(<NotLoaded />, place);
    }
  }

  return {
    /** The view of the console that is shown; undefined for a chat. */
    view: view as ReadonlySignal<string | undefined>,
    /** Shows the view in the address, if there is one. */
    show() {
      const named = namedView();
      document.body.classList.toggle('in-console', named !== undefined);
      place.hidden = named === undefined;
      view.value = named;
      if (named !== undefined && !isMounted) void load();
    },
  };
}

export const NotLoaded = () => (
  <p class="notice" role="alert">
    {t`This page could not be loaded. Reload it.`}
  </p>
);
