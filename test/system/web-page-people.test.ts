// The page's panel of people in a real browser: who waits and what waits for a yes, decided by a press,
// and hostile names and texts that stay text. What a decision does is tried in test/http/people.test.ts.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LOCAL_OWNER } from '../../src/channels/local-channel.ts';
import type { RuleControl, ShownAllowRule } from '../../src/features/approvals/allow-rules.ts';
import type { PeopleControl, PeopleView } from '../../src/features/people/people-routes.ts';
import { sessionKey } from '../../src/kernel/message/ids.ts';
import { NOTICES } from '../../src/kernel/owners.ts';
import { chromiumAbsent, launchChromium } from '../support/chromium.ts';
import { eventually, openPage, type PageRig } from '../support/web-page.ts';

const absent = chromiumAbsent();
if (absent !== undefined) console.log(`skipped: the web page's people (${absent})`);

const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
const HOSTILE = '<img src=x onerror="window.pwned=1">';
/** As the text of the page. */
const POLICIES = ['Approvals', 'as', 'configured', 'strict', 'normal', 'open'];
const LONG_ID = 'x'.repeat(200);

const eve = {
  channel: 'telegram',
  userId: '666',
  name: `Eve ${HOSTILE}`,
  excerpt: `Let me in ${HOSTILE} **now** \u202Egnp.exe`,
  at: Date.now(),
  messages: 3,
};
const question = {
  id: 'approval/1',
  channel: 'whatsapp',
  markdown: `May I run this?\n\n\`\`\`\nrm -rf ${HOSTILE}\n\`\`\`\n\n![p](https://evil.example/p.png)`,
  askedAt: Date.now(),
  expiresAt: Date.now() + 900_000,
  choices: [
    { label: 'Allow once', token: 'tok-yes' },
    { label: 'Deny', token: 'tok-no' },
  ],
};
const persons = [
  {
    id: 'p1',
    name: 'Ada',
    role: 'owner',
    doors: [
      { channel: 'telegram', ids: ['1'] },
      { channel: 'email', ids: ['ada@example.org'] },
    ],
    approvals: 'normal',
  },
  {
    id: 'p2',
    name: '',
    role: 'unknown',
    doors: [{ channel: 'whatsapp', ids: [LONG_ID] }],
    approvals: undefined,
  },
];

const policies = [{ id: 'owners', approvals: 'auto' }];

function scriptedRules(): RuleControl {
  let rules: readonly ShownAllowRule[] = [
    {
      yes: {
        ...{
          id: 'ab'.repeat(32),
          tool: 'exec',
          access: 'execute',
          about: `ls ${HOSTILE} ${LONG_ID}`,
        },
        ...{ asker: 'Ada', session: sessionKey('telegram:1'), whose: 'p1', days: 30, givenAt: 0 },
        ...{ at: NOTICES, evenTainted: false, by: LOCAL_OWNER },
      },
      until: Date.UTC(2027, 0, 15),
      used: { uses: 3, lastAt: 0 },
    },
  ];
  return {
    list: async () => rules,
    async takeBack(id) {
      const before = rules.length;
      rules = rules.filter(({ yes }) => yes.id !== id);
      return before - rules.length;
    },
  };
}

function scriptedPeople() {
  let view: PeopleView = {
    strangers: [eve],
    questions: [question],
    policies,
    persons,
    personCount: 5,
  };
  const decided: string[] = [];
  const control: PeopleControl = {
    people: async () => view,
    async decide(channel, userId, action) {
      decided.push(`${action} ${channel} ${userId}`);
      const before = view.strangers.length;
      view = { ...view, strangers: view.strangers.filter((one) => one.userId !== userId) };
      return view.strangers.length === before ? undefined : `Done: ${action}.`;
    },
    async answer(token) {
      decided.push(token);
      view = { ...view, questions: [] };
      return 'Denied: nothing is done.';
    },
    async setApprovals(id, approvals) {
      decided.push(`${id} ${approvals}`);
      view = {
        ...view,
        persons: view.persons.map((one) => (one.id === id ? { ...one, approvals } : one)),
      };
      return `Approvals: ${approvals}.`;
    },
  };
  const set = (change: Partial<PeopleView>) => {
    view = { ...view, ...change };
  };
  return { control, decided, set };
}

async function openPanel(rig: PageRig) {
  await rig.page.click('#people-button');
  await rig.page.waitForSelector('.person');
}

const button = ({ page }: PageRig, name: string, within: string) =>
  page.locator(within).getByRole('button', { name, exact: true });

describe.skipIf(absent !== undefined)('people on the web page', () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launchChromium();
  });

  afterAll(async () => {
    await browser?.close();
  });

  it('stand there by who waits, what waits for a yes and who is known, as text alone', async () => {
    const { control } = scriptedPeople();
    await using rig = await openPage({ browser, people: control });
    await rig.page.waitForSelector('#people-button.news');
    expect(await rig.page.innerText('#people-button')).toContain('2 waiting for you');
    await openPanel(rig);
    expect(await rig.page.locator('.people-list h3').allInnerTexts()).toEqual([
      'Unknown senders',
      'Waiting for your approval',
      'How much is asked',
      'Known people',
    ]);
    const stranger = await rig.page.innerText('[data-sender]');
    for (const part of [eve.name, '666', 'telegram', '3 messages', `${HOSTILE} **now**`]) {
      expect(stranger).toContain(part);
    }
    const asked = await rig.page.innerText('[data-question]');
    expect(asked).toContain(`rm -rf ${HOSTILE}`);
    expect(asked).toContain('Asked on whatsapp, expires ');
    const known = (await rig.page.locator('.person').allInnerTexts()).slice(3);
    expect(known.map((text) => text.split(/\s+/))).toEqual([
      [...['Ada', 'owner', 'telegram', '1', 'email', 'ada@example.org'], ...POLICIES],
      ['No', 'name', 'unknown', 'sender', 'whatsapp', LONG_ID],
      ['and', '3', 'more'],
    ]);
    expect(await rig.page.locator('.people-dialog img').count()).toBe(0);
    expect(await rig.page.evaluate('window.pwned')).toBeUndefined();
    const shots = process.env['NANOBOT_SCREENSHOTS'];
    if (shots !== undefined) await rig.page.screenshot({ path: `${shots}/people.png` });
    expect(rig.problems).toEqual([]);
  });

  it.each([
    ['Allow once', 'once'],
    ['Allow', 'allow'],
    ['Block', 'block'],
    ['Answer myself', 'drop'],
  ])('are decided about by %s, once, and the page says what was done', async (label, action) => {
    const { control, decided } = scriptedPeople();
    await using rig = await openPage({ browser, people: control });
    await openPanel(rig);
    await button(rig, label, '[data-sender]').click();
    await rig.page.waitForSelector(`[role="status"] >> text=Done: ${action}.`);
    expect(decided).toEqual([`${action} telegram 666`]);
    await eventually(async () => expect(await rig.page.locator('[data-sender]').count()).toBe(0));
    await rig.page.waitForSelector('#people-button >> text=1 waiting for you');
  });

  it('are answered where a yes is asked, and the mark goes with the last that waits', async () => {
    const { control, decided, set } = scriptedPeople();
    set({ strangers: [] });
    await using rig = await openPage({ browser, people: control });
    await openPanel(rig);
    await button(rig, 'Deny', '[data-question]').click();
    await rig.page.waitForSelector('[role="status"] >> text=Denied: nothing is done.');
    await rig.page.waitForSelector('text=Nobody is waiting.');
    expect(decided).toEqual(['tok-no']);
    await rig.page.waitForSelector('#people-button:not(.news)');
  });

  it('show the allow rules, and one that is revoked is gone', async () => {
    const { control } = scriptedPeople();
    await using rig = await openPage({ browser, people: control, rules: scriptedRules() });
    await openPanel(rig);
    const rule = await rig.page.innerText('[data-rule]');
    for (const part of ['exec', `ls ${HOSTILE}`, 'Asked by Ada; until 2027-01-15, used 3 times']) {
      expect(rule).toContain(part);
    }
    await button(rig, 'Revoke', '[data-rule]').click();
    await rig.page.waitForSelector('[role="status"] >> text=Allow rule revoked.');
    await eventually(async () => expect(await rig.page.locator('[data-rule]').count()).toBe(0));
    expect(rig.problems).toEqual([]);
  });

  it('show how much is asked about somebody, and it is changed there', async () => {
    const { control, decided } = scriptedPeople();
    await using rig = await openPage({ browser, people: control });
    await openPanel(rig);
    await rig.page.waitForSelector('li:has-text("Owners") select');
    const policy = rig.page.locator('[data-person] select');
    expect([await policy.count(), await policy.inputValue()]).toEqual([1, 'normal']);
    await policy.selectOption('strict');
    await rig.page.waitForSelector('[role="status"] >> text=Approvals: strict.');
    expect(decided).toEqual(['p1 strict']);
    expect(await policy.inputValue()).toBe('strict');
  });

  it('show who comes while the panel is open, and say so where somebody else was faster', async () => {
    const { control, set } = scriptedPeople();
    set({ strangers: [], questions: [] });
    const people: PeopleControl = {
      ...control,
      async decide(...args) {
        // The other one is faster by this much, so that the page still shows the button.
        await control.decide('telegram', '666', 'allow');
        return control.decide(...args);
      },
    };
    await using rig = await openPage({ browser, people });
    await openPanel(rig);
    await rig.page.waitForSelector('text=Nobody is waiting.');
    set({ strangers: [eve] });
    await rig.page.waitForSelector('[data-sender]');
    await button(rig, 'Block', '[data-sender]').click();
    await rig.page.waitForSelector('[role="status"] >> text=decided');
    await eventually(async () => expect(await rig.page.locator('[data-sender]').count()).toBe(0));
  });

  it('can be decided about with the keyboard alone', async () => {
    const { control, decided } = scriptedPeople();
    await using rig = await openPage({ browser, people: control });
    await rig.page.focus('#people-button');
    await rig.page.keyboard.press('Enter');
    await rig.page.waitForSelector('.person');
    await button(rig, 'Allow once', '[data-sender]').focus();
    await rig.page.keyboard.press('Tab');
    await rig.page.keyboard.press('Tab');
    await rig.page.keyboard.press('Enter');
    await eventually(async () => expect(decided).toEqual(['block telegram 666']));
    await eventually(async () =>
      expect(await rig.page.evaluate('document.activeElement.textContent')).toBe('Allow once'),
    );
    await rig.page.keyboard.press('Escape');
    expect(await rig.page.evaluate('document.activeElement.id')).toBe('people-button');
  });

  it('fit a phone', async () => {
    const { control } = scriptedPeople();
    const rules = scriptedRules();
    await using rig = await openPage({ browser, people: control, rules, context: PHONE });
    await rig.page.tap('.menu');
    await openPanel(rig);
    expect(await rig.page.evaluate('document.documentElement.scrollWidth')).toBe(360);
    const body = rig.page.locator('.people-dialog .channels-body');
    expect(await body.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
    const shots = process.env['NANOBOT_SCREENSHOTS'];
    if (shots !== undefined) await rig.page.screenshot({ path: `${shots}/people-phone.png` });
  });
});
