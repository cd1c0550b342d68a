// What every phase of one turn works with.

import type { TurnLimits } from '../core/turn-state.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { MediaReader } from '../media/reader.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import type { SessionStore } from '../sessions/store.ts';
import type { Toolbox } from '../tools/tool.ts';
import type { TurnInput } from './agent.ts';
import type { AskedNotes } from './asked-notes.ts';
import type { CacheAlarm } from './cache-alarm.ts';
import type { Compactor } from './compaction.ts';
import type { Expansion } from './expansion.ts';
import type { LastCall } from './last-call.ts';
import type { TurnMode } from './modes/mode.ts';
import type { Prepared } from './prepared.ts';
import type { AgentSettings } from './settings.ts';
import type { SharedCalls } from './shared-calls.ts';
import type { SpendingGuard } from './spending.ts';
import type { Thread } from './thread.ts';
import type { TokenCorrection } from './token-correction.ts';
import type { TurnNotices } from './turn-notices.ts';
import type { TurnRights } from './turn-rights.ts';
import type { TurnTime } from './turn-time.ts';

export type TurnContext = {
  readonly input: TurnInput;
  readonly rights: TurnRights;
  readonly prepared: Prepared;
  readonly settings: AgentSettings;
  readonly limits: TurnLimits;
  /** Undefined: the main model alone does the work. */
  readonly mode: TurnMode | undefined;
  readonly models: ModelRegistry;
  readonly toolbox: Toolbox;
  readonly sessions: SessionStore;
  readonly thread: Thread;
  readonly reader: Pick<MediaReader, 'document'>;
  readonly correction: TokenCorrection;
  readonly spending: SpendingGuard;
  readonly compactor: Compactor;
  readonly cacheAlarm: CacheAlarm;
  /** Each text once while the process runs. */
  readonly tellOwner: (text: string) => void;
  /** Undefined: what models are asked with is not kept. */
  readonly asked: AskedNotes | undefined;
  /** Of this turn. */
  readonly expansion: Expansion;
  /** Of this turn. */
  readonly lastCall: LastCall;
  /** Of the person, by its name. */
  readonly zone: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborted by the person, at shutdown, or when the turn's time is up. */
  readonly signal: AbortSignal;
  readonly time: TurnTime;
  /** Of this turn. */
  readonly notices: TurnNotices;
  readonly shared: SharedCalls;
};
