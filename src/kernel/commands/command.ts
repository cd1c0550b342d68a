// What a `/command` is: when it is carried out, and what it works with. Who may give it stands in
// core/command-access.ts.

import type { Agent } from '../../agent/agent.ts';
import type { CompactionEngine } from '../../agent/rules/compaction.ts';
import type { Approvals } from '../../features/approvals/approvals.ts';
import type { Standing } from '../../features/approvals/standing.ts';
import type { Drafts } from '../../features/letters/drafts.ts';
import type { LocalModels } from '../../features/local-models/local-models.ts';
import type { MemoryDesk } from '../../features/memory/memory-desk.ts';
import type { ReflectionDesk } from '../../features/memory/reflection-desk.ts';
import type { ModeDesk } from '../../features/modes/mode-desk.ts';
import type { People } from '../../features/people/people.ts';
import type { JobAsker, JobDesk } from '../../features/schedule/schedules.ts';
import type { Skills } from '../../features/skills/skills.ts';
import type { SpendingDesk } from '../../features/spending/spending-desk.ts';
import type { HelperDesk } from '../../features/subagents/helpers.ts';
import type { WorkflowDesk } from '../../features/workflows/workflow-desk.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import type { AdmittedRole } from '../access/admission.ts';
import type { Medium } from '../access/rights.ts';
import type { MessageBus } from '../bus/bus.ts';
import type { SessionKey } from '../message/ids.ts';
import type { InboundMessage } from '../message/message.ts';
import type { AuditLog } from '../observe/telemetry.ts';
import type { SessionSettingsStore } from '../turns/session-settings.ts';
import type { ConversationDesk } from './conversation-desk.ts';

/** Lines of Markdown; none where there is nothing to say. */
export type StatusSource = (session: SessionKey) => readonly string[] | Promise<readonly string[]>;

export type CommandDeps = {
  readonly bus: MessageBus;
  readonly settings: SessionSettingsStore;
  readonly people: People;
  readonly approvals: Pick<Approvals, 'open' | 'askAgain'>;
  readonly drafts: Pick<Drafts, 'open' | 'askAgain'>;
  readonly standing: Pick<Standing, 'list' | 'takeBack'>;
  readonly spending: SpendingDesk;
  readonly jobs: {
    readonly desk: JobDesk;
    /** Undefined where nobody vouches for them, or it is not between the two of us. */
    askerOf(message: InboundMessage): Promise<JobAsker | undefined>;
  };
  readonly helpers: HelperDesk;
  readonly workflows: WorkflowDesk;
  readonly skills: Pick<Skills, 'list'>;
  models(): ModelRegistry;
  readonly local: LocalModels;
  readonly modes: ModeDesk;
  defaults(): { readonly thinkingBudget: number; readonly queueMode: 'steer' | 'followup' };
  /** What each part says of itself in `/status`. */
  status(): readonly StatusSource[];
  /** What kind of door a channel is. */
  mediumOf(channel: string): Medium;
  readonly compacting: {
    compact(
      session: SessionKey,
      message: InboundMessage,
      model: string | undefined,
      engine: CompactionEngine | undefined,
    ): ReturnType<Agent['compact']>;
    /** The engine of conversations where none was chosen. */
    configured(): CompactionEngine;
  };
  readonly memory: MemoryDesk & Pick<ReflectionDesk, 'reflect'>;
  readonly conversations: ConversationDesk;
  resetSession(session: SessionKey, message: InboundMessage): Promise<void>;
  /** Decisions that are given as commands are entered there. */
  readonly audit: AuditLog;
  /** Takes the last answer back; the words for the person. */
  undo(origin: CommandOrigin): Promise<string>;
};

/** Who gave a command, and where. */
export type CommandOrigin = {
  readonly session: SessionKey;
  readonly message: InboundMessage;
  /** Undefined where the sender was let in for one message only. */
  readonly role: AdmittedRole | undefined;
};

export type Command = {
  readonly name: string;
  readonly summary: string;
  readonly usage?: string;
  readonly timing: 'immediate' | 'in_order';
  /**
   * Doing it again changes nothing: it is done before its message is stored, so that a kill in between
   * has it done again.
   */
  readonly isRepeatable?: true;
  run(origin: CommandOrigin, argument: string, deps: CommandDeps): Promise<string>;
};
