// Files of a message: pictures are shown, voice messages played, everything else can be saved. A content
// is fetched with the login, so it has no URL that a browser could open by itself; only pixels and
// sounds are shown.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { t } from '/texts.js';
import { set } from '../controls.tsx';
import { sizeText } from './file-size.ts';
import { reasonOf, saveFile, type UploadedFile } from './parts.tsx';

const PICTURES = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif']);
const SOUND = /^audio\/[\w.+-]+$/;
/** Larger ones are saved instead. */
const MAX_SHOWN_BYTES = 10_000_000;

export type LoadFile = (media: string) => Promise<Blob>;
type FilesProps = { readonly files: readonly UploadedFile[] | undefined; readonly load: LoadFile };

export function Files({ files = [], load }: FilesProps) {
  if (files.length === 0) return null;
  return (
    <div class="files">
      {files.map((file) => (
        <ShownFile key={file.media} {...{ file, load }} />
      ))}
    </div>
  );
}

type FileProps = { readonly file: UploadedFile; readonly load: LoadFile };

function ShownFile({ file: { media, name, mimeType, sizeBytes }, load }: FileProps) {
  const src = useSignal<string | undefined>(undefined);
  const isPictured = useSignal(false);
  const problem = useSignal('');
  const isSmall = sizeBytes <= MAX_SHOWN_BYTES;
  const isPicture = isSmall && PICTURES.has(mimeType);
  const isSound = isSmall && SOUND.test(mimeType);
  useEffect(() => {
    if (!isPicture && !isSound) return;
    const show = (blob: Blob) => dataUrl(new Blob([blob], { type: mimeType }));
    load(media)
      .then(show)
      .then(
        (url) => {
          src.value = url;
        },
        // It is no longer stored.
        () => undefined,
      );
  }, [media]);

  async function save() {
    try {
      saveFile(name, await load(media));
    } catch (error) {
      problem.value = reasonOf(error);
    }
  }

  const chip = (
    <button type="button" class="file" title={t`Save ${name}`} onClick={save}>
      {isPicture && src.value !== undefined && (
        <img
          class="file-image"
          alt={name}
          src={src.value}
          hidden={!isPictured.value}
          onLoad={set(isPictured, true)}
        />
      )}
      {!isPictured.value && (
        <>
          <span class="file-name">{name}</span>
          <span class="file-size">{problem.value || sizeText(sizeBytes)}</span>
        </>
      )}
    </button>
  );
  if (!isSound) return chip;
  return (
    <span class="file-sound">
      {src.value !== undefined && (
        // biome-ignore lint/a11y/useMediaCaption: the words of a voice message are not known
        <audio controls preload="metadata" src={src.value} aria-label={name} />
      )}
      {chip}
    </span>
  );
}

function dataUrl(blob: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(String(reader.result)));
    reader.addEventListener('error', () => reject(reader.error));
    reader.readAsDataURL(blob);
  });
}
