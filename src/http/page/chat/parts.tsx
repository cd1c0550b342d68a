// What the parts of the chat share: icons, buttons, the calls of the API.

import type { Ref } from 'preact';

export type UploadedFile = {
  readonly media: string;
  readonly name: string;
  readonly mimeType: string;
  readonly sizeBytes: number;
};

const SAVE_MS = 60_000;

/** Of api.ts. */
export type Api = {
  getJson(path: string): Promise<unknown>;
  postJson(path: string, body: object): Promise<unknown>;
  upload(file: File, signal: AbortSignal): Promise<UploadedFile>;
};

export function Icon({ name }: { readonly name: string }) {
  return (
    <svg class="icon" aria-hidden="true">
      <use href={`/icons.svg#${name}`} />
    </svg>
  );
}

export function IconButton(props: {
  readonly icon: string;
  readonly label: string;
  readonly onClick: () => void;
  readonly class?: string;
  readonly disabled?: boolean;
  readonly hidden?: boolean;
  readonly pressed?: boolean;
  /** Of what it opens, with its name. */
  readonly expanded?: boolean;
  readonly controls?: string;
  readonly ref?: Ref<HTMLButtonElement>;
}) {
  const { icon, label, onClick } = props;
  return (
    <button
      ref={props.ref ?? null}
      type="button"
      class={`icon-button ${props.class ?? ''}`.trim()}
      title={label}
      aria-label={label}
      aria-pressed={props.pressed}
      aria-expanded={props.expanded}
      aria-controls={props.controls}
      disabled={props.disabled ?? false}
      hidden={props.hidden ?? false}
      onClick={onClick}
    >
      <Icon name={icon} />
    </button>
  );
}

export const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/** What this browser keeps under the name. */
export function storedObject<T>(key: string): Readonly<Record<string, T>> {
  try {
    return { ...JSON.parse(localStorage.getItem(key) ?? '{}') };
  } catch {
    return {};
  }
}

/** Saves it under its name. */
export function saveFile(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), SAVE_MS);
}

/** @throws TypeError for what is not in the page */
export function byId(id: string): HTMLElement {
  const node = document.getElementById(id);
  if (node === null) throw new TypeError(id);
  return node;
}
