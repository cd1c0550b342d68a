// The people panel: a dialog with unknown senders who wait, requests for an approval, the allow
// rules, and the known people with their rights. Its button is shown when somebody waits. Untrusted
// content becomes text, never markup.

import { element, icon, iconButton } from './element.js';
import { createMarkdownView } from './markdown-view.js';
import { t } from './texts.js';

const REFRESH_MS = 2000;
const LOOK_MS = 30_000;
const DECISIONS = [
  ['once', t`Allow once`],
  ['allow', t`Allow`],
  ['block', t`Block`],
  ['drop', t`Answer myself`],
];
const POLICIES = [
  ['auto', t`as configured`],
  ['strict', 'strict'],
  ['normal', 'normal'],
  ['open', 'open'],
];
const ROLE_NAMES = { owners: t`Owners`, trusted: t`Trusted people` };
const ROLES = { unknown: t`unknown sender` };

export function createPeoplePanel(api, place, { onOpen }) {
  const said = element('p', { className: 'people-said', role: 'status' });
  const body = element('div', { className: 'people-list' });
  const dialog = element(
    'dialog',
    { className: 'channels-dialog people-dialog', aria: { labelledby: 'people-title' } },
    element(
      'div',
      { className: 'channels-head' },
      element('h2', { id: 'people-title' }, t`People`),
      iconButton('failed', t`Close`, () => dialog.close(), 'small'),
    ),
    element('div', { className: 'channels-body' }, said, body),
  );
  const notice = element('span', { className: 'unseen' });
  const button = element(
    'button',
    { type: 'button', id: 'people-button', className: 'channels-button', on: { click: open } },
    icon('people'),
    t`People`,
    notice,
  );
  let shown = '';
  let isDeciding = false;
  let timer;

  dialog.addEventListener('close', () => {
    clearInterval(timer);
    dialog.remove();
  });
  place.replaceWith(button);

  function open() {
    onOpen();
    shown = '';
    said.textContent = '';
    document.body.append(dialog);
    dialog.showModal();
    refresh();
    clearInterval(timer);
    timer = setInterval(refresh, REFRESH_MS);
  }

  async function refresh() {
    const people = await look();
    const text = JSON.stringify(people);
    // An unchanged list is not redrawn, so that it keeps its position and the keyboard focus.
    if (people === undefined || isDeciding || text === shown) return;
    shown = text;
    const focused = document.activeElement?.dataset?.action;
    body.replaceChildren(...sections(people));
    if (focused !== undefined) focusAction(focused);
  }

  function focusAction(action) {
    const buttons = [...body.querySelectorAll('[data-action]')];
    const same = buttons.find(({ dataset }) => dataset.action === action);
    (same ?? buttons[0] ?? dialog.querySelector('button')).focus();
  }

  async function look() {
    const asked = ['/api/people', '/api/approvals'].map((path) => api.getJson(path));
    const [people, approvals] = await Promise.all(asked).catch(() => []);
    if (people === undefined) return undefined;
    const waiting = people.strangers.length + people.questions.length;
    button.classList.toggle('news', waiting > 0);
    notice.textContent = waiting > 0 ? t`: ${waiting} waiting for you` : '';
    return { ...people, ...approvals };
  }

  /** One decision at a time; the response says what was done. */
  async function decide(path, request) {
    if (isDeciding) return;
    isDeciding = true;
    body.inert = true;
    try {
      said.textContent = (await api.postJson(path, request)).result;
    } catch (error) {
      said.textContent = error.message;
    }
    body.inert = false;
    isDeciding = false;
    shown = '';
    await refresh();
    if (document.activeElement === document.body) focusAction('');
  }

  function sections({ strangers, questions, rules, policies, persons, personCount }) {
    const more = personCount - persons.length;
    const rest = more > 0 ? [element('li', { className: 'person' }, t`and ${more} more`)] : [];
    const nobody = t`Nobody is waiting.`;
    return [
      strangers.length + questions.length === 0 ? element('p', {}, nobody) : '',
      ...section(t`Unknown senders`, strangers.map(unknownSenderEntry)),
      ...section(t`Waiting for your approval`, questions.map(questionEntry)),
      ...section(t`Allow rules`, rules.map(ruleEntry)),
      ...section(t`How much is asked`, policies.map(policyEntry)),
      ...section(t`Known people`, [...persons.map(personEntry), ...rest]),
    ];
  }

  function unknownSenderEntry({ channel, userId, name, excerpt, at, messages }) {
    const who = name || userId;
    const buttons = DECISIONS.map(([action, label]) =>
      choice(label, `${action} ${channel} ${userId}`, () =>
        decide('/api/people/strangers', { channel, userId, action }),
      ),
    );
    const count = messages > 1 ? t`${messages} messages, ` : '';
    return element(
      'li',
      { className: 'person', data: { sender: userId } },
      element('b', {}, element('bdi', {}, who)),
      element('span', { className: 'channel-state' }, `${channel} `, code(userId)),
      excerpt === '' ? undefined : element('blockquote', {}, element('bdi', {}, excerpt)),
      element('span', { className: 'channel-remedy' }, `${count}${momentText(at)}`),
      choices(t`About ${who}`, buttons),
    );
  }

  function questionEntry({ id, channel, markdown, expiresAt, choices: offered }) {
    const text = element('div', { className: 'person-question body' });
    createMarkdownView(text).finish(markdown);
    const buttons = offered.map(({ label, token }) =>
      choice(label, `${id} ${label}`, () => decide('/api/people/answers', { token })),
    );
    return element(
      'li',
      { className: 'person', data: { question: id } },
      text,
      element(
        'span',
        { className: 'channel-remedy' },
        t`Asked on ${channel}, expires ${momentText(expiresAt)}`,
      ),
      choices(t`Your answer`, buttons),
    );
  }

  function ruleEntry({ id, tool, about, asker, until, uses }) {
    const who = element('div', { className: 'channel-remedy' });
    createMarkdownView(who).finish(t`Asked by ${asker}; ${until}, used ${uses} times`);
    const revoke = choice(t`Revoke`, `revoke ${id}`, () => decide('/api/approvals/revoke', { id }));
    return element(
      'li',
      { className: 'person', data: { rule: id } },
      element('span', {}, element('b', {}, element('bdi', {}, tool)), ' ', code(about)),
      who,
      choices(t`About ${tool}`, [revoke]),
    );
  }

  function personEntry({ id, name, role, doors, approvals }) {
    const ways = doors.map(({ channel, ids }) =>
      element('span', { className: 'channel-state' }, `${channel} `, ...ids.map(code)),
    );
    return element(
      'li',
      { className: 'person', data: { person: id } },
      element(
        'span',
        {},
        element('b', {}, element('bdi', {}, name || 'No name')),
        ' ',
        element('span', { className: 'person-role' }, ROLES[role] ?? role),
      ),
      ...ways,
      approvals === undefined ? undefined : policyChoice(id, approvals),
    );
  }

  /** Of owners, of trusted people, or of a group. */
  function policyEntry({ id, approvals }) {
    const name = ROLE_NAMES[id] ?? code(id);
    const props = { className: 'person', data: { policy: id } };
    return element('li', props, element('b', {}, name), policyChoice(id, approvals));
  }

  function policyChoice(id, approvals) {
    const options = POLICIES.map(([value, label]) =>
      element('option', { value, selected: value === approvals }, label),
    );
    const change = ({ target }) => decide('/api/people/approvals', { id, approvals: target.value });
    const props = { className: 'person-policy', data: { action: `policy ${id}` }, on: { change } };
    return element('label', {}, 'Approvals ', element('select', props, ...options));
  }

  fetchNews();
  setInterval(fetchNews, LOOK_MS);
  document.addEventListener('visibilitychange', fetchNews);

  function fetchNews() {
    if (document.visibilityState === 'visible' && !dialog.open) look();
  }
}

function section(title, entries) {
  if (entries.length === 0) return [];
  return [element('h3', {}, title), element('ul', { className: 'channel-list' }, ...entries)];
}

const code = (id) => element('code', {}, id);

function choice(label, action, onClick) {
  const props = { type: 'button', className: 'button', data: { action } };
  return element('button', { ...props, on: { click: onClick } }, label);
}

function choices(label, buttons) {
  const props = { className: 'person-choices', role: 'group', aria: { label } };
  return element('div', props, ...buttons);
}

function momentText(at) {
  return new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
}
