// Files as text: what is no text is refused, because neither a model nor an exact edit can use it.

import { ToolError } from '../core/errors.ts';

const NUL = 0;

/** @throws ToolError execution: binary or not UTF-8 */
export function decodeText(content: Uint8Array): string {
  if (content.includes(NUL)) {
    throw new ToolError('execution', 'this is a binary file; only text files can be used');
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
  } catch (cause) {
    throw new ToolError('execution', 'the file is not UTF-8 text', { cause });
  }
}
