// npm run bench [-- suite ...]: measures nanobot against a bare bot in one run, in turn, so that
// their ratio holds on a machine whose speed drifts. Prints Markdown for docs/benchmarks.md.

import { SUITES } from './suites.ts';

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in SUITES));
if (unknown.length > 0) {
  console.error(
    `Unknown suite ${unknown.join(', ')}; there are ${Object.keys(SUITES).join(', ')}.`,
  );
  process.exit(2);
}
for (const [name, suite] of Object.entries(SUITES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  console.log(`\n## ${name}\n`);
  await suite();
}
