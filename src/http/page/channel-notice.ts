// A mark on the entry of the setup while a channel needs a person.

import { t } from '/texts.js';
import type { SetupState } from '../../features/setup/rules/views.ts';
import type { Api } from './chat/parts.tsx';
import { element } from './element.ts';

const LOOK_MS = 30_000;

export function watchChannels(api: Pick<Api, 'getJson'>): void {
  const link = document.querySelector('#pages a[href="#/setup"]');
  const notice = element('span', { className: 'unseen' });
  link?.append(notice);

  async function look() {
    const setup = (await api.getJson('/api/v1/setup').catch(() => undefined)) as
      | SetupState
      | undefined;
    if (setup === undefined) return;
    const troubled = setup.channels.filter(({ state }) => state === 'stopped');
    const names = troubled.map(({ label }) => label).join(', ');
    link?.classList.toggle('news', troubled.length > 0);
    notice.textContent = troubled.length > 0 ? t`: ${names} needs attention` : '';
  }

  void look();
  window.addEventListener('hashchange', look);
  setInterval(() => {
    if (document.visibilityState === 'visible') void look();
  }, LOOK_MS);
}
