// Folds a turn's events into the whole picture that live views show.

import type { LiveTopic } from '../bus/bus.ts';
import type { AgentEvent, LiveUpdate, ToolActivity, TurnOutcome } from '../message/event.ts';
import type { MessageId, TurnId } from '../message/ids.ts';
import type { ChatRef } from '../message/message.ts';

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

// Shows a running turn in the chat it began in, as long as its answer will be given there. Once the
// conversation has moved, what stands there is taken away and nothing more is shown.

export type TurnShowDeps = {
  readonly live: LiveTopic;
  /** Whether the answer will be given where the turn began. */
  isHere(): Promise<boolean>;
};

export class TurnShow {
  readonly #view: TurnView;
  readonly #deps: TurnShowDeps;
  #hasMoved = false;

  constructor(view: TurnView, deps: TurnShowDeps) {
    this.#view = view;
    this.#deps = deps;
  }

  async show(event: AgentEvent): Promise<void> {
    const picture = this.#view.apply(event);
    if (await this.#isHere()) this.#deps.live.publish(picture);
  }

  async end(outcome: TurnOutcome | undefined): Promise<void> {
    if (await this.#isHere()) this.#deps.live.publish(this.#view.ended(outcome));
  }

  async #isHere(): Promise<boolean> {
    if (this.#hasMoved || (await this.#deps.isHere())) return !this.#hasMoved;
    this.#hasMoved = true;
    this.#deps.live.publish(this.#view.moved());
    return false;
  }
}
