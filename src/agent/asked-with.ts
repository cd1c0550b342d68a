// Keeps what a model was asked with beside the conversation: its prompt, its tools, its settings and the
// rights of the turn. The answer's entry names it. Where nothing changed, nothing is written.

import type { AskedPiece, AskedWith } from '../features/request-log/rules/asked.ts';
import type { AssistantEntry } from '../kernel/message/transcript.ts';
import type { AskedNotes } from './asked-notes.ts';
import type { ModelCall } from './model-call.ts';
import { printOf, toolText } from './prints.ts';
import type { TurnContext } from './turn-context.ts';

type Named = Pick<AssistantEntry, 'asked'>;

/** The main model was asked; where it only wrote, `tools` that others call are no part of it. */
export function askedMain(turn: TurnContext, call: ModelCall, isOnlyWriting: boolean): Named {
  const { asked } = turn;
  if (asked === undefined) return {};
  const { prints } = asked;
  const { system, tools: specs, maxTokens, temperature } = call.request;
  const tools = isOnlyWriting ? undefined : specs;
  const prompt = system.flatMap(prints.ofParts);
  const told = {
    ...standing(turn, call.handle.name, asked),
    ...{ maxTokens, contextTokens: call.contextTokens },
    ...(temperature === undefined ? {} : { temperature }),
    prompt: prompt.map(({ name, print }): [string, string] => [name, print]),
    ...(tools === undefined ? {} : { tools: tools.map(prints.ofTool) }),
  };
  return kept(turn, asked, told, () => [
    ...system
      .flatMap(({ parts }) => parts)
      .flatMap(({ text }, at) => ({ print: prompt[at]?.print ?? printOf(text), text })),
    ...(tools ?? []).map((tool) => ({ print: prints.ofTool(tool), text: toolText(tool) })),
  ]);
}

/** Another model decided or spoke. */
export function askedOther(turn: TurnContext, model: string): Named {
  const { asked } = turn;
  return asked === undefined ? {} : kept(turn, asked, standing(turn, model, asked), () => []);
}

function standing(
  { input, rights }: TurnContext,
  model: string,
  { config }: AskedNotes,
): AskedWith {
  const { thinkingBudget, mode, engine } = input.settings;
  return {
    ...{ model, thinkingBudget, rights: rights.current, config: config.print },
    ...(mode === undefined ? {} : { mode }),
    ...(engine === undefined ? {} : { engine }),
  };
}

function kept(
  { input }: TurnContext,
  { book, config }: AskedNotes,
  told: AskedWith,
  pieces: () => readonly AskedPiece[],
): Named {
  const text = JSON.stringify(told);
  const ask = { print: printOf(text), text };
  book.keep(input.session, ask, () => [config, ...pieces()]);
  return { asked: ask.print };
}
