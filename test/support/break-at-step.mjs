// Loaded into a process before its program: ends it, or fills the disk, at a step of an update. BREAK_AT is
// `kill before <step>`, `kill after <step>` or `full at <step>`.

import { promises, readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const [how, when, ...words] = (process.env.BREAK_AT ?? '').split(' ');
const { rename } = promises;
promises.rename = async (from, to) => {
  const isRecord = String(to).endsWith('/update.json');
  const isMeant = isRecord && JSON.parse(readFileSync(from, 'utf8')).step === words.join(' ');
  if (!isMeant) return rename(from, to);
  if (how === 'full') {
    throw Object.assign(new Error('ENOSPC: no space left on device, rename'), { code: 'ENOSPC' });
  }
  if (when === 'after') await rename(from, to);
  process.kill(process.pid, 'SIGKILL');
};
syncBuiltinESMExports();
