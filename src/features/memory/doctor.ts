// Checks the size of the memory files: one that grew too large by hand is ignored as a whole.

import { glob, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { MEMORY_FILE } from '../../agent/rules/prompt.ts';
import { type Finding, warn } from '../../cli/doctor/machine-checks.ts';
import { printable } from '../../cli/terminal.ts';
import { GROUPS_FOLDER, PEOPLE_FOLDER } from '../../kernel/message/untrusted.ts';
import { t } from '../../lib/texts.ts';
import { MAX_NOTE_BYTES } from './notes.ts';

/** @param workspace absolute path */
export async function checkMemories(workspace: string): Promise<readonly Finding[]> {
  const places = [
    MEMORY_FILE,
    `${PEOPLE_FOLDER}/*/${MEMORY_FILE}`,
    `${GROUPS_FOLDER}/*/${MEMORY_FILE}`,
  ];
  const findings: Finding[] = [];
  for await (const path of glob(places, { cwd: workspace })) {
    const { size } = await stat(join(workspace, path));
    if (size <= MAX_NOTE_BYTES) continue;
    const bytes = t`${size.toLocaleString('en')} bytes, the limit is ${MAX_NOTE_BYTES.toLocaleString('en')}`;
    const text = t`${printable(join(workspace, path))} is too large and not used: ${bytes}`;
    findings.push(warn('memory', text, t`Shorten it, or move older parts into another file.`));
  }
  return findings;
}
