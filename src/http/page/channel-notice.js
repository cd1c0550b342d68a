// A mark on the entry of the setup while a channel needs a person.

import { element } from './element.ts';
import { t } from './texts.js';

const LOOK_MS = 30_000;

export function watchChannels(api) {
  const link = document.querySelector('#pages a[href="#/setup"]');
  const notice = element('span', { className: 'unseen' });
  link.append(notice);

  async function look() {
    const answer = await api.getJson('/api/channels').catch(() => undefined);
    if (answer === undefined) return;
    const troubled = answer.channels.filter(({ status }) => status.kind === 'stopped');
    const names = troubled.map(({ label }) => label).join(', ');
    link.classList.toggle('news', troubled.length > 0);
    notice.textContent = troubled.length > 0 ? t`: ${names} needs attention` : '';
  }

  look();
  window.addEventListener('hashchange', look);
  setInterval(() => {
    if (document.visibilityState === 'visible') look();
  }, LOOK_MS);
}
