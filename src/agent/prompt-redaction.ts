// What the system prompt is made of, without the values of configured secrets: people write notes
// into the workspace, and some write their keys there.

import type { LiveUpdate } from '../kernel/message/event.ts';
import type { Redactor } from '../lib/text/redact.ts';
import type { PromptSources } from './prompt-sources.ts';
import type { PromptFile } from './rules/prompt.ts';

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

// Pictures of a turn in progress without the values of secrets. A value that is being written is
// seen as far as it goes, until it is whole.

export function redactedPicture(redact: Redactor): (update: LiveUpdate) => LiveUpdate {
  return (update) => ({
    ...update,
    markdown: redact(update.markdown),
    tools: update.tools.map((tool) => ({
      ...tool,
      detail: redact(tool.detail),
      ...(tool.preview === undefined ? {} : { preview: redact(tool.preview) }),
    })),
    ...(update.notice === undefined ? {} : { notice: redact(update.notice) }),
  });
}
