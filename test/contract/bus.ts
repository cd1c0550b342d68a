// The contract suite of the message bus: every implementation passes it on its own bench.

import type { BusProcess, MakeBusBench } from './bus-bench.ts';
import { changesContract } from './bus-changes.ts';
import { inboundContract } from './bus-inbound.ts';
import { outboundContract } from './bus-outbound.ts';
import { partsContract } from './bus-parts.ts';
import { recoveryContract } from './bus-recovery.ts';
import { upkeepContract } from './bus-upkeep.ts';

export type { BusBench, MakeBusBench } from './bus-bench.ts';

/** @param process whether it is the only one of its store */
export function busContract(
  name: string,
  makeBench: MakeBusBench,
  process: BusProcess = 'the only one',
): void {
  inboundContract(name, makeBench);
  recoveryContract(name, makeBench, process);
  outboundContract(name, makeBench);
  partsContract(name, makeBench);
  upkeepContract(name, makeBench, process);
  changesContract(name, makeBench);
}
