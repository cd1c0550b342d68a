// The contract suite of the message bus: every implementation passes it on its own bench.

import type { MakeBusBench } from './bus-bench.ts';
import { changesContract } from './bus-changes.ts';
import { inboundContract } from './bus-inbound.ts';
import { outboundContract } from './bus-outbound.ts';
import { partsContract } from './bus-parts.ts';
import { recoveryContract } from './bus-recovery.ts';
import { upkeepContract } from './bus-upkeep.ts';

export type { BusBench, MakeBusBench } from './bus-bench.ts';

export function busContract(name: string, makeBench: MakeBusBench): void {
  inboundContract(name, makeBench);
  recoveryContract(name, makeBench);
  outboundContract(name, makeBench);
  partsContract(name, makeBench);
  upkeepContract(name, makeBench);
  changesContract(name, makeBench);
}
