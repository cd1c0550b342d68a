// A process that takes the home's lock, says so and holds it until it is killed.

import { holdHome } from '../../src/kernel/bus/store/home-lock.ts';

const [path = ''] = process.argv.slice(2);
await holdHome(path, { pid: process.pid, address: 'http://127.0.0.1:18790' });
process.stdout.write('held\n');
setInterval(() => undefined, 60_000);
