// The channels panel: a dialog with the state of each channel, login for an account that a phone
// links, and a restart button. Its button is shown when a channel needs a person.

import { channelPath } from './api.js';
import { createChannelLogin } from './channel-login.js';
import { withCode, wordsOf } from './channel-words.js';
import { element, icon, iconButton } from './element.js';
import { t } from './texts.js';

const REFRESH_MS = 2000;
const LOOK_MS = 30_000;

export function createChannelsPanel(api, place, { onOpen }) {
  const list = element('ul', { className: 'channel-list' });
  const title = element('h2', { id: 'channels-title' });
  const back = iconButton('back', t`Back to the channels`, () => showList(), 'small');
  const body = element('div', { className: 'channels-body' });
  const dialog = element(
    'dialog',
    { className: 'channels-dialog', aria: { labelledby: 'channels-title' } },
    element(
      'div',
      { className: 'channels-head' },
      back,
      title,
      iconButton('failed', t`Close`, () => dialog.close(), 'small'),
    ),
    body,
  );
  const notice = element('span', { className: 'unseen' });
  const button = element(
    'button',
    { type: 'button', id: 'channels-button', className: 'channels-button', on: { click: open } },
    icon('channels'),
    t`Channels`,
    notice,
  );
  let login;
  let shown = '';
  let timer;

  dialog.addEventListener('close', () => {
    endLogin();
    clearInterval(timer);
    dialog.remove();
  });
  place.replaceWith(button);

  function open() {
    onOpen();
    showList();
    document.body.append(dialog);
    dialog.showModal();
    clearInterval(timer);
    timer = setInterval(() => {
      if (login === undefined) refresh();
    }, REFRESH_MS);
  }

  function endLogin() {
    login?.end();
    login = undefined;
  }

  function showList() {
    endLogin();
    shown = '';
    title.textContent = t`Channels`;
    back.hidden = true;
    body.replaceChildren(list);
    refresh();
  }

  function showLogin(channel) {
    endLogin();
    title.textContent = t`Link ${channel.label}`;
    back.hidden = false;
    login = createChannelLogin(api, channel, { onOver: showList });
    body.replaceChildren(login.node);
    back.focus();
  }

  async function refresh() {
    const channels = await fetchChannels();
    const text = JSON.stringify(channels);
    // An unchanged list is not redrawn, so that it keeps its position and the keyboard focus.
    if (channels === undefined || login !== undefined || text === shown) return;
    shown = text;
    const focused = document.activeElement?.dataset?.action;
    list.replaceChildren(...channels.map((channel) => entry(channel)));
    if (focused !== undefined) list.querySelector(`[data-action="${focused}"]`)?.focus();
  }

  async function fetchChannels() {
    const answer = await api.getJson('/api/channels').catch(() => undefined);
    if (answer === undefined) return undefined;
    const troubled = answer.channels.filter(({ status }) => status.kind === 'stopped');
    button.classList.toggle('news', troubled.length > 0);
    const names = troubled.map(({ label }) => label).join(', ');
    notice.textContent = troubled.length > 0 ? t`: ${names} needs attention` : '';
    return answer.channels;
  }

  function entry(channel) {
    const { name, label, status, canLogIn } = channel;
    const { tone, text, remedy } = wordsOf(channel);
    const mayLink = canLogIn && status.kind === 'stopped';
    const isDown = !mayLink && (status.kind === 'stopped' || status.kind === 'degraded');
    return element(
      'li',
      { className: 'channel', data: { tone } },
      element('span', { className: 'channel-dot' }),
      element(
        'div',
        { className: 'channel-text' },
        element('b', {}, label),
        element('span', { className: 'channel-state' }, ...withCode(text)),
        remedy === undefined
          ? undefined
          : element('span', { className: 'channel-remedy' }, ...withCode(remedy)),
      ),
      isDown ? action(t`Restart`, `restart ${name}`, () => restart(name)) : undefined,
      mayLink ? action(t`Link`, `link ${name}`, () => showLogin(channel), 'primary') : undefined,
    );

    function action(label, id, onClick, className = '') {
      const props = { type: 'button', className: `button ${className}`.trim() };
      return element('button', { ...props, data: { action: id }, on: { click: onClick } }, label);
    }
  }

  async function restart(name) {
    await api.postJson(`${channelPath(name)}/restart`, {}).catch(() => undefined);
    await refresh();
  }

  fetchChannels();
  setInterval(() => {
    if (document.visibilityState === 'visible' && !dialog.open) fetchChannels();
  }, LOOK_MS);
}
