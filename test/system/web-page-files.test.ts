// Files on the web page: attached by the button, by pasting and by dropping, shown and saved.

import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { answer, sendContext } from '../channels/local/local-rig.ts';
import { fileOf } from '../contract/channel-files.ts';
import { PNG } from '../contract/media.ts';
import { describeInChromium } from '../support/chromium.ts';
import { eventually, openPage, type PageRig } from '../support/web-page.ts';

const names = ({ http }: PageRig) =>
  http.host.entries.map(({ message }) => (message.attachments ?? []).map(({ name }) => name));
const attach = (
  { page }: PageRig,
  ...files: { name: string; mimeType: string; buffer: Buffer }[]
) => page.locator('input[type=file]').setInputFiles(files);
const picture = { name: 'dot.png', mimeType: 'image/png', buffer: PNG };
const text = { name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('words') };

describeInChromium('files on the web page', () => {
  it('are uploaded when they are chosen, and sent with the words', async () => {
    await using rig = await openPage();
    await attach(rig, picture, text);
    await rig.page.getByText('5 bytes').waitFor();
    await rig.say('look at these');
    await rig.showsMessages('look at these');
    expect(names(rig)).toEqual([['dot.png', 'a.txt']]);
    await rig.page.locator('.said img[alt="dot.png"]').waitFor();
    expect(rig.problems).toEqual([]);
  });

  it('can be left out again, and go without words', async () => {
    await using rig = await openPage();
    await attach(rig, picture, text);
    await rig.page.getByRole('button', { name: 'Remove dot.png' }).click();
    await rig.page.getByText('5 bytes').waitFor();
    await rig.page.getByRole('button', { name: 'Send', exact: true }).click();
    await eventually(async () => expect(names(rig)).toEqual([['a.txt']]));
  });

  it.each(['paste', 'drop'] as const)('come by %s', async (way) => {
    await using rig = await openPage();
    await rig.page.evaluate((kind) => {
      const data = new DataTransfer();
      data.items.add(new File(['words'], 'pasted.txt', { type: 'text/plain' }));
      const options = { bubbles: true, cancelable: true };
      const event =
        kind === 'paste'
          ? new ClipboardEvent('paste', { ...options, clipboardData: data })
          : new DragEvent('drop', { ...options, dataTransfer: data });
      document.getElementById('text')?.dispatchEvent(event);
    }, way);
    await rig.page.getByText('5 bytes').waitFor();
    await rig.say('this');
    await eventually(async () => expect(names(rig)).toEqual([['pasted.txt']]));
  });

  it('are no picture of the cells that are pasted: their text is', async () => {
    await using rig = await openPage();
    const isLeft = await rig.page.evaluate(() => {
      const data = new DataTransfer();
      data.setData('text/plain', 'Bolt\t105');
      data.setData('text/html', '<table><tr><td>Bolt</td><td>105</td></tr></table>');
      data.items.add(new File(['cells'], 'image.png', { type: 'image/png' }));
      const options = { bubbles: true, cancelable: true, clipboardData: data };
      return document.getElementById('text')?.dispatchEvent(new ClipboardEvent('paste', options));
    });
    // The browser pastes the text.
    expect(isLeft).toBe(true);
    expect(await rig.page.locator('#composer-files .file').count()).toBe(0);
  });

  it('stay in the chat where they were attached', async () => {
    await using rig = await openPage();
    await attach(rig, text);
    await rig.page.getByText('5 bytes').waitFor();
    await rig.page.goto(`${rig.address}/#b`);
    await rig.page.locator('#composer-files .file').waitFor({ state: 'detached' });
    await rig.say('without a file');
    await rig.showsMessages('without a file');
    await rig.page.goBack();
    await rig.page.getByText('5 bytes').waitFor();
    await rig.say('with it');
    await eventually(async () => expect(names(rig)).toEqual([[], ['a.txt']]));
  });

  it('that cannot be uploaded without the gateway are said so, in words for people', async () => {
    await using rig = await openPage();
    await rig.page.context().setOffline(true);
    await attach(rig, text);
    await rig.page.getByText('a.txt was not attached: The gateway could not be reached.').waitFor();
  });

  it('that are too large are said and left out', async () => {
    await using rig = await openPage();
    await attach(rig, { ...text, name: 'large.bin', buffer: Buffer.alloc(2_100_000) });
    await rig.page.getByText(/large.bin was not attached/).waitFor();
    await rig.page.waitForSelector('#composer-files .file', { state: 'detached' });
  });

  it('of the agent are shown where they are pictures, and saved under their name', async () => {
    await using rig = await openPage();
    const { host, door } = rig.http;
    const shown = await fileOf(host, PNG, { kind: 'image', name: 'dot.png' });
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"></svg>');
    const hostile = await fileOf(host, svg, {
      kind: 'image',
      name: '"><img src=x onerror=alert(1)>.svg',
      caption: 'a *file*',
    });
    const attachments = [shown, hostile];
    await door.send({ ...answer('a', 't/say/0', ''), attachments }, sendContext());
    await rig.showsMessages('a file');
    await rig.page.locator('img[alt="dot.png"]').waitFor();
    expect(await rig.page.locator('.file img').count()).toBe(1);
    await attach(rig, text);
    await rig.page.getByText('5 bytes').waitFor();
    const shots = process.env['NANOBOT_SCREENSHOTS'];
    if (shots !== undefined) await rig.page.screenshot({ path: `${shots}/files.png` });
    const saving = rig.page.waitForEvent('download');
    await rig.page.getByRole('button', { name: /svg/ }).click();
    const saved = await saving;
    expect(await readFile(await saved.path(), 'utf8')).toContain('<svg');
    expect(rig.problems).toEqual([]);
  });
});
