// Limits and errors of document extraction (cases E19 to E21 and X10), and the sections collected up to
// the limit.

import { headOf } from '../../../lib/text/cut.ts';
import type { DocumentReading, DocumentSection } from '../media.ts';

/** `message` is for people, without a full stop. */
export class DocumentProblem extends Error {
  override readonly name = 'DocumentProblem';
}

export const MAX_ARCHIVE_ENTRIES = 1000;
/** Of one part and of all parts together, unpacked. */
export const MAX_UNPACKED_BYTES = 100_000_000;
export const MAX_RATIO = 100;
/** Small parts may be packed better than that. */
export const FREE_UNPACKED_BYTES = 1_000_000;
/** More of a text is never read. */
export const MAX_TEXT_CHARS = 2_000_000;
const MAX_SECTIONS = 2000;

export const DAMAGED = 'it is damaged, or is not what its name says';
export const LOCKED = 'it is protected by a password';
export const TOO_LARGE = 'it takes more memory than a document may';
/** Where the process has less memory than a document may take. */
export const tooLargeHere = (bytes: number) =>
  `reading it takes more than the ${Math.floor(bytes / 1_000_000)} MB of memory that one file may take here; send a smaller file, or give the gateway more memory`;
export const TOO_SLOW = 'reading it takes too long';
export const ARCHIVE = 'it is an archive, and archives are not unpacked';
export const UNKNOWN = 'it is of a kind that cannot be read as text';

// Collects the sections of a document up to the limit of what is read of one.

export class Sections {
  readonly #sections: DocumentSection[] = [];
  #room = MAX_TEXT_CHARS;
  #isCut = false;

  /** Whether more would be thrown away. */
  get isFull(): boolean {
    return this.#isCut;
  }

  get count(): number {
    return this.#sections.length;
  }

  add(title: string, text: string): void {
    if (this.#room === 0 || this.#sections.length >= MAX_SECTIONS) this.#isCut = true;
    if (this.#isCut) return;
    const tidy = tidied(text);
    const kept = headOf(tidy, this.#room);
    this.#isCut = kept.length < tidy.length;
    this.#room -= kept.length;
    this.#sections.push({ title, text: kept });
  }

  /** @param empty said where there is no text at all */
  reading(empty: string): DocumentReading {
    if (this.#sections.every(({ text }) => text === '')) throw new DocumentProblem(empty);
    return { kind: 'text', sections: this.#sections, isCut: this.#isCut };
  }
}

function tidied(text: string): string {
  return text
    .split(/\r\n?|\n/)
    .map((line) => line.trimEnd())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .replace(/^\n+|\n+$/g, '');
}
