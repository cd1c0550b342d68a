// Voice at the terminal: records a question until Enter and plays the answer, with the configured
// engines and programs.

import type { Terminal } from '../../cli/terminal.ts';
import { chosenEngines } from '../../features/voice/index.ts';
import { play, playerFor, record, recorderFor } from '../../features/voice/recording.ts';
import { speakable } from '../../features/voice/rules/speakable.ts';
import { createSpeaker } from '../../features/voice/speak.ts';
import { createTranscriber } from '../../features/voice/transcribe.ts';
import { type SpokenWords, VoiceError } from '../../features/voice/voice.ts';
import { loadConfig } from '../../kernel/config/files/config-file.ts';
import { attachmentLines } from '../../kernel/message/attachment.ts';
import { t } from '../../lib/texts.ts';
import { listenForStopKeys, readQuestion } from './screen.ts';

export type VoiceMode = Awaited<ReturnType<typeof openVoiceMode>>;

const NO_ENGINE = t`no transcription engine: add a Groq or OpenAI key, or set voice.transcription`;

/** @throws ConfigError; VoiceError if there is no engine or recorder */
export async function openVoiceMode(terminal: Terminal) {
  const { env, clock } = terminal;
  const deps = { env, clock };
  const { config } = await loadConfig(terminal.home, env);
  const { transcription, speech } = chosenEngines(config, env);
  if (transcription === undefined) throw new VoiceError('voice_command_missing', NO_ENGINE);
  const { record: recording, play: playing } = config.voice.terminal;
  const recorder = await recorderFor(recording, env);
  const transcriber = createTranscriber(transcription, deps);
  const isSpoken = speech !== undefined && config.voice.reply !== 'never';
  // Every player supports WAV.
  const heard = speech?.kind === 'server' ? ({ ...speech, format: 'wav' } as const) : speech;
  const speaker = isSpoken && heard !== undefined ? createSpeaker(heard, deps) : undefined;
  const player = speaker && (await playerFor(playing, env));

  return {
    /** The transcript for the model; undefined if the person cancelled. @throws VoiceError */
    async listen(signal: AbortSignal): Promise<string | undefined> {
      const ended = untilEnter(terminal);
      const recorded = record(recorder, ended.then(voided), deps);
      // The line is always read to its end, so that it is not taken for the next question.
      const [how] = await Promise.all([ended, recorded.catch(voided)]);
      if (how === 'cancelled') return undefined;
      return said(await transcriber.transcribe(await recorded, signal));
    },
    /** Plays the answer until a key stops it, if there is a speech engine. @throws VoiceError */
    async speak(markdown: string, signal: AbortSignal): Promise<void> {
      const text = speakable(markdown);
      if (speaker === undefined || player === undefined || text === '') return;
      const stop = new AbortController();
      using _keys = listenForStopKeys(terminal.input, () => stop.abort());
      try {
        const whole = AbortSignal.any([signal, stop.signal]);
        await play(player, await speaker.speak(text, whole), deps, whole);
      } catch (error) {
        if (!stop.signal.aborted && !signal.aborted) throw error;
      }
    },
  };
}

const voided = () => undefined;

async function untilEnter({ input, output, style }: Terminal): Promise<'done' | 'cancelled'> {
  const prompt = style('red', t`● recording, press Enter to stop `);
  const plain = { history: [], typedAhead: '', commands: [] };
  const { kind } = await readQuestion({ input, output, prompt, ...plain });
  return kind === 'text' ? 'done' : 'cancelled';
}

/** Never a command, whatever was said. */
function said({ text, language }: SpokenWords): string {
  if (text === '') throw new VoiceError('voice_malformed', t`no speech was recognised`);
  const spoken = { kind: 'words', text, ...(language === undefined ? {} : { language }) } as const;
  const content = { kind: 'unread', reason: '' } as const;
  return attachmentLines([{ kind: 'voice', content, spoken }]).join('\n');
}
