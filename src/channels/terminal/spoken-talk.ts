// The spoken part of a conversation at the terminal: opened when it is first asked for; what goes
// wrong with it is said, and the conversation goes on in writing.

import type { Terminal } from '../../cli/terminal.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import type { VoiceMode } from './voice-mode.ts';

export interface SpokenTalk {
  /** Enter alone records. */
  readonly isOn: boolean;
  /** The next question; undefined where there is none. */
  listen(signal: AbortSignal): Promise<string | undefined>;
  speak(markdown: string, signal: AbortSignal): Promise<void>;
}

const HELP = 'Enter alone records the next question; /voice does too.';

export function createSpokenTalk(terminal: Terminal): SpokenTalk {
  let mode: VoiceMode | undefined;

  async function opened(): Promise<VoiceMode> {
    if (mode !== undefined) return mode;
    const { openVoiceMode } = await import('./voice-mode.ts');
    mode = await openVoiceMode(terminal);
    terminal.print(terminal.style('dim', HELP));
    return mode;
  }

  async function told<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof NanobotError)) throw error;
      terminal.print(terminal.style('yellow', `Voice: ${error.message}.`));
      return undefined;
    }
  }

  return {
    get isOn() {
      return mode !== undefined;
    },
    listen: (signal) =>
      told(async () => {
        const text = await (await opened()).listen(signal);
        if (text !== undefined) terminal.print(terminal.style('green', `> ${text}`));
        return text;
      }),
    speak: (markdown, signal) => told(async () => (await opened()).speak(markdown, signal)),
  };
}
