// Reads one session file whole: its header, what it carries over, what it holds itself, and what of
// it is damaged. Mending is left to repair.ts.

import { withoutWhole } from '../core/kept-result.ts';
import { decodeLine, type SessionHeader } from '../core/session/file.ts';
import type { TranscriptEntry } from '../core/transcript.ts';
import { type FileLine, readLines } from './read-lines.ts';

export type FileScan = {
  readonly header: SessionHeader | undefined;
  readonly carried: readonly TranscriptEntry[];
  readonly own: readonly TranscriptEntry[];
  /** Whole lines that cannot be read. */
  readonly damaged: readonly FileLine[];
  /** What stands behind the last newline; `isWhole`: only the newline is missing. */
  readonly torn: { readonly line: FileLine; readonly isWhole: boolean } | undefined;
  /** Bytes up to the last newline. */
  readonly size: number;
  /** Bytes of the header and of what is carried. */
  readonly openingBytes: number;
};

/** @throws the error of the file system, e.g. ENOENT */
export async function scanFile(path: string): Promise<FileScan> {
  const carried: TranscriptEntry[] = [];
  const own: TranscriptEntry[] = [];
  const damaged: FileLine[] = [];
  let header: SessionHeader | undefined;
  let torn: FileScan['torn'];
  let size = 0;
  let openingBytes = 0;
  for await (const line of readLines(path)) {
    const decoded = decodeLine(line.bytes.toString('utf8'));
    const isDamaged = decoded.kind === 'damaged';
    if (!line.terminated) torn = { line, isWhole: !isDamaged };
    else size = line.start + line.length;
    if (decoded.kind === 'header') header ??= decoded.header;
    if (decoded.kind === 'entry') {
      (decoded.carried ? carried : own).push(withoutWhole(decoded.entry));
    }
    if (isDamaged && line.terminated) damaged.push(line);
    if (decoded.kind === 'header' || (decoded.kind === 'entry' && decoded.carried)) {
      openingBytes += line.length;
    }
  }
  return { header, carried, own, damaged, torn, size, openingBytes };
}

/** Whether the program ended while it opened the file: then it holds nothing of its own. */
export function isUnbegun(scan: FileScan): boolean {
  if (scan.own.length > 0 || scan.damaged.length > 0) return false;
  return scan.header === undefined || scan.carried.length < scan.header.carried;
}
