// Keys while the agent answers: Esc or Ctrl+C stops the answer; what else is typed waits for the
// next question.

const ESC = '\x1b';
const CTRL_C = '\x03';
/** ECMA-48 5.4, and what keypads send. */
const SEQUENCES = new RegExp(`${ESC}(?:\\[[0-?]*[ -/]*[@-~]|O[ -~])`, 'g');

export interface StopKeys extends Disposable {
  readonly typedAhead: string;
}

export function listenForStopKeys(
  input: NodeJS.ReadStream,
  onStop: (key: 'escape' | 'interrupt') => void,
): StopKeys {
  let typedAhead = '';
  const onData = (chunk: Buffer) => {
    const text = chunk.toString();
    if (text.includes(CTRL_C)) onStop('interrupt');
    else if (text === ESC) onStop('escape');
    else typedAhead += wordsOf(text);
  };
  input.setRawMode(true);
  input.on('data', onData);
  input.resume();
  return {
    get typedAhead() {
      return typedAhead;
    },
    [Symbol.dispose]() {
      input.off('data', onData);
      input.setRawMode(false);
      input.pause();
    },
  };
}

/** Arrows and the like are no words, and an Enter between two lines parts them. */
function wordsOf(keys: string): string {
  return keys
    .replace(SEQUENCES, '')
    .replace(/[\r\n]+/g, ' ')
    .replace(/\p{Cc}/gu, '');
}
