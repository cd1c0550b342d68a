// Pictures of a turn in progress without the values of secrets. A value that is being written is
// seen as far as it goes, until it is whole.

import type { LiveUpdate } from '../core/event.ts';
import type { Redactor } from '../lib/redact.ts';

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
