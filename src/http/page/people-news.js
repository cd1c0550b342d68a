// Marks the entry of people in the navigation while somebody waits for a decision.

import { t } from './texts.js';

const LOOK_MS = 30_000;

export function followWaiting(api) {
  const link = document.querySelector('#pages [data-page="people"]');

  function show(count) {
    link.classList.toggle('news', count > 0);
    if (count > 0) link.ariaLabel = t`People: ${count} waiting for you`;
    else link.removeAttribute('aria-label');
  }

  async function look() {
    if (document.visibilityState !== 'visible') return;
    const people = await api.getJson('/api/v1/people').catch(() => undefined);
    if (people !== undefined) show(people.unknownSenders.length + people.questions.length);
  }

  look();
  setInterval(look, LOOK_MS);
  document.addEventListener('visibilitychange', look);
  // The view of people knows earlier.
  document.addEventListener('waiting', ({ detail }) => show(detail));
}
