// CONTRACT of what a model gets of a stored content: the text of a document, the picture of an image.
// Nothing of it is trusted: a text comes back as others wrote it, for the caller to wrap.

import type { MediaId } from '../message/ids.ts';

/** A page, a sheet, a slide, a chapter; a document without such parts is one without a title. */
export type DocumentSection = { readonly title: string; readonly text: string };

export type DocumentReading =
  | {
      readonly kind: 'text';
      readonly sections: readonly DocumentSection[];
      /** There is more than is ever read of a document. */
      readonly isCut: boolean;
    }
  /** `reason` in words for people, without a full stop: `it is protected by a password`. */
  | { readonly kind: 'unreadable'; readonly reason: string };

export type ImageReading =
  | {
      readonly kind: 'image';
      readonly mimeType: 'image/jpeg' | 'image/png';
      /** Upright, within what every vendor takes, without what the camera noted. */
      readonly content: Uint8Array;
    }
  | { readonly kind: 'unreadable'; readonly reason: string };

export interface MediaReader {
  /** What was read once is kept. @throws the signal's reason, nothing else */
  document(id: MediaId, signal: AbortSignal): Promise<DocumentReading>;
  /** The same of a content that is not in the store; nothing is kept. */
  documentIn(content: Uint8Array, signal: AbortSignal): Promise<DocumentReading>;
  image(id: MediaId): Promise<ImageReading>;
  /** Deletes what was kept of contents that were not read for `unusedMs`. */
  sweep(unusedMs: number): Promise<void>;
}
