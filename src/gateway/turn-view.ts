// Folds a turn's events into the whole picture that live views show.

import type { AgentEvent, LiveUpdate, ToolActivity, TurnOutcome } from '../core/event.ts';
import type { MessageId, TurnId } from '../core/ids.ts';
import type { ChatRef } from '../core/message.ts';

export interface TurnView {
  apply(event: AgentEvent): LiveUpdate;
  /** The last picture; without an outcome the turn was cut off and may be tried again. */
  ended(outcome: TurnOutcome | undefined): LiveUpdate;
  /** The last picture where the turn goes on elsewhere. */
  moved(): LiveUpdate;
  /** Whether the person has seen anything of the answer. */
  readonly hasShown: boolean;
}

export function createTurnView(
  turnId: TurnId,
  chat: ChatRef,
  replyTo: MessageId | undefined,
): TurnView {
  let markdown = '';
  let callStart = 0;
  let notice: string | undefined;
  let phase: LiveUpdate['phase'] = 'thinking';
  let tools: readonly ToolActivity[] = [];

  const picture = (): LiveUpdate => ({
    turnId,
    chat,
    phase,
    markdown,
    tools,
    ...(replyTo === undefined ? {} : { replyTo }),
    ...(notice === undefined ? {} : { notice }),
  });

  return {
    get hasShown() {
      return markdown !== '' || tools.length > 0;
    },
    apply(event) {
      switch (event.type) {
        case 'thinking':
          phase = 'thinking';
          break;
        case 'text_delta':
          phase = 'writing';
          notice = undefined;
          markdown += event.text;
          break;
        case 'text_discarded':
          markdown = markdown.slice(0, callStart);
          break;
        case 'tool_started':
          phase = 'tool';
          tools = [...tools, { ...activityOf(event), status: 'running' }];
          break;
        case 'tool_finished':
          tools = tools.map((tool) =>
            tool.callId === event.callId
              ? { ...tool, status: event.status, preview: event.preview }
              : tool,
          );
          break;
        case 'model_called':
          if (markdown !== '' && !markdown.endsWith('\n\n')) markdown += '\n\n';
          callStart = markdown.length;
          break;
        case 'notice':
          notice = event.text;
          break;
      }
      return picture();
    },
    moved: () => ({
      ...picture(),
      phase: 'ended',
      markdown: '',
      tools: [],
      result: { kind: 'moved', answers: 0 },
    }),
    ended(outcome) {
      phase = 'ended';
      if (outcome === undefined) return picture();
      return { ...picture(), result: { kind: outcome.kind, answers: outcome.answers.length } };
    },
  };
}

function activityOf(event: Extract<AgentEvent, { type: 'tool_started' }>) {
  return { callId: event.callId, name: event.name, detail: event.detail };
}
