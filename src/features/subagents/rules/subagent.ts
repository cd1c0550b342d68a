// The stored form of a subagent: one turn in a session of its own, or a series of such turns,
// started by a turn of the agent. Pure; other files start, store and report them.

import { z } from 'zod';
import { NO_RIGHTS, narrowed, type Rights, UNRESTRICTED } from '../../../kernel/access/rights.ts';
import { RequestError } from '../../../kernel/message/errors.ts';
import type { SessionKey } from '../../../kernel/message/ids.ts';
import {
  type ChatRef,
  type Payer,
  type SystemSender,
  workChannel,
} from '../../../kernel/message/message.ts';
import { personNames } from '../../../kernel/message/message-limits.ts';
import type { TurnPerson } from '../../../kernel/message/untrusted.ts';
import {
  broken,
  defined,
  givenText,
  type ReadFile,
  valueProblems,
} from '../../../lib/json/json.ts';
import { headOf } from '../../../lib/text/cut.ts';

/** A request for subagents that cannot be met; `message` says what to do instead. */
export class SubagentError extends RequestError {
  override readonly name = 'SubagentError';
  constructor(message: string) {
    super('subagent_refused', message);
  }
}

/** The end condition of a loop, checked by code. */
export type Until =
  /** A line of the answer equals this text. */
  | { readonly kind: 'line'; readonly text: string }
  /** The JSON object in the answer has this value in this field. */
  | {
      readonly kind: 'json';
      readonly field: string;
      readonly equals: string | number | boolean;
    };

export type Step = {
  readonly prompt: string;
  readonly profile?: string;
  /** Required lead in votes; 0: asked once, without a vote. */
  readonly aheadBy: number;
};

export type Plan =
  | {
      readonly kind: 'task';
      readonly task: string;
      readonly profile?: string;
      /** One voter among several with the same question; has no tools. */
      readonly isVote?: true;
    }
  | { readonly kind: 'pipeline'; readonly steps: readonly [Step, ...Step[]] }
  | {
      readonly kind: 'loop';
      readonly task: string;
      readonly profile?: string;
      readonly until: Until;
      readonly rounds: number;
    };

export type SubagentRequest = {
  readonly plan: Plan;
  readonly label?: string;
  /** A name by which a pipeline or loop is resumed. */
  readonly id?: string;
};

/** On whose behalf work runs in a session of its own, with their rights when it started. */
export type Commission = {
  readonly rights: Rights;
  readonly isTainted: boolean;
  readonly person: TurnPerson;
  /** Who pays: the chat or the job, and the person. */
  readonly payingChat: ChatRef;
  readonly payer: Pick<SystemSender, 'paidBy' | 'limits'>;
};

export const commissionOf = (
  { rights, isTainted, person }: Pick<Commission, 'rights' | 'isTainted' | 'person'>,
  payer: Payer,
): Commission => ({
  ...{ rights, isTainted, person, payingChat: payer.chat },
  payer:
    payer.sender.kind === 'person'
      ? { paidBy: personNames(payer) }
      : defined({ paidBy: payer.sender.paidBy, limits: payer.sender.limits }),
});

export const senderOf = (
  source: SystemSender['source'],
  { person, payer }: Pick<Commission, 'person' | 'payer'>,
): SystemSender => ({ kind: 'system', source, person, ...payer });

/** The turn that started it. */
export type SubagentParent = Commission & { readonly session: SessionKey; readonly chat: ChatRef };

/** The limits of a subagent: the stricter of its profile's and its parent's. */
export type Terms = {
  readonly profile?: string;
  /** Names of the allowed tools; left out: all that its rights allow. */
  readonly tools?: readonly string[];
  readonly readOnly: boolean;
  readonly model?: string;
  readonly prompt: string;
  readonly rounds?: number;
  readonly tokens: number;
  readonly minutes: number;
  /** Subagents may start subagents down to this depth; left out: as configured. */
  readonly depth?: number;
  /** Its limits are derived from earlier runs. */
  readonly isAdvised?: true;
};

/** `undecided`: a vote without a winner. */
type SubagentState = 'running' | 'done' | 'failed' | 'undecided' | 'cancelled';

/**
 * The answer of one subagent of a series. `part`: number of the step or round; `vote`: number of
 * the voter.
 */
export type PartAnswer = { readonly part: number; readonly text: string; readonly vote?: number };

export type SubagentRun = {
  readonly id: string;
  /** The name under which it can be resumed. */
  readonly name?: string;
  readonly label: string;
  readonly plan: Plan;
  readonly parent: SubagentParent;
  /** 1: started by a turn of a person. */
  readonly depth: number;
  /** The pipeline or loop it belongs to, which is notified of its end instead of the parent. */
  readonly series?: string;
  readonly terms: Terms;
  /** Attempts of a series; subagents that failed run again in the next one. */
  readonly attempt: number;
  /** Of a series. */
  readonly answers: readonly PartAnswer[];
  /** Epoch milliseconds, as everywhere here. */
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly state: SubagentState;
  /** Its answer, or why there is none. */
  readonly result?: string;
  /** The result may contain untrusted content. */
  readonly isForeign?: true;
  /** Whether the parent still has to be notified. */
  readonly telling: 'due' | 'over';
};

export const {
  channel: SUBAGENT_CHANNEL,
  chatOf: subagentChat,
  sessionOf: subagentSession,
} = workChannel('subagent');

/** A subagent sends nothing, and makes no rules and no jobs; the turn that asked does that. */
const SUBAGENT_RIGHTS: Rights = {
  ...UNRESTRICTED,
  ...{ say: 'never', send: 'never', rules: 'never', schedule: 'never', own: ['write'] },
};
const READ_ONLY_RIGHTS: Rights = { ...NO_RIGHTS, read: 'free', web: 'free', trustsFiles: true };

/** Never more than the rights of the turn that asked, at that moment. */
export function subagentRights({ parent, terms }: Pick<SubagentRun, 'parent' | 'terms'>): Rights {
  const rights = narrowed(parent.rights, SUBAGENT_RIGHTS);
  return terms.readOnly ? narrowed(rights, READ_ONLY_RIGHTS) : rights;
}

/** The stricter of both terms. */
export function narrowedTerms(own: Terms, above: Terms | undefined): Terms {
  if (above === undefined) return own;
  const tools =
    own.tools === undefined || above.tools === undefined
      ? (own.tools ?? above.tools)
      : own.tools.filter((name) => above.tools?.includes(name));
  return {
    ...own,
    ...(tools === undefined ? {} : { tools }),
    readOnly: own.readOnly || above.readOnly,
    tokens: Math.min(own.tokens, above.tokens),
    minutes: Math.min(own.minutes, above.minutes),
  };
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const MAX_LABEL_CHARS = 60;

/** Time left for its turn in milliseconds: a restart adds none. */
export const leftMs = ({ startedAt, terms }: SubagentRun, now: number) =>
  Math.max(1, startedAt + terms.minutes * MINUTE_MS - now);

/** One line without markup characters. */
export function subagentLabel(typed: string | undefined, plan: Plan): string {
  const text = typed ?? (plan.kind === 'pipeline' ? plan.steps[0].prompt : plan.task);
  const plain = text.replace(/[^\p{L}\p{M}\p{N} .,:;!?'()/+-]+/gu, ' ').replace(/\s+/g, ' ');
  return headOf(plain.trim(), MAX_LABEL_CHARS).trim() || plan.kind;
}

/** A line for people and for the model; contains the elapsed time of a running one. */
export function subagentLine(run: SubagentRun, now: number): string {
  const { id, label, plan, terms, state, startedAt, endedAt, answers } = run;
  const limit = terms.isAdvised === true ? `, ${terms.rounds} rounds by experience` : '';
  const profile = `${terms.profile === undefined ? '' : `, ${terms.profile}`}${limit}`;
  const parts = plan.kind === 'task' ? '' : `, ${answers.length} answers so far`;
  const seconds = Math.round(Math.max(0, (endedAt ?? now) - startedAt) / SECOND_MS);
  const span = seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  const how = state === 'running' ? `running for ${span}${parts}` : `${state} after ${span}`;
  return `${id} ${label} (${plan.kind}${profile}): ${how}`;
}

/** The task as the subagent gets it. */
export function taskText({ label, plan, terms }: SubagentRun): string {
  const task = plan.kind === 'task' ? plan.task : '';
  return [
    `[Task for a subagent, "${label}". Nobody reads this conversation and nobody can be asked: what you ` +
      'answer last is handed to the one who gave the task. Say what you found, what you did, and what you ' +
      'could not find or do.]',
    ...(terms.prompt === '' ? [] : [terms.prompt]),
    `Task:\n${task}`,
  ].join('\n\n');
}

/** The text before the result in the message to the parent. */
export function endText(run: SubagentRun, now: number): string {
  return (
    `[A subagent you started has ended: ${subagentLine(run, now)}. Only you see its result below. Tell the ` +
    'person what they need of it, or go on with what it was for.]'
  );
}

// Signals: what a running subagent reports to its parent before it ends, on a line that it marks
// itself. Nothing is inferred from words like "error" or "found".

/** Per subagent; more stays in its result. */
export const MAX_SIGNALS = 3;
const MAX_CHARS = 500;
const MARKED = /^[ \t]*\**CRITICAL:?\**:?[ \t]+(\S.*)$/gm;

/** For a subagent whose signals are watched. */
export const SIGNAL_NOTE =
  '[While you work, the one who gave the task sees nothing of it. Only if they must know something at once, ' +
  'because they would do something wrong or harmful without it, write a line that begins with ' +
  '"CRITICAL: " before your next call of a tool. It interrupts them; go on then.]';

export function signalsIn(text: string): readonly string[] {
  return [...text.matchAll(MARKED)].map(([, said = '']) =>
    headOf(said.replace(/\**\s*$/, ''), MAX_CHARS),
  );
}

/** The text before the subagent's signal. */
export const signalText = ({ label, id }: Pick<SubagentRun, 'label' | 'id'>) =>
  `[Your subagent "${label}" (${id}) is still running and reports something it considers critical. It ` +
  'goes on by itself and reports its end. See whether this changes what you do now; tell the person only ' +
  'if they need it.]';

// The profile of subagents: validation of a YAML file of the workspace. terms.ts reads the files.

const MAX_PROMPT_CHARS = 20_000;

const whole = (most: number) => z.int().min(1).max(most);

const profileSchema = z.strictObject({
  name: z.string().optional(),
  description: givenText(500),
  tools: z.array(givenText(64)).min(1).max(100).optional(),
  model: givenText(200).optional(),
  readOnly: z.boolean().default(false),
  limits: z
    .strictObject({
      rounds: whole(1000).optional(),
      minutes: whole(1440).optional(),
      tokens: z.int().min(1000).max(100_000_000).optional(),
    })
    .default({}),
  prompt: givenText(MAX_PROMPT_CHARS),
});

export type Profile = Readonly<z.infer<typeof profileSchema>> & { readonly name: string };

const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const FIELDS = Object.keys(profileSchema.shape);
const REMEDIES: Readonly<Record<string, string>> = {
  description: 'say in a sentence what the subagent is for',
  tools: 'list names of tools, like [read_file, web_fetch], or leave it out for all',
  model: 'write fast, default, or a name as /model takes it',
  readOnly: 'write true or false',
  'limits.rounds': 'write a whole number from 1 to 1000',
  'limits.minutes': 'write a whole number from 1 to 1440',
  'limits.tokens': 'write a whole number from 1000 to 100000000',
  limits: 'it may hold rounds, minutes and tokens',
  prompt: `write the instructions for every subagent of this kind, at most ${MAX_PROMPT_CHARS} characters`,
};

/** `values`: the parsed YAML; `name`: the file name without its ending. */
export function readProfile(values: unknown, name: string): ReadFile<Profile> {
  if (!NAME.test(name) || name.length > 60) {
    return broken(name, 'the name of the file: use small letters, digits and single hyphens');
  }
  const parsed = profileSchema.safeParse(values);
  if (parsed.success) return { kind: 'valid', value: { ...parsed.data, name } };
  return broken(name, ...valueProblems(parsed.error, values, REMEDIES, FIELDS));
}
