// Plans of the agent by conversation: stored, and shown in the chat as one checklist that is edited
// in place where the platform allows it, otherwise as a few messages. A checklist that a crash
// prevented is sent by the next process.

import { z } from 'zod';
import { type Kernel, port } from '../../kernel/feature.ts';
import { DeliveryError, ToolError } from '../../kernel/message/errors.ts';
import {
  accountName,
  type MessageId,
  messageId,
  type SessionKey,
  sessionKey,
} from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';
import { jsonRows } from '../../kernel/rows.ts';
import { type Holds, isOfChats } from '../../kernel/sessions/rules/forgetting.ts';
import { flag, number, objects, place, rowShape } from '../../lib/json/json.ts';
import { headOf } from '../../lib/text/cut.ts';
import { orAborted } from '../../lib/time/clock.ts';
import { readDescription, type Tool } from '../../tools/tool.ts';
import {
  type Checkpoint,
  checklist,
  goneBack,
  isFinished,
  MAX_CHECKPOINTS,
  type MarkedPoint,
  type Plan,
  type PlanPlace,
  planProblem,
  planText,
  pointText,
  STEP_STATES,
  type StandingNote,
  standingNote,
  type WayBack,
} from './rules/plan.ts';

type Kept = {
  readonly plan?: Plan;
  readonly checkpoints: readonly MarkedPoint[];
  readonly chat: ChatRef;
  /** Untrusted content was in the conversation when any of it was written. */
  readonly isForeign: boolean;
  /** Number of checklists sent in this conversation; part of the next message id. */
  readonly sent: number;
  /** Number of these that show this plan. */
  readonly told: number;
  /** The message that the chat shows now. */
  readonly shown?: { readonly id: MessageId; readonly markdown: string };
};

const NOTHING = { checkpoints: [], isForeign: false, sent: 0, told: 0 } as const;

const KEPT = rowShape<Kept>({
  ...{ checkpoints: objects, chat: place, isForeign: flag, sent: number, told: number },
  plan: z.looseObject({ steps: objects }).optional(),
});

export type PlanService = ReturnType<typeof openPlans>;

export type PlanParts = Pick<Kernel, 'rows' | 'bus' | 'clock' | 'log' | 'channels'>;

export const PLANS = port<PlanService>('plans');

export function install(kernel: Kernel): void {
  const plans = openPlans(kernel);
  kernel.provide(PLANS, plans);
  kernel.add.personalData(plans);
  kernel.add.task({ name: 'plans', run: (signal) => plans.run(signal) });
}

const EDIT_DEADLINE_MS = 15_000;
/** States of a message that is not delivered yet, or was delivered between two reads. */
const ON_ITS_WAY = ['queued', 'sending', 'sent'];

const KEPT_MS = 60 * 86_400_000;
/** Time between two edits, so that quick steps become one edit. */
const SHOW_EVERY_MS = 1000;
/** Limit of checklists per plan on a platform without edits. */
const MAX_TOLD = 6;

export function openPlans(parts: PlanParts) {
  const { rows, bus, clock, channels } = parts;
  const plans = rows({ ...jsonRows(KEPT), scope: 'plans', prefix: 'plan:', isCached: true });
  const dirty = new Set<string>();
  let changed = Promise.withResolvers<void>();

  async function change({ session, chat, isTainted }: PlanPlace, to: (kept: Kept) => Kept) {
    await plans.change(session, (kept = { ...NOTHING, chat }) =>
      to({ ...kept, chat, isForeign: kept.isForeign || isTainted }),
    );
    dirty.add(session);
    changed.resolve();
  }

  async function show(session: string): Promise<'done' | 'later'> {
    const kept = await plans.get(session);
    if (kept?.plan === undefined || channels.get(accountName(kept.chat)) === undefined)
      return 'done';
    const markdown = checklist(kept.plan);
    if (kept.shown?.markdown === markdown) return 'done';
    const edited = kept.shown === undefined ? 'cannot' : await edit(parts, kept.shown.id, markdown);
    if (edited === 'later') return 'later';
    const sent = edited === 'done' ? kept.sent : kept.sent + 1;
    const isTooMany = kept.told >= MAX_TOLD && !isFinished(kept.plan);
    if (edited === 'cannot' && isTooMany) return 'done';
    const id = messageId(`plan/${session}/${sent}`);
    const receipt =
      edited === 'cannot' ? await bus.send({ id, chat: kept.chat, markdown }) : undefined;
    // A killed process sent a message under this id, possibly with an earlier state of the plan.
    if (receipt === 'duplicate') {
      const edits = await edit(parts, id, markdown);
      if (edits === 'later') return 'later';
      if (edits === 'cannot') {
        await plans.change(session, (now = kept) => ({ ...now, sent }));
        return 'later';
      }
    }
    const told = edited === 'cannot' ? kept.told + 1 : kept.told;
    // A concurrent change is kept and shown next.
    await plans.change(session, (now) => now && { ...now, sent, told, shown: { id, markdown } });
    return 'done';
  }

  async function showAll(): Promise<boolean> {
    const sessions = [...dirty];
    dirty.clear();
    for (const session of sessions) if ((await show(session)) === 'later') dirty.add(session);
    return sessions.length > 0;
  }

  return {
    keep: (plan: Plan, place: PlanPlace) =>
      change(place, (kept) => {
        const isNew = kept.plan === undefined || isFinished(kept.plan);
        const { shown: _, ...rest } = kept;
        return isNew ? { ...rest, plan, told: 0 } : { ...kept, plan };
      }),
    mark: (checkpoint: Checkpoint, place: PlanPlace) =>
      change(place, (kept) => ({
        ...kept,
        checkpoints: [
          ...kept.checkpoints,
          { ...checkpoint, ...(kept.plan === undefined ? {} : { plan: kept.plan }) },
        ].slice(-MAX_CHECKPOINTS),
      })),
    /** Undefined where there are fewer checkpoints. */
    async goBack(way: WayBack, place: PlanPlace): Promise<MarkedPoint | undefined> {
      const kept = await plans.get(place.session);
      const gone = goneBack({ plan: kept?.plan, checkpoints: kept?.checkpoints ?? [] }, way);
      if (gone === undefined) return undefined;
      const { plan, checkpoints, to } = gone;
      await change(place, (now) => ({
        ...now,
        ...(plan === undefined ? {} : { plan }),
        checkpoints,
      }));
      return to;
    },
    /** The reminder for the model; undefined where no plan is in progress. */
    async note(session: SessionKey): Promise<StandingNote | undefined> {
      const kept = await plans.get(session);
      if (kept === undefined) return undefined;
      const { plan, checkpoints, isForeign } = kept;
      const text = standingNote({ plan, checkpoints });
      return text === undefined ? undefined : { text, isForeign };
    },
    async clear(session: SessionKey): Promise<void> {
      await plans.change(session, (kept) => kept && emptied(kept));
    },
    /**
     * Deletes the plans of these chats (session keys without topics) that contain the words;
     * returns how many.
     */
    async forget(chats: readonly string[], holds: Holds): Promise<number> {
      let forgotten = 0;
      for (const [session, kept] of await plans.entries()) {
        if (!isOfChats({ session: sessionKey(session) }, chats) || !holds(textsOf(kept))) continue;
        await plans.change(session, (now) => now && emptied(now));
        forgotten += 1;
      }
      return forgotten;
    },
    /** Shows changes until aborted. */
    async run(signal: AbortSignal): Promise<void> {
      await plans.expire(clock.now() - KEPT_MS);
      for (const [session, { plan, shown }] of await plans.entries()) {
        if (plan !== undefined && shown?.markdown !== checklist(plan)) dirty.add(session);
      }
      while (!signal.aborted) {
        changed = Promise.withResolvers<void>();
        const hadWork = await showAll();
        if (hadWork || dirty.size > 0)
          await clock.sleep(SHOW_EVERY_MS, signal).catch(() => undefined);
        else await orAborted(changed.promise, signal).catch(() => undefined);
      }
    },
  };
}

/** The number stays, so that no later checklist gets the id of an earlier one. */
const emptied = ({ chat, sent }: Kept): Kept => ({ ...NOTHING, chat, sent });

const textsOf = ({ plan, checkpoints, shown }: Kept) =>
  JSON.stringify({ plan, checkpoints, shown });

/** `later`: the message is not delivered yet. */
async function edit(
  { bus, log, channels }: PlanParts,
  text: MessageId,
  markdown: string,
): Promise<'done' | 'later' | 'cannot'> {
  const sent = await bus.outbound(text);
  if (sent === undefined) return 'cannot';
  const editing = channels.get(accountName(sent.chat))?.editing;
  if (editing === undefined) return 'cannot';
  const [part] = sent.parts;
  if (part === undefined) {
    const { state } = (await bus.trace(text)) ?? {};
    return state !== undefined && ON_ITS_WAY.includes(state) ? 'later' : 'cannot';
  }
  try {
    await editing.edit(sent.chat, part, markdown, AbortSignal.timeout(EDIT_DEADLINE_MS));
    return 'done';
  } catch (error) {
    if (!(error instanceof DeliveryError)) throw error;
    log.info('checklist not edited in place', { text, error });
    return 'cannot';
  }
}

// The tools of plans: a checklist for a long task, and checkpoints. The gateway stores and shows
// them.

export type Plans = Pick<PlanService, 'keep' | 'mark' | 'goBack'>;

const MAX_STEPS = 20;
const MAX_STEP_CHARS = 160;
const MAX_NOTE_CHARS = 1000;
const DETAIL_CHARS = 60;

const step = z.object({
  text: z.string().trim().min(1).max(MAX_STEP_CHARS).describe('What to do, short.'),
  status: z.enum(STEP_STATES).default('pending').describe('At most one step is doing.'),
  after: z
    .array(z.int().min(1).max(MAX_STEPS))
    .max(MAX_STEPS)
    .default([])
    .describe('Numbers of the steps that must be over first, from 1.'),
});
const planInput = z.object({
  goal: z.string().trim().min(1).max(MAX_STEP_CHARS).describe('The goal of the task.'),
  steps: z
    .array(step)
    .min(1)
    .max(MAX_STEPS)
    .describe('All steps, each time: this list replaces the plan.'),
});

export function createPlan(plans: Plans): Tool<z.infer<typeof planInput>> {
  return {
    name: 'plan',
    aliases: ['todo', 'todo_write', 'update_plan', 'make_plan', 'task_list'],
    parameterAliases: {
      goal: ['title', 'task', 'name'],
      steps: ['todos', 'items', 'plan', 'tasks'],
    },
    ...readDescription('plan'),
    access: 'say',
    input: planInput,
    describe: ({ goal }) => headOf(goal, DETAIL_CHARS),
    async run(plan, context) {
      const problem = planProblem(plan);
      if (problem !== undefined) throw new ToolError('invalid_arguments', problem);
      await plans.keep(plan, context);
      return `Kept; the person sees it as a checklist.\n${planText(plan)}`;
    },
  };
}

const note = (description: string) =>
  z.string().trim().min(1).max(MAX_NOTE_CHARS).describe(description);
const checkpointInput = z.object({
  done: note('What is done, with the names, paths and numbers that will be needed.'),
  open: note('What is left to do, and what was decided about it.'),
});

export function createCheckpoint(plans: Plans): Tool<z.infer<typeof checkpointInput>> {
  return {
    name: 'checkpoint',
    aliases: ['mark', 'save_progress', 'mark_progress'],
    parameterAliases: { done: ['completed', 'label'], open: ['remaining', 'left', 'next'] },
    ...readDescription('checkpoint'),
    access: 'say',
    input: checkpointInput,
    describe: ({ done }) => headOf(done, DETAIL_CHARS),
    async run(checkpoint, context) {
      await plans.mark(checkpoint, context);
      return 'Marked: you see it at the beginning of every turn until the conversation restarts.';
    },
  };
}

const backtrackInput = z.object({
  reason: note('Why you give up what you tried since then, so that you do not repeat it.'),
  back: z
    .int()
    .min(1)
    .max(MAX_CHECKPOINTS)
    .default(1)
    .describe('How many checkpoints to go back; 1: to the newest.'),
});

export function createBacktrack(plans: Plans): Tool<z.infer<typeof backtrackInput>> {
  return {
    name: 'backtrack',
    aliases: ['go_back', 'rollback_plan', 'revert_to_checkpoint'],
    parameterAliases: { reason: ['why', 'because'], back: ['steps', 'count'] },
    ...readDescription('backtrack'),
    access: 'say',
    input: backtrackInput,
    describe: ({ reason }) => headOf(reason, DETAIL_CHARS),
    async run(way, context) {
      const point = await plans.goBack(way, context);
      if (point === undefined) {
        throw new ToolError(
          'not_found',
          'there is no such checkpoint; set one with checkpoint first',
        );
      }
      const plan = point.plan === undefined ? '' : `\n${planText(point.plan)}`;
      return `Back at this checkpoint; find another approach. What tools did since then is not undone.\n${pointText(point)}${plan}`;
    },
  };
}
