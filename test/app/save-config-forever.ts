// A child process for the crash test: saves configurations of changing size until it is killed.

import { saveConfig } from '../../src/kernel/config/files/config-file.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';

const home = homeOf(process.env);

for (let round = 0; ; round += 1) {
  const allowFrom = Array.from({ length: 500 + (round % 7) * 500 }, (_, index) => String(index));
  await saveConfig(home, { version: 1, channels: { telegram: { allowFrom } } }, {});
  if (round === 0) process.stdout.write('saving\n');
}
