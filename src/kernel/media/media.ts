// CONTRACT of the media store (contents by hash, each stored once, on disk before its id is known;
// implementations pass test/contract/media.ts) and of the reader that makes contents readable for
// models.

import { NanobotError } from '../message/errors.ts';
import type { MediaId } from '../message/ids.ts';

export type StoredMedia = {
  readonly id: MediaId;
  readonly sizeBytes: number;
  /**
   * Detected from the content itself, `text/plain` for readable text of any kind (also HTML and
   * SVG); `application/octet-stream` if unknown.
   */
  readonly mimeType: string;
};

export type PutOptions = {
  /** More is refused with MediaError `media_too_large`, and nothing is stored. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
};

export interface MediaStore {
  /**
   * Stores a content; an error of the source is rethrown unchanged.
   * @throws MediaError `media_too_large`, `media_full`, `media_failed`, `media_unavailable`
   */
  put(content: Uint8Array | AsyncIterable<Uint8Array>, options: PutOptions): Promise<StoredMedia>;
  /**
   * Undefined if it was never stored or has been deleted.
   * @throws MediaError `media_unavailable`
   */
  read(id: MediaId): Promise<Uint8Array | undefined>;
  /** The same without the content. */
  stat(id: MediaId): Promise<StoredMedia | undefined>;
  /** Deletes it at once, unless a queued message needs it; returns whether it is gone. */
  remove(id: MediaId): Promise<boolean>;
  /**
   * Deletes what was not stored or read for `unusedMs`, except what a queued message needs; returns
   * the freed bytes.
   */
  sweep(unusedMs: number): Promise<number>;
  /** Deletes what is only a copy in this process's folder and was not used for an hour. */
  trim(): Promise<void>;
}

/**
 * Where all contents are durable while the folder of a process has copies of some. Each method may
 * throw MediaError `media_unavailable`.
 */
export interface MediaOrigin {
  /** Tells it from others; no secret. */
  readonly name: string;
  /** Stores the file's content unless it is there, and notes its use. */
  keep(id: MediaId, path: string): Promise<void>;
  fetch(id: MediaId): Promise<AsyncIterable<Uint8Array> | undefined>;
  /** Notes a use of the file's content; false if it is not there. */
  use(id: MediaId, path: string): Promise<boolean>;
  remove(id: MediaId): Promise<void>;
  /** Deletes what was not used since then, except `needed`; returns the freed bytes. */
  sweep(before: number, needed: ReadonlySet<MediaId>): Promise<number>;
}

/** `media_unavailable`: the storage cannot be reached, or refuses; it may be there later. */
type MediaFailure = 'media_too_large' | 'media_full' | 'media_failed' | 'media_unavailable';

/** A content could not be stored. */
export class MediaError extends NanobotError {
  override readonly name = 'MediaError';
  declare readonly code: MediaFailure;
  constructor(code: MediaFailure, message: string, cause?: unknown) {
    super(code, message, { cause });
  }
}

// CONTRACT of what a model gets of a stored content: the text of a document, the picture of an
// image. All of it is untrusted content, which the caller wraps.

/**
 * A page, a sheet, a slide, a chapter; a document without such parts has one section without a
 * title.
 */
export type DocumentSection = { readonly title: string; readonly text: string };

export type DocumentReading =
  | {
      readonly kind: 'text';
      readonly sections: readonly DocumentSection[];
      /** The document has more than is ever read. */
      readonly isCut: boolean;
    }
  /** `reason` as text for people, without a full stop: `it is protected by a password`. */
  | { readonly kind: 'unreadable'; readonly reason: string };

export type ImageReading =
  | {
      readonly kind: 'image';
      readonly mimeType: 'image/jpeg' | 'image/png';
      /** Upright, within the limits of every vendor, without camera metadata. */
      readonly content: Uint8Array;
    }
  | { readonly kind: 'unreadable'; readonly reason: string };

export interface MediaReader {
  /** The result is cached. @throws only the signal's reason */
  document(id: MediaId, signal: AbortSignal): Promise<DocumentReading>;
  /** The same for a content that is not in the store; not cached. */
  documentIn(content: Uint8Array, signal: AbortSignal): Promise<DocumentReading>;
  image(id: MediaId): Promise<ImageReading>;
  /** Deletes cached results of contents that were not read for `unusedMs`. */
  sweep(unusedMs: number): Promise<void>;
}
