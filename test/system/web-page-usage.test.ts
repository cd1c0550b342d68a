// The usage page and its API with the whole program behind them: cost, budgets and speed after a call,
// live; hostile names; both themes on a desktop and a phone; a gateway that is killed and started again.

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { usageReport, usageToday } from '../../src/features/spending/rules/usage.ts';
import { describeInChromium } from '../support/chromium.ts';
import {
  consoleWorld,
  fitsEachScreen,
  HOSTILE,
  LONG_WORD,
  networkIsBack,
} from '../support/console-page.ts';
import { eventually } from '../support/web-page.ts';

const VIEWS = [
  ...['sessions', 'schedules', 'runs', 'memory', 'people', 'usage', 'operations', 'setup'],
  ...['configuration', `sessions/telegram:1001`],
];
const SHOWN = '.view :is(.card, .rows li, .empty, .section, .settings, .turn)';
const MAX_STOPS = 40;
/** Regions that scroll get the focus too, and the parts of a field for a time each take a key. */
const MAX_KEYS_PER_STOP = 3;
/** Notes what gets the focus from the heading on; how many stops there are. */
const EXPECTED_STOPS = `(() => {
  const view = document.querySelector('.view');
  const stops = [...view.querySelectorAll('a[href], button, input, select, textarea, summary')]
    .filter((one) => one.checkVisibility() && !one.disabled && one.tabIndex === 0)
    .filter((one) => one.type !== 'radio' || one.checked);
  const seen = [];
  const upwards = [];
  window.walk = { seen, upwards };
  let last;
  view.querySelector('h1').focus();
  document.addEventListener('focusin', ({ target }) => {
    const at = stops.indexOf(target);
    if (at === -1) return;
    seen.push(at);
    const box = target.getBoundingClientRect();
    const place = { ...box.toJSON(), top: box.top + document.querySelector('#console').scrollTop };
    const isAbove = last !== undefined && place.top + box.height <= last.top;
    const isBeside = isAbove && (box.right <= last.left || box.left >= last.right);
    if (isAbove && !isBeside) upwards.push(target.outerHTML.slice(0, 100));
    last = place;
  });
  return stops.length;
})()`;
const ADA = 1001;
const LIMIT = 500;

describeInChromium('the usage page', () => {
  const { world, api, open } = consoleWorld({
    respond: ({ lastUserText }) => ({ chunks: [`You said: ${lastUserText}`] }),
    config: {
      models: { prices: [{ model: 'openai/sim-1', input: 1000, cached: 1000, output: 2000 }] },
      limits: { budget: { totalMoneyPerDay: LIMIT } },
    },
    pair: { [ADA]: 'owner' },
  });

  it('shows what an answer cost, what is left of the budget, and how fast it was, live', async () => {
    await using rig = await open('#/usage');
    const { page, problems } = rig;
    await page.waitForSelector('text=No model was used in the last 30 days');
    await page.waitForSelector('text=500.00 USD of 500.00 USD left');
    world().telegram.say(ADA, 'What is the time?');
    await world().hears(ADA, /^You said/);
    await page.waitForSelector('section[aria-label="Models"] th >> text=openai/sim-1');
    await page.waitForSelector('section[aria-label="Channels"] th >> text=telegram');
    await page.waitForSelector('section[aria-label="People"] th >> text=1001');
    await page.waitForSelector('section[aria-label="Cache and speed"] th >> text=Model answers');
    await page.waitForSelector('.chart canvas');
    const { body } = await api('/api/v1/usage');
    const report = usageReport.parse(body);
    expect(report.days).toHaveLength(30);
    expect(report.times.queue?.count).toBe(1);
    const delivered = async () => (await api('/api/v1/usage')).body.times.delivery?.count;
    await expect.poll(delivered).toBe(1);
    await page.waitForSelector(
      'section[aria-label="Cache and speed"] th >> text=Waiting for its turn',
    );
    const { micros = 0, calls = 0 } = report.days.at(-1) ?? {};
    expect([micros > 0, calls]).toEqual([true, 1]);
    const sum = report.calls?.models[0];
    expect(sum).toEqual({ ...report.days.at(-1), day: undefined, name: 'openai/sim-1' });
    const left = (LIMIT - micros / 1_000_000).toFixed(2);
    await page.waitForSelector(`text=${left} USD of 500.00 USD left`);
    await page.click('summary >> text=Figures');
    await expect.poll(() => page.locator('details .figures tbody tr').count()).toBe(1);
    expect(problems).toEqual([]);
  });

  it('goes on after the gateway was killed', async () => {
    await using rig = await open('#/usage');
    const { page } = rig;
    await page.waitForSelector('.chart canvas');
    await world().gateway.kill();
    await page.waitForSelector('[role="alert"] >> text=Connection lost');
    await world().restart();
    await networkIsBack(page);
    world().telegram.say(ADA, 'And now?');
    await world().hears(ADA, /And now/);
    await page.waitForSelector('section[aria-label="Models"] td >> text="2"');
    await eventually(async () => expect(await page.isHidden('.view-problem')).toBe(true));
  });

  it('fits each screen in both themes, without a serious finding of axe', async () => {
    const at = new Date().toISOString();
    const line = { timestamp: at, role: 'turn', status: 'ok', elapsed_ms: 12_345 };
    for (const model of [HOSTILE, LONG_WORD]) {
      const call = { ...line, model, session: `${model}:1`, prompt_tokens: 9_999_999_999 };
      appendFileSync(join(world().home.path, 'metrics.jsonl'), `${JSON.stringify(call)}\n`);
    }
    appendFileSync(join(world().home.path, 'metrics.jsonl'), 'no JSON\n{}\n');
    await fitsEachScreen(world().gateway, '#/usage', 'usage', async (page) => {
      await page.waitForSelector('.chart canvas');
      await page.click('summary >> text=Figures');
      expect(await page.innerText('section[aria-label="Models"]')).toContain(HOSTILE);
    });
  });

  it('is walked through with Tab in the order in which it is read, as every view', async () => {
    await using rig = await open('#/usage');
    const { page } = rig;
    for (const view of VIEWS) {
      await page.goto(`${world().gateway.address}/#/${view}`);
      await page.waitForSelector(SHOWN);
      // Parts of a view that arrive late add stops, and the walk begins again.
      const walk = async () => {
        const count = Math.min(MAX_STOPS, (await page.evaluate(EXPECTED_STOPS)) as number);
        const isWhole = () => page.evaluate(`window.walk.seen.length >= ${count}`);
        for (let keys = 0; keys < count * MAX_KEYS_PER_STOP; keys += 1) {
          if (keys >= count && (await isWhole())) break;
          await page.keyboard.press('Tab');
        }
        const { seen, upwards } = (await page.evaluate('window.walk')) as {
          readonly seen: readonly number[];
          readonly upwards: readonly string[];
        };
        const isInOrder = seen.slice(0, count).every((stop, at) => stop === at);
        return { view, seen, upwards, isInOrder: isInOrder && seen.length >= count && count > 0 };
      };
      await expect.poll(walk).toMatchObject({ view, upwards: [], isInOrder: true });
    }
  });

  it('is a documented API for owners alone', async () => {
    const { paths } = (await api('/api/v1/openapi.json')).body;
    expect(Object.keys(paths).filter((path) => path.includes('usage'))).toEqual([
      '/api/v1/usage',
      '/api/v1/usage/events',
    ]);
    const event = paths['/api/v1/usage/events'].get.responses['200'].content['text/event-stream'];
    expect(Object.keys(event.schema.properties)).toEqual(Object.keys(usageToday.shape));
    const refused = await api('/api/v1/usage', undefined, { authorization: 'Bearer none' });
    expect(refused.status).toBe(401);
  });
});
