// The prompt that a turn is played again with: that of then where it is on record, else that of today, and
// in either one file may be another.

import type { PromptSources } from '../../agent/prompt-sources.ts';
import { type PromptFile, titledPart, WORKSPACE_FILES } from '../../agent/rules/prompt.ts';
import type { ReplayStage } from './replay-stage.ts';

type Parts = NonNullable<ReplayStage['prompt']>;

/** A file of the workspace is replaced, any other stands where the agent's instructions do. */
export function replayedPrompt(
  real: PromptSources,
  stage: Pick<ReplayStage, 'prompt'>,
  wish: 'recorded' | 'today' | PromptFile,
): PromptSources {
  const file = typeof wish === 'string' ? undefined : placed(wish);
  return {
    async read(channel, notes) {
      const material = await real.read(channel, notes);
      const { prompt } = stage;
      if (prompt !== undefined) {
        return { ...material, whole: file === undefined ? prompt : withPart(prompt, file) };
      }
      return file === undefined ? material : { ...material, files: withFile(material.files, file) };
    },
  };
}

function placed({ name, text }: PromptFile): PromptFile {
  return { name: WORKSPACE_FILES.find((each) => each === name) ?? WORKSPACE_FILES[0], text };
}

function withFile(files: readonly PromptFile[], file: PromptFile): readonly PromptFile[] {
  return WORKSPACE_FILES.flatMap((name) =>
    name === file.name ? file : files.filter((other) => other.name === name),
  );
}

/** Where there was no such file, behind what says who the agent is. */
function withPart(parts: Parts, { name, text }: PromptFile): Parts {
  const part = titledPart(name, text);
  if (parts.some((each) => each.name === name)) {
    return parts.map((each) => (each.name === name ? part : each));
  }
  return [...parts.slice(0, 1), part, ...parts.slice(1)];
}
