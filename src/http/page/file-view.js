// Files of a message: pictures are shown, everything else can be saved. A content is fetched with
// the login, so it has no URL that a browser could open by itself; only pixels are shown.

import { element } from './element.js';
import { sizeText } from './file-size.js';

const SHOWN = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif']);
/** Larger pictures are saved instead. */
const MAX_SHOWN_BYTES = 10_000_000;

export function createFileView(api, keepPlace) {
  return (files) => {
    if (files === undefined || files.length === 0) return undefined;
    return element('div', { className: 'files' }, ...files.map(fileNode));
  };

  function fileNode(file) {
    const chip = element(
      'button',
      { type: 'button', className: 'file', title: `Save ${file.name}`, on: { click: save } },
      element('span', { className: 'file-name' }, file.name),
      element('span', { className: 'file-size' }, sizeText(file.sizeBytes)),
    );
    if (SHOWN.has(file.mimeType) && file.sizeBytes <= MAX_SHOWN_BYTES) show();
    return chip;

    async function show() {
      const blob = await api.download(file.media).catch(() => undefined);
      if (blob === undefined) return;
      const src = await dataUrl(new Blob([blob], { type: file.mimeType }));
      const image = element('img', { className: 'file-image', alt: file.name, src });
      await image.decode().catch(() => undefined);
      if (image.naturalWidth > 0) keepPlace(() => chip.replaceChildren(image));
    }

    async function save() {
      try {
        const url = URL.createObjectURL(await api.download(file.media));
        element('a', { href: url, download: file.name }).click();
        setTimeout(() => URL.revokeObjectURL(url), 60_000);
      } catch (error) {
        chip.lastElementChild.textContent = error.message;
      }
    }
  }
}

function dataUrl(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(reader.result));
    reader.addEventListener('error', () => reject(reader.error));
    reader.readAsDataURL(blob);
  });
}
