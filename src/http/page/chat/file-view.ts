// Files of a message: pictures are shown, voice messages played, everything else can be saved. A content
// is fetched with the login, so it has no URL that a browser could open by itself; only pixels and
// sounds are shown.

import { t } from '/texts.js';
import { element } from '../element.ts';
import { sizeText } from './file-size.ts';
import { reasonOf } from './parts.tsx';

type ShownFile = {
  readonly media: string;
  readonly name: string;
  readonly mimeType: string;
  readonly sizeBytes: number;
};

const PICTURES = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif']);
const SOUND = /^audio\/[\w.+-]+$/;
/** Larger pictures are saved instead. */
const MAX_SHOWN_BYTES = 10_000_000;
const SAVE_MS = 60_000;

type FileApi = { download(media: string): Promise<Blob> };

export function createFileView(api: FileApi, keepPlace: (change: () => void) => void) {
  return (files: readonly ShownFile[] | undefined) => {
    if (files === undefined || files.length === 0) return undefined;
    return element('div', { className: 'files' }, ...files.map(fileNode));
  };

  function fileNode(file: ShownFile): HTMLElement {
    const size = element('span', { className: 'file-size' }, sizeText(file.sizeBytes));
    const chip = element(
      'button',
      { type: 'button', className: 'file', title: t`Save ${file.name}`, on: { click: save } },
      element('span', { className: 'file-name' }, file.name),
      size,
    );
    const isSmall = file.sizeBytes <= MAX_SHOWN_BYTES;
    if (isSmall && PICTURES.has(file.mimeType)) void show();
    if (!isSmall || !SOUND.test(file.mimeType)) return chip;
    const sound = element('span', { className: 'file-sound' }, chip);
    void play(sound);
    return sound;

    /** Undefined where it is no longer stored. */
    async function contentUrl() {
      const blob = await api.download(file.media).catch(() => undefined);
      return blob && dataUrl(new Blob([blob], { type: file.mimeType }));
    }

    async function show() {
      const src = await contentUrl();
      if (src === undefined) return;
      const image = element('img', { className: 'file-image', alt: file.name, src });
      await image.decode().catch(() => undefined);
      if (image.naturalWidth > 0) keepPlace(() => chip.replaceChildren(image));
    }

    async function play(place: HTMLElement) {
      const src = await contentUrl();
      if (src === undefined) return;
      const player = element('audio', { controls: true, preload: 'metadata', src });
      player.setAttribute('aria-label', file.name);
      keepPlace(() => place.prepend(player));
    }

    async function save() {
      try {
        const url = URL.createObjectURL(await api.download(file.media));
        element('a', { href: url, download: file.name }).click();
        setTimeout(() => URL.revokeObjectURL(url), SAVE_MS);
      } catch (error) {
        size.textContent = reasonOf(error);
      }
    }
  }
}

function dataUrl(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(String(reader.result)));
    reader.addEventListener('error', () => reject(reader.error));
    reader.readAsDataURL(blob);
  });
}
