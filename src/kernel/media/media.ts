// CONTRACT of the media store (contents by hash, each stored once, on disk before its id is known;
// implementations pass test/contract/media.ts) and of the reader that makes contents readable for
// models.

import { NanobotError } from '../message/errors.ts';
import type { MediaId } from '../message/ids.ts';

export type StoredMedia = {
  readonly id: MediaId;
  readonly sizeBytes: number;
  /**
   * Found in the content itself, `text/plain` for readable text of any kind (also HTML and SVG);
   * `application/octet-stream` where it tells nothing.
   */
  readonly mimeType: string;
};

export type PutOptions = {
  /** More than this is refused with MediaError `media_too_large`, and nothing is kept. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
};

export interface MediaStore {
  /**
   * Keeps a content; an error of the source is thrown on as it is.
   * @throws MediaError `media_too_large`, `media_full`, `media_failed`
   */
  put(content: Uint8Array | AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredMedia>;
  /** Undefined where it was never there or has been swept. */
  read(id: MediaId): Promise<Uint8Array | undefined>;
  /** The same without the content. */
  stat(id: MediaId): Promise<StoredMedia | undefined>;
  /** Deletes it at once, unless a message under way needs it; whether it is gone. */
  remove(id: MediaId): Promise<boolean>;
  /**
   * Deletes what was not put or read for `unusedMs`, but nothing that a message under way needs;
   * returns how many bytes that freed.
   */
  sweep(unusedMs: number): Promise<number>;
}

type MediaFailure = 'media_too_large' | 'media_full' | 'media_failed';

/** A content that was not kept. */
export class MediaError extends NanobotError {
  override readonly name = 'MediaError';
  declare readonly code: MediaFailure;
  constructor(code: MediaFailure, message: string, cause?: unknown) {
    super(code, message, { cause });
  }
}

// CONTRACT of what a model gets of a stored content: the text of a document, the picture of an image.
// Nothing of it is trusted: a text comes back as others wrote it, for the caller to wrap.

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
