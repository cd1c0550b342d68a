// CONTRACT of a tool and of the toolbox, and tool descriptions read from descriptions/<tool>.md at
// start-up (first paragraph: schema; rest: system prompt).

import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import type { PersonQuestion } from '../kernel/access/person.ts';
import type { Reach, Rights, ToolAccess } from '../kernel/access/rights.ts';
import type { AttachedMedia, OutboundAttachment } from '../kernel/message/attachment.ts';
import type { ToolFailureKind } from '../kernel/message/errors.ts';
import type { MediaId, SessionKey, TurnId } from '../kernel/message/ids.ts';
import type { ChatRef, Letter, Payer } from '../kernel/message/message.ts';
import type { TurnPerson } from '../kernel/message/untrusted.ts';
import type { RequestWords } from '../kernel/questions/rules/question-text.ts';
import type { ParameterAliases } from '../lib/json/coerce.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { ToolSpec } from '../providers/provider.ts';

export type ToolContext = {
  readonly session: SessionKey;
  readonly turnId: TurnId;
  readonly chat: ChatRef;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Absolute path of the folder that file tools are confined to. */
  readonly workspace: string;
  /** What the turn may do; the agent has asked them already for the call's own access. */
  readonly rights: Rights;
  /** The conversation shows words of others. */
  readonly isTainted: boolean;
  /** Of a call that an owner allowed: what it stood on when they were asked, as `sealOf` said. */
  readonly seal?: string | undefined;
  /** Of a call that an owner allowed: when they were asked, epoch milliseconds. */
  readonly askedAt?: number;
  /** When the message arrived that the call serves, epoch milliseconds; left out outside of a turn. */
  readonly requestedAt?: number | undefined;
  /** Left out: every tool that there is may be used. */
  mayUse?(tool: string): boolean;
  /** Whose turn it is: no tool reaches the notes of others. */
  readonly person: TurnPerson;
  /** Whose message it answers, who pays for its model calls; left out outside of a turn. */
  readonly payer?: Payer;
  /** What came with the messages of this conversation, oldest first; left out outside of a turn. */
  readonly attached?: readonly AttachedMedia[];
  /** It came with a message that holds only the person's own words; left out outside of a turn. */
  isOwnMedia?(media: MediaId): boolean;
  /** Of a tool that taints: this result holds nothing that others wrote. */
  own?(): void;
  /** Shows the model an image with the result; left out outside of a turn. */
  show?(image: AttachedMedia): void;
  /**
   * Hands over a text for somebody else, which is sent or shown to an owner first; what came of it.
   * Left out outside of a turn. @throws ToolError
   */
  post?(letter: Letter): Promise<string>;
  /**
   * Asks the person of the chat; what to tell the model. The answer begins a later turn. Left out
   * outside of a turn. @throws ToolError
   */
  ask?(question: PersonQuestion): Promise<string>;
  /** Sends a text, files or both to the current chat at once; a retry of the call sends once. */
  say(markdown: string, attachments?: readonly OutboundAttachment[]): Promise<void>;
};

/** Another name models use for a tool; `implies`: arguments that name stands for, where none are given. */
type ToolAlias =
  | string
  | { readonly name: string; readonly implies: Readonly<Record<string, unknown>> };

export type Tool<Input = unknown> = {
  readonly name: string;
  /** Case, `_` and `-` do not count. A real name always wins over an alias. */
  readonly aliases?: readonly ToolAlias[];
  /** Other names of a parameter, by the name that is meant. */
  readonly parameterAliases?: ParameterAliases;
  readonly description: string;
  /** When to use it and when not; goes into the system prompt. */
  readonly guidance?: string;
  /** What it does to the world; a turn that never may is not offered it. */
  readonly access: ToolAccess;
  /** What this call does, where that depends on its input or on what was read before. */
  accessOf?(input: Input, isTainted: boolean): ToolAccess;
  /** How far the effects of this call go; left out: they can leave this machine. */
  reachOf?(input: Input): Reach;
  /** Some of its calls concern only the asker's own notes or reminders: see `own` of the rights. */
  readonly isForOneself?: true;
  /** This call only hands over a letter: whether an owner is asked is found out from that. */
  isPosted?(input: Input): boolean;
  /** The address on the net that this call asks. */
  urlOf?(input: Input): string;
  /** Its result holds words of others: the toolbox wraps it, and the conversation is tainted. */
  readonly taints?: true;
  /** Of a tool that taints: whether this input, or what it found, is only what the person wrote. */
  isOwn?(input: Input, found: string): boolean;
  /** Such a result is shown as it is, where it has to be copied to the letter. */
  readonly isVerbatim?: true;
  readonly input: z.ZodType<Input>;
  /** JSON Schema of the arguments as the model is shown it; left out: that of `input`. */
  readonly schema?: Readonly<Record<string, unknown>>;
  /**
   * Whether it can work now: its key is there, its program was found. Asked at every model call, so
   * it only looks at what is known already. A tool that cannot work does not exist for the model.
   */
  isAvailable?(): boolean;
  /** Why it is not available, for people and for the model. */
  unavailableBecause?(): string;
  /** Longest run of this call, milliseconds, where it is not the configured one of all tools. */
  timeoutMs?(input: Input): number;
  /** What an allow rule given for this call is bound to; left out: to all its arguments. */
  standing?(input: Input): StandingTerms;
  /** What an owner is asked before this call; left out: its arguments, a line each. */
  requestOf?(input: Input, at: RequestMoment): RequestWords | undefined;
  /** An owner is asked each time, also where the rights let it run. */
  readonly alwaysAsks?: true;
  /**
   * What the call stands on beside its arguments, e.g. the content of a program, a line each. An owner
   * who is asked says yes to that as well, and `run` compares it as late as it can. @throws ToolError
   */
  sealOf?(input: Input, context: Pick<ToolContext, 'workspace'>): Promise<string>;
  /** Short text for people that says what a call is about, e.g. the path. */
  describe(input: Input): string;
  /** The result text for the model. @throws ToolError */
  run(input: Input, context: ToolContext): Promise<string>;
};

/** When and for whom something is asked for. `timeZone`: empty = the machine's. */
export type RequestMoment = { readonly now: number; readonly timeZone: string };

/** What an allow rule holds for, beside the tool and what it stands on. */
export type StandingTerms = {
  /** Equal for calls that an owner would take for the same one. */
  readonly pattern: string;
  /** What that is, for people; left out: exactly this call. */
  readonly scope?: string;
  /** The first approval is meant for all later calls too. */
  readonly asksOnce?: boolean;
};

/** `text` is no longer than the toolbox's limit, the lines around words of others not counted. */
export type ToolOutcome = {
  readonly status: 'ok' | 'failed';
  readonly text: string;
  /** All of it, where `text` had to be cut; without lines around words of others. */
  readonly whole?: string;
  /** Of a call that failed: why. */
  readonly failure?: ToolFailureKind;
  /** It holds words of others. */
  readonly isForeign?: true;
};

export type OfferedTool = ToolSpec & { readonly jsonChars: number };

type OfferedTools = {
  readonly specs: readonly OfferedTool[];
  /** The guidance of all of them, for the system prompt. */
  readonly guidance: string;
};

/** A call after lookup, coercion and validation; `run` never throws. */
export type BoundCall =
  | {
      readonly kind: 'ready';
      readonly name: string;
      readonly access: ToolAccess;
      accessIn(turn: { readonly isTainted: boolean }): ToolAccess;
      readonly reach: Reach;
      readonly isPosted: boolean;
      /** The address on the net that it asks. */
      readonly url: string | undefined;
      /** The arguments as they were understood, JSON: bound again, they mean the same call. */
      readonly arguments: string;
      readonly detail: string;
      /** What a yes is bound to beside the arguments; an outcome where it could not be run anyway. */
      seal(context: Pick<ToolContext, 'workspace'>): Promise<string | undefined | ToolOutcome>;
      request?(at: RequestMoment): RequestWords | undefined;
      /** An owner is asked each time, whatever the rights are. */
      readonly alwaysAsks?: boolean;
      /** Left out: an owner is asked each time. To be asked for after `seal`. */
      standing?(): StandingTerms;
      run(context: ToolContext): Promise<ToolOutcome>;
    }
  /** Unknown tool or bad input; `outcome` explains the valid shape to the model. */
  | { readonly kind: 'refused'; readonly name: string; readonly outcome: ToolOutcome };

/** A tool that is switched on and cannot work. */
export type MissingTool = { readonly name: string; readonly reason: string };

export interface Toolbox {
  /** What a turn of these rights is offered, of the tools it may use. */
  offered(rights: Rights, mayUse?: (tool: string) => boolean): OfferedTools;
  /** `argumentsJson` is the model's text, verbatim. */
  bind(name: string, argumentsJson: string): BoundCall;
  missing(): readonly MissingTool[];
}

// What a tool tells the model, from descriptions/<tool>.md: the first paragraph goes with the
// tool's schema, the rest, when to use it and when not, into the system prompt. Read at start-up.

export function readDescription(tool: string) {
  const text = readFileSync(new URL(`./descriptions/${tool}.md`, import.meta.url), 'utf8').trim();
  const end = text.indexOf('\n\n');
  if (end < 0) return { description: text, guidance: '' };
  return { description: text.slice(0, end), guidance: text.slice(end).trim() };
}

/** A tool with its texts; the type of its input follows from the schema. */
export const defineTool = <Schema extends z.ZodType>(
  tool: Omit<Tool<z.infer<Schema>>, 'description' | 'guidance' | 'input'> & {
    readonly input: Schema;
  },
): Tool<z.infer<Schema>> => ({ ...tool, ...readDescription(tool.name) }) as Tool<z.infer<Schema>>;
