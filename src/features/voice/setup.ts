// The step of the setup for voice: which engine transcribes voice messages, or speaks answers. It is saved
// once it transcribed a sound, or spoke a word.

import type { Config } from '../../kernel/config/config.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { isOnPath } from '../../lib/files/files.ts';
import { commandWords } from '../../lib/text/command-line.ts';
import { t } from '../../lib/texts.ts';
import { createCredentials } from '../../providers/credentials.ts';
import { listedModels } from '../../providers/local-servers.ts';
import {
  type Asker,
  askServer,
  type Choice,
  currentConfig,
  type Settings,
  type SetupHost,
  save,
  tryOut,
} from '../setup/asker.ts';
import { chosenEngines } from './index.ts';
import { createSpeaker } from './speak.ts';
import { createTranscriber } from './transcribe.ts';

type Part = 'transcription' | 'speech';
type Vendor = 'groq' | 'openai';

const LABELS = { groq: 'Groq', openai: 'OpenAI' } as const;
const VENDORS: Readonly<Record<Part, readonly Vendor[]>> = {
  transcription: ['groq', 'openai'],
  speech: ['openai'],
};
/** Where servers with OpenAI's audio API listen: speaches, LocalAI, Kokoro. */
const LOCAL_BASES = [8000, 8080, 8880].map((port) => `http://127.0.0.1:${port}/v1`);
const PROBE_MS = 500;
const KINDS: Readonly<Record<Part, RegExp>> = {
  transcription: /whisper|parakeet|canary|voxtral|transcri/i,
  speech: /tts|kokoro|piper|speech-?to|orpheus|chatterbox/i,
};
/** What a program is asked for: its own model is a file that only the person knows. */
const PROGRAMS: Readonly<Record<Part, readonly [program: string, line: string]>> = {
  transcription: [
    'whisper-cli',
    'whisper-cli -np -nt -m /models/ggml-small.bin -l {language} -f {file}',
  ],
  speech: ['piper', 'piper -m /models/de.onnx -f {file}'],
};
const RATE = 16_000;

export async function setUpVoice(host: SetupHost, asker: Asker): Promise<string> {
  const part = await asker.choose<Part>(
    t`What should be set up?`,
    [
      { value: 'transcription', label: t`Listening`, hint: t`voice messages become text` },
      { value: 'speech', label: t`Speaking`, hint: t`answers as voice messages` },
    ],
    'transcription',
  );
  const settings = await engineSettings(host, asker, part);
  if (settings[`voice.${part}.engine`] === 'off') {
    await save(host, settings);
    return part === 'speech' ? t`answers are text alone` : t`voice messages are not transcribed`;
  }
  const draft = await tryOut(host, settings);
  const name = await prove(host, asker, part, draft);
  await save(host, settings);
  return name;
}

async function engineSettings(host: SetupHost, asker: Asker, part: Part): Promise<Settings> {
  const { env } = host;
  const config = await currentConfig(host);
  const known = createCredentials(config, env, []);
  const found = await localEngines(part);
  const [program, line] = PROGRAMS[part];
  const isInstalled = await isOnPath(program, env);
  const choices: Choice<string>[] = [
    ...found.map(({ apiBase, model }, index) => ({
      value: `found-${index}`,
      label: model,
      hint: t`runs on this machine, at ${new URL(apiBase).host}`,
    })),
    ...VENDORS[part].map((vendor) => ({
      value: vendor,
      label: LABELS[vendor],
      hint: known.accessTo(vendor) === undefined ? t`with an API key` : t`its key is known`,
    })),
    { value: 'server', label: t`My own server`, hint: t`OpenAI-compatible API` },
    {
      value: 'command',
      label: t`A program on this machine`,
      hint: isInstalled ? t`${program} is installed` : t`e.g. ${program}`,
    },
    { value: 'off', label: t`None` },
  ];
  const answer = await asker.choose(
    part === 'speech' ? t`Who speaks answers?` : t`Who transcribes voice messages?`,
    choices,
    choices[0]?.value ?? 'off',
  );
  const fields = (values: Settings): Settings =>
    Object.fromEntries(
      Object.entries({ apiBase: '', apiKey: '', command: [], ...values }).map(([key, value]) => [
        `voice.${part}.${key}`,
        value,
      ]),
    );
  if (answer === 'off') return fields({ engine: 'off' });
  if (answer === 'command') return fields({ engine: 'command', command: await argv(asker, line) });
  if (answer === 'server') return fields(await ownServer(asker, part));
  const local = found[Number(answer.slice('found-'.length))];
  if (local !== undefined) {
    return fields({ engine: 'openai', ...local, ...(await voiceOf(asker, part, '')) });
  }
  const vendor = VENDORS[part].find((one) => one === answer) ?? 'openai';
  const model = part === 'speech' ? 'gpt-4o-mini-tts' : '';
  const voice = await voiceOf(asker, part, 'alloy');
  const chosen = fields({ engine: vendor, model, ...voice });
  const apiKey = await asker.secret({
    message:
      known.accessTo(vendor) === undefined
        ? t`API key of ${LABELS[vendor]}`
        : t`API key of ${LABELS[vendor]} (leave empty to keep the one that is known)`,
    flag: `--${vendor}-key`,
    optional: known.accessTo(vendor) !== undefined,
  });
  return apiKey === '' ? chosen : { ...chosen, [`providers.${vendor}.apiKey`]: apiKey };
}

async function localEngines(part: Part) {
  const signal = AbortSignal.timeout(PROBE_MS);
  const lists = await Promise.all(
    LOCAL_BASES.map(async (apiBase) => {
      const models = await listedModels({ apiBase, apiKey: '' }, PROBE_MS, signal);
      return models.filter((model) => KINDS[part].test(model)).map((model) => ({ apiBase, model }));
    }),
  );
  return lists.flat();
}

async function voiceOf(asker: Asker, part: Part, initial: string): Promise<Settings> {
  if (part === 'transcription') return {};
  const asked = initial === '' ? {} : { initial };
  return {
    voice: await asker.text({ message: t`Voice, by its name there`, flag: '--voice', ...asked }),
  };
}

async function ownServer(asker: Asker, part: Part): Promise<Settings> {
  const server = await askServer(asker);
  const initial = part === 'speech' ? 'gpt-4o-mini-tts' : 'whisper-1';
  const model = await asker.text({ message: t`Model name`, flag: '--model', initial });
  return { engine: 'openai', ...server, model, ...(await voiceOf(asker, part, 'alloy')) };
}

async function argv(asker: Asker, initial: string): Promise<readonly string[]> {
  const line = await asker.text({
    message: t`Command, with {file} for the audio`,
    flag: '--command',
    initial,
    check: (text) =>
      (commandWords(text) ?? []).length === 0 ? t`A quote is not closed.` : undefined,
  });
  return commandWords(line) ?? [];
}

/** @throws VoiceError */
async function prove(
  { clock, env }: SetupHost,
  asker: Asker,
  part: Part,
  draft: Config,
): Promise<string> {
  const engine = chosenEngines(draft, env)[part];
  if (engine === undefined) throw new NanobotError('voice_unset', t`The engine has no key.`);
  const name = engine.kind === 'command' ? engine.argv[0] : `${engine.name} ${engine.model}`;
  const startedAt = clock.monotonic();
  const took = () => Math.round(clock.monotonic() - startedAt);
  return asker.untilStopped((signal) =>
    asker.during(
      part === 'speech' ? t`Having ${name} speak a word` : t`Sending a test sound to ${name}`,
      async () => {
        const { transcription, speech } = chosenEngines(draft, env);
        if (part === 'speech' && speech !== undefined) {
          await createSpeaker(speech, { clock, env }).speak(t`Ready.`, signal);
        } else if (transcription !== undefined) {
          const sound = { content: testSound(), mimeType: 'audio/wav' };
          await createTranscriber(transcription, { clock, env }).transcribe(sound, signal);
        }
        return name;
      },
      () =>
        part === 'speech'
          ? t`${name} spoke in ${took()} ms.`
          : t`${name} listened in ${took()} ms.`,
    ),
  );
}

/** A second of a quiet tone, as WAV with one channel of 16 bits. */
function testSound(): Uint8Array {
  const wav = Buffer.alloc(44 + RATE * 2);
  wav.write('RIFF', 0);
  wav.writeUInt32LE(36 + RATE * 2, 4);
  wav.write('WAVEfmt ', 8);
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(RATE, 24);
  wav.writeUInt32LE(RATE * 2, 28);
  wav.writeUInt16LE(2, 32);
  wav.writeUInt16LE(16, 34);
  wav.write('data', 36);
  wav.writeUInt32LE(RATE * 2, 40);
  for (let at = 0; at < RATE; at += 1) {
    wav.writeInt16LE(Math.round(2000 * Math.sin((2 * Math.PI * 440 * at) / RATE)), 44 + at * 2);
  }
  return wav;
}
