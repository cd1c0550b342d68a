// Assembles one model call: system prompt, thread, tools and a note, with an estimate of its
// tokens.

import { workingNoteText } from '../features/memory/rules/memory-notes.ts';
import {
  describedNow,
  isScoped,
  type ShownThread,
  shownThread,
  steadyNotes,
} from '../features/steadiness/index.ts';
import { correctionNote } from '../features/steadiness/rules/claims.ts';
import { ALL_RIGHTS } from '../kernel/access/rights.ts';
import type { ModelMessage, ToolCall } from '../kernel/message/transcript.ts';
import type { OfferedTool, OfferedTools } from '../tools/tool.ts';
import { watermarkTokens } from './rules/compaction.ts';
import type { ContextReport } from './rules/context-fit.ts';
import { nodeId, nodesInView } from './rules/context-marks.ts';
import {
  buildPrompt,
  LEFT_OUT,
  type PromptSection,
  promptOf,
  sharedSection,
} from './rules/prompt.ts';
import { type TaintSource, taintSources } from './rules/taint.ts';
import {
  callBudget,
  entryTokens,
  imagesShownBy,
  imagesTokens,
  type ModelSize,
  messagesTokens,
  sized,
  textTokens,
  toolsFor,
  toolsTokens,
  toolsWithRoom,
} from './rules/tokens.ts';
import type { StateOf, TurnLimit } from './rules/turn-state.ts';
import type { ModelCall, NotedCall, TurnContext } from './turn-context.ts';

export type Asked = Pick<StateOf<'streaming'>, 'model' | 'ask' | 'cue'>;

/** As it was planned last, where nothing has changed since. @throws ProviderError `unknown_model` */
export function planCall(turn: TurnContext, asked: Asked): ModelCall {
  const { thread, rights, lastCall, expansion } = turn;
  const { model, ask, cue } = asked;
  const standsOn = [
    ...[model, ask, cue, thread.shown],
    ...[rights.current, lastCall.squeeze, expansion.note],
  ];
  const { planned } = lastCall;
  if (planned?.standsOn.every((each, index) => each === standsOn[index])) return planned.call;
  const call = plan(turn, asked);
  lastCall.planned = { call, standsOn };
  return call;
}

function plan(turn: TurnContext, asked: Asked): ModelCall {
  const { model, cue } = asked;
  const { settings, input } = turn;
  const handle = turn.models.resolve(model);
  const contextTokens = Math.min(handle.contextTokens, settings.maxContextTokens);
  const { maxReliableOutput = settings.maxTokens } = handle.capabilities;
  const maxTokens = Math.min(settings.maxTokens, maxReliableOutput);
  const budget = callBudget(contextTokens, maxTokens, turn.lastCall.squeeze);
  const { toolsTokens: maxToolsTokens, promptTokens } = budget;
  const tools = turn.toolbox.offered(turn.rights.current);
  const offered = toolsFor(tools.specs, handle, settings.smallTools);
  const withRoom = toolsWithRoom(offered, maxToolsTokens);
  const described = cue?.tools === 'none' ? [] : describedNow(turn, handle, withRoom);
  const size = { contextTokens, local: handle.local, promptTokens };
  const system = systemPrompt(turn, size, described, tools);
  const { messages, rewritten } = saidTo(turn, asked, {
    handle,
    contextTokens,
    described,
    pressure: (threadTokens) => (threadTokens + toolsTokens(described)) / budget.inputTokens,
  });
  const { specs, mayCall } = offeredTools(turn, described, messages, { maxToolsTokens, cue });
  const { thinkingBudget } = input.settings;
  return {
    handle,
    contextTokens,
    budget,
    leftOut: {
      tools: cue?.tools === 'none' ? 0 : offered.length - withRoom.length,
      prompt: leftOutOf(system),
    },
    fixedTokens:
      system.reduce((sum, { text }) => sum + textTokens(text), 0) +
      toolsTokens(specs) +
      imagesTokens(messages, handle.vision ? imagesShownBy(handle) : 0),
    threadTokens: messagesTokens(messages),
    rewritten,
    isUnsteady: rewritten > 0 || isScoped(turn, handle.local),
    request: {
      conversation: input.session,
      system,
      messages,
      tools: specs,
      maxTokens: budget.outputTokens,
      temperature: settings.temperature,
      ...(mayAct(asked) && mayCall ? {} : { toolChoice: 'none' }),
      ...(thinkingBudget > 0 ? { thinkingBudget } : {}),
    },
  };
}

const leftOutOf = (system: readonly PromptSection[]) =>
  system.some(({ parts }) => parts.some(({ name }) => name === LEFT_OUT));

/** The thread, with the notes of this call. */
function saidTo(
  turn: TurnContext,
  asked: Asked,
  {
    handle,
    contextTokens,
    described,
    pressure,
  }: Pick<ModelCall, 'handle' | 'contextTokens'> & {
    readonly described: readonly OfferedTool[];
    pressure(threadTokens: number): number;
  },
): ShownThread {
  const { messages, rewritten } = shownThread(turn, handle, described);
  const note = joined(
    workingOf(turn, contextTokens),
    standingOf(turn),
    turn.expansion.note,
    ...(asked.cue?.notes ?? []),
    ...(mayAct(asked) ? steadyNotes(turn, handle, () => pressure(messagesTokens(messages))) : []),
    noteFor(asked, turn.limits.maxRounds),
  );
  return { messages: withNote(messages, note), rewritten };
}

/**
 * Providers reject a thread with calls if no tool is described; a turn without tools is then shown
 * those of its session, with the instruction not to use them.
 */
function offeredTools(
  { toolbox }: TurnContext,
  described: readonly OfferedTool[],
  messages: readonly ModelMessage[],
  { maxToolsTokens, cue }: { readonly maxToolsTokens: number } & Pick<Asked, 'cue'>,
) {
  const hasCalls = messages.some(({ role }) => role === 'tool');
  if (described.length > 0 || !hasCalls) return { specs: described, mayCall: true };
  if (cue?.tools === 'none') return { specs: [CALLED_BY_OTHERS], mayCall: false };
  const specs = toolsWithRoom(toolbox.offered(ALL_RIGHTS).specs, maxToolsTokens);
  return { specs: specs.length === 0 ? [CALLED_BY_OTHERS] : specs, mayCall: false };
}

/** A model that only writes gets this placeholder instead of tools, the same at each call. */
const CALLED_BY_OTHERS = sized({
  name: 'called_by_another_model',
  description: 'Placeholder for the tools of another model; do not call it.',
  schema: { type: 'object', properties: {} },
});

/** The expected tokens, corrected by the provider's earlier counts. */
export function expectedTokens(turn: TurnContext, call: ModelCall): number {
  const factor = turn.correction.factor(call.handle.name);
  return Math.ceil((call.fixedTokens + call.threadTokens) * factor);
}

/** Both figures corrected. */
export function notedCall(turn: TurnContext, call: ModelCall): NotedCall {
  const { handle, fixedTokens } = call;
  const factor = turn.correction.factor(handle.name);
  return {
    handle,
    tokens: expectedTokens(turn, call),
    fixedTokens: Math.ceil(fixedTokens * factor),
  };
}

function systemPrompt(
  { prepared, settings, input, zone, sectionOf }: TurnContext,
  model: ModelSize,
  described: readonly OfferedTool[],
  tools: Pick<OfferedTools, 'guidance'>,
) {
  const { whole } = prepared.material;
  if (whole !== undefined) return promptOf(whole);
  const isDescribed = (tool: string) => described.some(({ name }) => name === tool);
  return buildPrompt(
    {
      ...prepared.material,
      profiles: isDescribed('spawn') ? prepared.material.profiles : '',
      isChecked: settings.claimCheck,
      toolGuidance: tools.guidance(isDescribed),
      workspace: settings.workspace,
      platform: process.platform,
      channel: input.chat.channel,
      chat: input.chat.chat,
      timeZone: zone,
      ...(input.person.language === undefined ? {} : { language: input.person.language }),
    },
    model,
    sectionOf,
  );
}

const MAX_SECTIONS = 16;

/**
 * The shared section of prompts, the same object while its sources are the same: conversations that
 * share it join and fingerprint its text once.
 */
export function createSections(): typeof sharedSection {
  let recent: readonly { readonly madeOf: readonly unknown[]; readonly section: PromptSection }[] =
    [];
  return (parts, model, reservedTokens) => {
    const { files, channelContext, memoryFile, ...others } = parts;
    const madeOf = [
      ...[...files, channelContext].flatMap((file) => [file?.name, file?.text]),
      others.memory && memoryFile,
      ...Object.values(others),
      ...Object.values(model),
      reservedTokens,
    ];
    const isSame = (other: readonly unknown[]) =>
      other.length === madeOf.length && other.every((each, index) => each === madeOf[index]);
    const found = recent.find((known) => isSame(known.madeOf));
    const newest = found ?? { madeOf, section: sharedSection(parts, model, reservedTokens) };
    if (newest !== recent[0]) {
      recent = [newest, ...recent.filter((known) => known !== found)].slice(0, MAX_SECTIONS);
    }
    return newest.section;
  };
}

const WRITE_ANSWER =
  '[The work is done. Write the answer for the person now, without tools, from all results above, complete in itself: they saw nothing you wrote while working. Say what is uncertain or was not done.]';

export const mayAct = ({ ask, cue }: Pick<Asked, 'ask' | 'cue'>) =>
  cue?.tools !== 'none' && (ask.kind === 'work' || (ask.kind === 'correct' && ask.mayAct));

const CONCLUDE_BECAUSE: Readonly<Record<TurnLimit, (maxRounds: number) => string>> = {
  rounds: (maxRounds) => `All ${maxRounds} rounds of tool use of this answer are used up.`,
  tokens: () => 'The tokens for this answer are nearly used up.',
  time: () => 'The time for this answer is nearly over.',
  loop: () =>
    'Only calls that were made before were asked for, twice in a row: they bring nothing new.',
};

function noteFor(asked: Asked, maxRounds: number): string | undefined {
  const { ask } = asked;
  if (ask.kind === 'answer') return WRITE_ANSWER;
  if (ask.kind === 'correct') return correctionNote(ask.sentences, mayAct(asked));
  if (ask.kind === 'conclude') {
    const why = CONCLUDE_BECAUSE[ask.why](maxRounds);
    return `[${why} Answer now, without tools, with what you know; say what is left to do.]`;
  }
  if (ask.remainingRounds === undefined || !mayAct(asked)) return undefined;
  return `[${ask.remainingRounds} of ${maxRounds} rounds of tool use remain for this answer.]`;
}

const workingOf = ({ prepared: { working } }: TurnContext, contextTokens: number) =>
  working === undefined ? undefined : workingNoteText(working, contextTokens);

/** Until the turn writes a newer plan. */
function standingOf({ thread, prepared }: TurnContext): string | undefined {
  const called = thread.answers.flatMap(({ toolCalls }) => toolCalls);
  return called.some(({ name }) => name === 'plan') ? undefined : prepared.standing?.text;
}

function joined(...notes: readonly (string | undefined)[]): string | undefined {
  const said = notes.filter((note) => note !== undefined);
  return said.length === 0 ? undefined : said.join('\n\n');
}

/** Added after the part that the next call repeats, so that the prompt cache covers that part. */
export function withNote(
  messages: readonly ModelMessage[],
  note: string | undefined,
): readonly ModelMessage[] {
  if (note === undefined) return messages;
  const last = messages.at(-1);
  if (last?.role !== 'user') return [...messages, { role: 'user', text: '', note }];
  return [...messages.slice(0, -1), { ...last, note: joined(last.note, note) ?? note }];
}

// What the next call of a session would use of the model's context window: built from the same
// prompt, tools, thread and estimates as a real call.

export function contextReport(turn: TurnContext): ContextReport {
  const { input, models, prepared, settings } = turn;
  turn.thread.open(prepared.history, [], []);
  const model = input.settings.model ?? models.defaultModel;
  const call = planCall(turn, { model, ask: { kind: 'work' } });
  const factor = turn.correction.factor(call.handle.name);
  const corrected = (tokens: number) => Math.ceil(tokens * factor);
  const { system, tools, messages } = call.request;
  const shown = call.handle.vision ? imagesShownBy(call.handle) : 0;
  const summary = prepared.history.find(({ role }) => role === 'summary');
  const summaryTokens = summary === undefined ? 0 : entryTokens(summary);
  const { working } = prepared;
  const workingTokens =
    working === undefined ? 0 : textTokens(workingNoteText(working, call.contextTokens));
  const size = { contextTokens: call.contextTokens, budget: call.budget };
  const { compaction } = settings;
  return {
    model: call.handle.name,
    contextTokens: call.contextTokens,
    inputTokens: call.budget.inputTokens,
    summedUpAbove: compaction.enabled ? watermarkTokens(compaction, size) : undefined,
    prompt: system
      .flatMap(({ parts }) => parts)
      .map(({ name, text }) => ({ name, tokens: corrected(textTokens(text)) })),
    tools: {
      count: tools.length,
      tokens: corrected(toolsTokens(tools)),
      leftOut: call.leftOut.tools,
    },
    summary: corrected(summaryTokens),
    nodes: nodesInView(prepared.history).map((node) => ({
      id: nodeId(node),
      style: node.style,
      tokens: corrected(textTokens(`${node.text}${node.untrusted ?? ''}`)),
    })),
    working: corrected(workingTokens),
    conversation: {
      messages: messages.length - (summary === undefined ? 0 : 1),
      tokens: corrected(Math.max(0, messagesTokens(messages) - summaryTokens - workingTokens)),
    },
    images: corrected(imagesTokens(messages, shown)),
    cleared: turn.thread.clearedResults,
    rewritten: call.rewritten,
    untrusted: untrustedIn(turn),
    trustedUntil: input.settings.trustedUntil,
    total: corrected(call.fixedTokens + call.threadTokens),
    isCorrected: factor !== 1,
  };
}

function untrustedIn({ prepared, toolbox }: TurnContext): readonly TaintSource[] {
  const { history, standing, working } = prepared;
  const notes = [
    ...(standing?.isForeign === true ? [{ what: 'notes of the task under way' }] : []),
    ...(working?.isForeign === true ? [{ what: 'working memory of untrusted content' }] : []),
  ];
  const told = ({ name, arguments: json }: ToolCall) => {
    const bound = toolbox.bind(name, json);
    if (bound.kind === 'refused') return `result of ${name}`;
    const { url, detail } = bound;
    if (url !== undefined && URL.canParse(url)) return `web page ${new URL(url).host}`;
    return `result of ${bound.name}${detail === '' ? '' : ` (${detail})`}`;
  };
  return [...notes, ...taintSources(history, told)];
}
