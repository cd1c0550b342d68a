// What the system prompt is made of, without the values of configured secrets: people write notes
// into the workspace, and some write their keys there.

import type { PromptSources } from '../agent/prompt-sources.ts';
import type { PromptFile } from '../core/prompt.ts';
import type { Redactor } from '../lib/redact.ts';

export function redactedPrompt(sources: PromptSources, redact: Redactor): PromptSources {
  const shown = (file: PromptFile): PromptFile => ({ ...file, text: redact(file.text) });
  return {
    async read(channel, notes) {
      const material = await sources.read(channel, notes);
      const { channelContext } = material;
      return {
        ...material,
        files: material.files.map(shown),
        ...(channelContext === undefined ? {} : { channelContext: shown(channelContext) }),
        memory: redact(material.memory),
        skills: redact(material.skills),
      };
    },
  };
}
