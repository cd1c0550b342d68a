// npm run bench [-- suite ...] [--against folder]: measures nanobot beside a bare bot and an agent
// bot in one run, in turn, so that their ratio holds on a machine with varying speed. Another
// checkout can run beside them. Prints Markdown for docs/benchmarks.md. With --share 0.25 each worker
// of the suite `workers` has that share of a core.

import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { age, crowd, disk, size, window } from './alone.ts';
import { backup } from './backup.ts';
import { consoleViews } from './console.ts';
import { type Contest, openContest } from './entrants.ts';
import { frames } from './frames.ts';
import { mail } from './mail.ts';
import { search } from './search.ts';
import { burst, latency, loop, memory, start } from './suites.ts';
import { whatsapp } from './whatsapp.ts';
import { workers } from './workers.ts';

const SUITES: Readonly<Record<string, (contest: Contest) => Promise<void>>> = {
  latency,
  burst,
  loop,
  start,
  memory,
  window,
  disk,
  age,
  crowd,
  size,
  whatsapp,
  mail,
  search,
  backup,
  console: consoleViews,
  frames,
  workers: () => workers(Number(values.share ?? 0)),
};
const DEFAULT_SUITES = ['latency', 'loop'];

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { against: { type: 'string' }, share: { type: 'string' } },
});
const unknown = positionals.filter((name) => !(name in SUITES));
if (unknown.length > 0) {
  console.error(
    `Unknown suite ${unknown.join(', ')}; there are ${Object.keys(SUITES).join(', ')}.`,
  );
  process.exit(2);
}
await using contest = await openContest(values.against);
const load = () => `load ${loadavg()[0]?.toFixed(1)}`;
for (const name of positionals.length > 0 ? positionals : DEFAULT_SUITES) {
  console.log(`\n## ${name}\n`);
  const machine = `Node ${process.versions.node}, ${availableParallelism()} cores, ${load()} before`;
  await SUITES[name]?.(contest);
  console.log(`\n${machine} and ${load()} after.`);
}
