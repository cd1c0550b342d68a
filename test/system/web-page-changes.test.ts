// A person changes and takes back what they wrote on the web page: by mouse, keyboard and on a narrow
// screen; durable, and shown as it is now after a reload.

import { expect, it } from 'vitest';
import { describeInChromium } from '../support/chromium.ts';
import { networkIsBack } from '../support/console-page.ts';
import { eventually, openPage, type PageRig } from '../support/web-page.ts';

const NARROW = { viewport: { width: 340, height: 640 }, hasTouch: true, isMobile: true };

const changes = ({ http }: PageRig) =>
  http.host.entries.flatMap(({ message: { text, amends } }) =>
    amends === undefined ? [] : [{ text, ...amends }],
  );

async function said({ http }: Pick<PageRig, 'http'>, clientId: string, text: string) {
  await http.door.submit({ chat: 'a', clientId, text });
}

const shots = process.env['NANOBOT_SCREENSHOTS'];
const shot = async ({ page }: PageRig, name: string) => {
  if (shots !== undefined) await page.screenshot({ path: `${shots}/${name}.png` });
};

describeInChromium('changes on the web page', () => {
  it('a message is edited and another deleted by the keyboard, at once and after a reload', async () => {
    await using rig = await openPage();
    await rig.say('remind me on Mondy');
    await rig.say('my PIN is 1234');
    await rig.showsMessages('remind me on Mondy', 'my PIN is 1234');
    await rig.answer('turn#1', 'Noted.');
    await rig.showsMessages('remind me on Mondy', 'my PIN is 1234', 'Noted.');
    const first = rig.page.locator('.message.person').first();
    await first.getByRole('button', { name: 'Edit message' }).focus();
    await rig.page.keyboard.press('Enter');
    await rig.page.keyboard.press('Escape');
    expect(rig.http.stops).toEqual([]);
    await rig.page.keyboard.press('Enter');
    await rig.page.keyboard.press('ControlOrMeta+a');
    await rig.page.keyboard.type('remind me on Monday');
    await shot(rig, 'change-edit');
    await rig.page.keyboard.press('Enter');
    await rig.showsMessages('remind me on Monday', 'my PIN is 1234', 'Noted.');
    const second = rig.page.locator('.message.person').nth(1);
    await second.getByRole('button', { name: 'Delete message' }).press('Enter');
    await shot(rig, 'change-delete');
    await rig.page.keyboard.press('Tab');
    await rig.page.keyboard.press('Enter');
    await rig.showsMessages('remind me on Monday', 'Noted.');
    await eventually(async () => expect(changes(rig)).toHaveLength(2));
    const [one, other] = rig.http.host.entries.map(({ message }) => message.id);
    expect(changes(rig)).toEqual([
      { text: 'remind me on Monday', id: one, kind: 'edited' },
      { text: '', id: other, kind: 'withdrawn' },
    ]);
    await rig.page.reload();
    await rig.showsMessages('remind me on Monday', 'Noted.');
    expect(await first.locator('.edited').isVisible()).toBe(true);
    await shot(rig, 'change-after');
    expect(rig.problems).toEqual([]);
  });

  it('on a narrow screen the buttons are there without a mouse, and nothing runs over the edge', async () => {
    await using rig = await openPage({ context: NARROW });
    await said(rig, 'c1', `a long line ${'of words '.repeat(30)}`);
    await rig.page.getByRole('button', { name: 'Edit message' }).tap();
    const field = rig.page.getByLabel('New text of the message');
    await field.fill('short');
    await shot(rig, 'change-narrow');
    const overflow = () =>
      rig.page.evaluate('document.documentElement.scrollWidth - innerWidth') as Promise<number>;
    expect(await overflow()).toBeLessThanOrEqual(0);
    await rig.page.getByRole('button', { name: 'Save' }).tap();
    await rig.showsMessages('short');
    await rig.page.getByRole('button', { name: 'Delete message' }).tap();
    expect(await overflow()).toBeLessThanOrEqual(0);
    await rig.page.getByRole('button', { name: 'Delete', exact: true }).tap();
    await rig.showsMessages();
  });

  it('an edit outlives a gateway that is away and a reload, and one refused keeps its words', async () => {
    await using rig = await openPage();
    await said(rig, 'c1', 'old words');
    await rig.showsMessages('old words');
    const edit = async (text: string) => {
      await rig.page.getByRole('button', { name: 'Edit message' }).click();
      await rig.page.getByLabel('New text of the message').fill(text);
      await rig.page.keyboard.press('Enter');
    };
    rig.http.host.isFull = true;
    await edit('new words');
    await rig.page.getByText('Saving…').waitFor();
    await rig.page.reload();
    await rig.page.getByText('Saving…').waitFor();
    rig.http.host.isFull = false;
    await networkIsBack(rig.page);
    await rig.showsMessages('new words');
    await rig.page.route('**/messages', (route) =>
      route.fulfill({ status: 400, json: { error: { message: 'It is gone.' } } }),
    );
    await edit('newest words');
    await rig.page.getByText('Not changed: It is gone.').waitFor();
    expect(await rig.page.getByLabel('New text of the message').inputValue()).toBe('newest words');
    expect(rig.problems).toEqual([]);
  });
});
