// A voice message, recorded in the browser as WAV: each transcription service reads it, and what
// browsers record by themselves differs between them.

const RATE_HZ = 16_000;
const HEADER_BYTES = 44;
const SAMPLE_BYTES = 2;

export type Recording = {
  /** Undefined where nothing was recorded. */
  finish(): Promise<File | undefined>;
  cancel(): void;
};

/** @throws DOMException where the browser or the person refuses the microphone */
export async function record(): Promise<Recording> {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const recorder = new MediaRecorder(stream);
  const parts: Blob[] = [];
  recorder.addEventListener('dataavailable', ({ data }) => parts.push(data));
  const stopped = new Promise<void>((resolve) => {
    recorder.addEventListener('stop', () => resolve());
  });
  recorder.start();
  const end = () => {
    if (recorder.state !== 'inactive') recorder.stop();
    for (const track of stream.getTracks()) track.stop();
  };
  return {
    async finish() {
      end();
      await stopped;
      const whole = new Blob(parts, { type: recorder.mimeType });
      if (whole.size === 0) return undefined;
      const wav = await wavOf(await whole.arrayBuffer());
      return new File([wav], 'voice-message.wav', { type: 'audio/wav' });
    },
    cancel: end,
  };
}

async function wavOf(recorded: ArrayBuffer): Promise<ArrayBuffer> {
  const decoder = new OfflineAudioContext(1, 1, RATE_HZ);
  const audio = await decoder.decodeAudioData(recorded);
  const samples = audio.getChannelData(0);
  const bytes = samples.length * SAMPLE_BYTES;
  const view = new DataView(new ArrayBuffer(HEADER_BYTES + bytes));
  const text = (at: number, word: string) => {
    for (const [index, letter] of [...word].entries())
      view.setUint8(at + index, letter.charCodeAt(0));
  };
  text(0, 'RIFF');
  view.setUint32(4, HEADER_BYTES - 8 + bytes, true);
  text(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, RATE_HZ, true);
  view.setUint32(28, RATE_HZ * SAMPLE_BYTES, true);
  view.setUint16(32, SAMPLE_BYTES, true);
  view.setUint16(34, 8 * SAMPLE_BYTES, true);
  text(36, 'data');
  view.setUint32(40, bytes, true);
  for (const [index, sample] of samples.entries()) {
    const level = Math.max(-1, Math.min(1, sample)) * 0x7fff;
    view.setInt16(HEADER_BYTES + index * SAMPLE_BYTES, level, true);
  }
  return view.buffer;
}
