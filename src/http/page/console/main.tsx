// The views of the console. The address names one; each follows the state of the gateway while it is
// shown.

import type { ReadonlySignal } from '@preact/signals';
import { type ComponentType, render } from 'preact';
import { t } from '/texts.js';
import { Configuration } from './configuration.tsx';
import { Memory } from './memory.tsx';
import { Operations } from './operations.tsx';
import { Page, type PageParts, type ViewProps } from './parts.tsx';
import { People } from './people.tsx';
import { Runs } from './runs.tsx';
import { Schedules } from './schedules.tsx';
import { Sessions } from './sessions.tsx';
import { Setup } from './setup.tsx';
import { Usage } from './usage.tsx';

const VIEWS: Readonly<Record<string, ComponentType<ViewProps>>> = {
  configuration: Configuration,
  memory: Memory,
  operations: Operations,
  people: People,
  runs: Runs,
  schedules: Schedules,
  sessions: Sessions,
  setup: Setup,
  usage: Usage,
};

/** `view` is undefined while a chat is shown: a hidden view follows nothing. */
export function mountConsole(
  parts: PageParts,
  place: HTMLElement,
  view: ReadonlySignal<string | undefined>,
) {
  function Console() {
    const name = view.value;
    if (name === undefined) return null;
    const View = VIEWS[name] ?? Unknown;
    return <View key={name} parts={parts} />;
  }
  render(<Console />, place);
}

function Unknown() {
  return (
    <Page title={t`Page not found`}>
      <p class="empty">
        {t`There is no page at this address.`} <a href="#/chat">{t`Go to the chat`}</a>
      </p>
    </Page>
  );
}
