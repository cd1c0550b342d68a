// Marks the entry of people in the navigation while somebody waits for a decision.

import { t } from '/texts.js';
import type { Api } from './chat/parts.tsx';

const LOOK_MS = 30_000;

type Waiting = {
  readonly unknownSenders: readonly unknown[];
  readonly questions: readonly unknown[];
};

export function followWaiting(api: Pick<Api, 'getJson'>): void {
  const link = document.querySelector('#pages [data-page="people"]');

  function show(count: number) {
    link?.classList.toggle('news', count > 0);
    if (count > 0) link?.setAttribute('aria-label', t`People: ${count} waiting for you`);
    else link?.removeAttribute('aria-label');
  }

  async function look() {
    if (document.visibilityState !== 'visible') return;
    const people = (await api.getJson('/api/v1/people').catch(() => undefined)) as
      | Waiting
      | undefined;
    if (people !== undefined) show(people.unknownSenders.length + people.questions.length);
  }

  void look();
  setInterval(look, LOOK_MS);
  document.addEventListener('visibilitychange', look);
  // The view of people knows earlier.
  document.addEventListener('waiting', (event) => {
    if (event instanceof CustomEvent) show(Number(event.detail));
  });
}
