// Collects the sections of a document up to the limit of what is read of one.

import { headOf } from '../../../lib/text/cut.ts';
import type { DocumentReading, DocumentSection } from '../reader.ts';
import { DocumentProblem, MAX_SECTIONS, MAX_TEXT_CHARS } from './problem.ts';

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
