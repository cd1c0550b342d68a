// The message bus over the embedded store keeps the contract.

import { busContract } from '../contract/bus.ts';
import { makeEmbeddedBench } from './embedded-bench.ts';

busContract('embedded bus', makeEmbeddedBench);
