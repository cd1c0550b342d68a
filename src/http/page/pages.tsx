// The entries of the navigation: which one is shown, and which need a person: a channel that stands
// still, somebody who waits for a decision. A phone shows the last entries when asked for more.

import { type ReadonlySignal, signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '/texts.js';
import type { PeopleView } from '../../features/people/rules/views.ts';
import type { SetupState } from '../../features/setup/rules/views.ts';
import { type Api, Icon } from './chat/parts.tsx';

const LOOK_MS = 30_000;

type Entry = {
  readonly icon: string;
  readonly text: string;
  /** The first is its own; the others are tabs beside it. */
  readonly views: readonly [string, ...string[]];
};

const FIRST: readonly Entry[] = [
  { views: ['chat'], icon: 'channels', text: t`Chat` },
  { views: ['sessions'], icon: 'inbox', text: t`Inbox` },
  { views: ['schedules', 'runs'], icon: 'asks', text: t`Schedules` },
  { views: ['memory'], icon: 'memory', text: t`Memory` },
];
const MORE: readonly Entry[] = [
  { views: ['people'], icon: 'people', text: t`People` },
  { views: ['usage'], icon: 'usage', text: t`Usage` },
  { views: ['operations'], icon: 'operations', text: t`Operations` },
  { views: ['setup', 'configuration'], icon: 'setup', text: t`Setup` },
];

export type News = ReturnType<typeof createNews>;

/** What the gateway says of itself to a page that shows something else. */
export function createNews(api: Pick<Api, 'getJson'>) {
  const setup = signal<SetupState | undefined>(undefined);
  /** How many people wait; the view of people knows earlier. */
  const waiting = signal(0);
  let looking: Promise<void> | undefined;

  async function read<T>(path: string, take: (found: T) => void) {
    const found = await api.getJson(path).catch(() => undefined);
    if (found !== undefined) take(found as T);
  }

  /** Who asks meanwhile shares the answer. */
  function lookAtSetup(): Promise<void> {
    looking ??= read<SetupState>('/api/v1/setup', (found) => {
      setup.value = found;
    }).finally(() => {
      looking = undefined;
    });
    return looking;
  }

  const lookAtPeople = () =>
    read<PeopleView>('/api/v1/people', ({ unknownSenders, questions }) => {
      waiting.value = unknownSenders.length + questions.length;
    });

  function look() {
    if (document.visibilityState !== 'visible') return;
    void lookAtSetup();
    void lookAtPeople();
  }

  return {
    ...{ setup, waiting, lookAtSetup },
    /** Looks now and then while the page is visible. */
    follow() {
      void lookAtPeople();
      setInterval(look, LOOK_MS);
      window.addEventListener('hashchange', lookAtSetup);
      document.addEventListener('visibilitychange', look);
    },
  };
}

type PagesProps = { readonly view: ReadonlySignal<string | undefined>; readonly news: News };

export function Pages({ view, news }: PagesProps) {
  const more = useRef<HTMLDivElement>(null);
  const shown = view.value ?? 'chat';
  useLayoutEffect(() => more.current?.hidePopover(), [shown]);
  const stopped = news.setup.value?.channels.filter(({ state }) => state === 'stopped') ?? [];
  const names = stopped.map(({ label }) => label).join(', ');
  const waiting = news.waiting.value;
  const entry = ({ views, icon, text }: Entry) => {
    const [name] = views;
    const isTroubled = name === 'setup' && names !== '';
    const isAwaited = name === 'people' && waiting > 0;
    return (
      <a
        key={name}
        href={`#/${name}`}
        class={isTroubled || isAwaited ? 'news' : undefined}
        aria-current={views.includes(shown) ? 'page' : undefined}
        aria-label={isAwaited ? t`People: ${waiting} waiting for you` : undefined}
      >
        <Icon name={icon} />
        <span>{text}</span>
        {isTroubled && <span class="unseen">{t`: ${names} needs attention`}</span>}
      </a>
    );
  };
  return (
    <>
      {FIRST.map(entry)}
      <div id="more-pages" popover="auto" ref={more}>
        {MORE.map(entry)}
      </div>
      <button type="button" id="more" popovertarget="more-pages">
        <Icon name="menu" />
        <span>{t`More`}</span>
      </button>
    </>
  );
}
