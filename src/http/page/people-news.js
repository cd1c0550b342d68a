// Marks the entry of people in the navigation while somebody waits for a decision.

import { element } from './element.js';
import { t } from './texts.js';

const LOOK_MS = 30_000;

export function followWaiting(api) {
  const link = document.querySelector('#pages [data-page="people"]');
  const notice = element('span', { className: 'unseen' });
  link.append(notice);

  function show(count) {
    link.classList.toggle('news', count > 0);
    notice.textContent = count > 0 ? t`: ${count} waiting for you` : '';
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
