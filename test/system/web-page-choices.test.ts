// Choices below an answer in a browser: pressed by mouse or keyboard, resting afterwards, also after
// a reload; and an answer that is taken away.

import { expect, it } from 'vitest';
import { nativeId } from '../../src/kernel/message/ids.ts';
import { answer, chatRef, sendContext } from '../channels/local/local-rig.ts';
import { describeInChromium } from '../support/chromium.ts';
import { eventually, openPage, type PageRig } from '../support/web-page.ts';

const CHOICES = [
  { label: 'Allow once', token: 'tok-allow' },
  { label: 'Allow', token: 'tok-always' },
  { label: 'Block', token: 'tok-block' },
];

const ask = ({ http }: Pick<PageRig, 'http'>) =>
  http.door.send(
    { ...answer('a', 'q/0', 'Somebody new writes. **Answer them?**'), choices: CHOICES },
    sendContext(),
  );

const pressed = ({ http }: PageRig) =>
  http.host.entries.map(({ message }) => message).filter(({ press }) => press !== undefined);

describeInChromium('choices on the web page', () => {
  it('are pressed once, rest then, and still rest after a reload', async () => {
    await using rig = await openPage();
    await ask(rig);
    const button = (name: string) => rig.page.getByRole('button', { name, exact: true });
    await button('Allow once').click();
    await eventually(async () => expect(pressed(rig)).toHaveLength(1));
    expect(pressed(rig)[0]).toMatchObject({ press: 'tok-allow', text: 'Allow once' });
    for (const time of ['before', 'after'] as const) {
      if (time === 'after') await rig.page.reload();
      await rig.showsMessages('Somebody new writes. Answer them?', 'Allow once');
      for (const { label } of CHOICES) expect(await button(label).isDisabled()).toBe(true);
      expect(await button('Allow once').getAttribute('aria-pressed')).toBe('true');
      expect(await button('Block').getAttribute('aria-pressed')).toBe('false');
    }
    const shots = process.env['NANOBOT_SCREENSHOTS'];
    if (shots !== undefined) await rig.page.screenshot({ path: `${shots}/choices.png` });
    expect(rig.problems).toEqual([]);
  });

  it('are reached and pressed by the keyboard alone', async () => {
    await using rig = await openPage();
    await ask(rig);
    await rig.page.getByRole('button', { name: 'Allow once' }).focus();
    await rig.page.keyboard.press('Tab');
    await rig.page.keyboard.press('Tab');
    await rig.page.keyboard.press('Enter');
    await eventually(async () => expect(pressed(rig)[0]?.press).toBe('tok-block'));
  });

  it('can be pressed again where the gateway refused the press', async () => {
    await using rig = await openPage();
    await rig.http.door.send(
      { ...answer('a', 'q/0', 'Well?'), choices: [{ label: 'Yes', token: 'not a token' }] },
      sendContext(),
    );
    const yes = rig.page.getByRole('button', { name: 'Yes' });
    await yes.click();
    await rig.page.getByText('Not sent:').waitFor();
    expect(await yes.isEnabled()).toBe(true);
    expect(pressed(rig)).toEqual([]);
  });

  it('are gone where the question was decided elsewhere, and it says so, also after a reload', async () => {
    await using rig = await openPage();
    await ask(rig);
    await rig.page.getByRole('button', { name: 'Block' }).waitFor();
    const signal = AbortSignal.timeout(45_000);
    const now = 'Somebody new writes.\n\n**Decided elsewhere:** they are let in.';
    await rig.http.door.closeChoices?.(chatRef('a'), nativeId('1'), signal, now);
    for (const time of ['before', 'after'] as const) {
      if (time === 'after') await rig.page.reload();
      await rig.showsMessages('Somebody new writes.\n\nDecided elsewhere: they are let in.');
      await rig.page.getByRole('button', { name: 'Block' }).waitFor({ state: 'detached' });
    }
    expect(rig.problems).toEqual([]);
  });

  it('an answer that is taken away is gone at once and after a reload', async () => {
    await using rig = await openPage();
    await rig.answer('one', 'First answer.');
    await rig.answer('two', 'Second answer.');
    await rig.showsMessages('First answer.', 'Second answer.');
    const signal = AbortSignal.timeout(45_000);
    await rig.http.door.retracting?.retract(chatRef('a'), [nativeId('2')], signal);
    await rig.showsMessages('First answer.');
    await rig.page.reload();
    await rig.showsMessages('First answer.');
    expect(rig.problems).toEqual([]);
  });
});
