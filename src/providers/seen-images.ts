// Selects which images of a thread a model receives, and loads them: the newest, if it supports
// images at all. Every other one is replaced by a line of text, so that the model can say so.

import { imagesShownBy, seesImages } from '../agent/rules/tokens.ts';
import type { Config } from '../kernel/config/config.ts';
import { type AttachedMedia, attachedTitle, shortIdOf } from '../kernel/message/attachment.ts';
import type { MediaId } from '../kernel/message/ids.ts';
import type { ModelMessage } from '../kernel/message/transcript.ts';
import type { ModelRequest } from './provider.ts';
import { isLocalVendor, prefixOf } from './rules/model-names.ts';
import type { Vendor } from './vendors.ts';

/** `blind`: the model accepts no images; `off`: the person wants none to leave the machine. */
type Sight = 'sees' | 'blind' | 'off';

export type LoadedImage =
  | {
      readonly kind: 'image';
      readonly mimeType: 'image/jpeg' | 'image/png';
      readonly base64: string;
    }
  /** `reason` as text, without a full stop. */
  | { readonly kind: 'unreadable'; readonly reason: string };

export type ImageSource = {
  /** Vendor prefix and model, as configured. */
  sightOf(model: string): Sight;
  load(id: MediaId): Promise<LoadedImage>;
};

/** Without a way to load them, images are off. */
export function createImageSource(
  { media }: Pick<Config, 'media'>,
  load?: ImageSource['load'],
): ImageSource {
  return {
    sightOf(model) {
      if (!media.images || load === undefined) return 'off';
      if (media.blindModels.includes(model)) return 'blind';
      return media.visionModels.includes(model) || seesImages(model) ? 'sees' : 'blind';
    },
    load: load ?? (async () => ({ kind: 'unreadable', reason: 'images are turned off' })),
  };
}

/** The data sent for each image; images without an entry are not shown. */
export type ShownImages = ReadonlyMap<MediaId, Extract<LoadedImage, { kind: 'image' }>>;

/** Of all images together, base64; services accept requests of 20 MB and more. */
const MAX_REQUEST_CHARS = 16_000_000;

export const NO_IMAGES: ShownImages = new Map();

type SeeingModel = ReturnType<typeof seeing>;

function seeing(vendor: Vendor, { model }: ModelRequest) {
  const usual = imagesShownBy({ local: isLocalVendor(vendor.name) });
  const maxImages = Math.min(usual, vendor.quirks.maxImages ?? usual);
  /** As configured. */
  const name = `${prefixOf(vendor.name)}/${model}`;
  return { name, maxImages };
}

/** Messages whose `images` are those that are shown; the others are replaced by text. */
async function seenMessages(
  messages: readonly ModelMessage[],
  { name, maxImages }: SeeingModel,
  source: ImageSource,
): Promise<{ readonly messages: readonly ModelMessage[]; readonly shown: ShownImages }> {
  const all = messages.flatMap(imagesOf);
  if (all.length === 0) return { messages, shown: NO_IMAGES };
  const sight = source.sightOf(name);
  const loaded = await loadNewest(sight === 'sees' ? all.slice(-maxImages) : [], source);
  const noteOf = (image: AttachedMedia): string | undefined => {
    if (sight === 'blind') return `[an image, which the model ${name} cannot see]`;
    if (sight === 'off') return '[an image, which no model is shown: images are turned off]';
    const found = loaded.get(image);
    if (found === undefined) {
      return `[${attachedTitle(image)}: no longer shown; read_document with its id shows it again]`;
    }
    return found.kind === 'unreadable'
      ? `[${attachedTitle(image)}: cannot be shown, ${found.reason}]`
      : undefined;
  };
  const shown = new Map(
    [...loaded].flatMap(([{ media }, one]) => (one.kind === 'image' ? [[media, one]] : [])),
  );
  return { messages: messages.map((message) => withNotes(message, noteOf)), shown };
}

/** The newest ones that fit into one request together. */
async function loadNewest(images: readonly AttachedMedia[], source: ImageSource) {
  const loaded = new Map<AttachedMedia, LoadedImage>();
  let room = MAX_REQUEST_CHARS;
  for (const image of images.toReversed()) {
    const found = await source.load(image.media);
    room -= found.kind === 'image' ? found.base64.length : 0;
    if (room < 0) break;
    loaded.set(image, found);
  }
  return loaded;
}

/**
 * Opens a call with the images the model can receive. If a service refuses images, or one of them,
 * the call is repeated without: an answer without a picture is better than none.
 */
export async function openShowing<Opened>(
  request: ModelRequest,
  { vendor, images }: { readonly vendor: Vendor; readonly images: ImageSource },
  open: (request: ModelRequest, shown: ShownImages) => Promise<Opened>,
): Promise<Opened> {
  const model = seeing(vendor, request);
  const { messages, shown } = await seenMessages(request.messages, model, images);
  try {
    return await open({ ...request, messages }, shown);
  } catch (error) {
    if (shown.size === 0 || !isAboutImages(error)) throw error;
    const blind = { ...images, sightOf: () => 'blind' as const };
    const without = await seenMessages(request.messages, model, blind);
    return open({ ...request, messages: without.messages }, NO_IMAGES);
  }
}

/** The vendors' wordings: "does not support image input", "Could not process image", ... */
const isAboutImages = (error: unknown) =>
  error instanceof Error &&
  'status' in error &&
  [400, 404, 413, 415, 422, 500].includes(Number(error.status)) &&
  /image|vision|multimodal|multi-modal/i.test(error.message);

const imagesOf = (message: ModelMessage) =>
  message.role === 'assistant' ? [] : (message.images ?? []);

function withNotes(
  message: ModelMessage,
  noteOf: (image: AttachedMedia) => string | undefined,
): ModelMessage {
  if (message.role === 'assistant' || message.images === undefined) return message;
  const { images, ...rest } = message;
  const notes = images.flatMap((image) => noteOf(image) ?? []);
  const seen = images.filter((image) => noteOf(image) === undefined);
  const text = [message.text, ...notes].filter((part) => part !== '').join('\n');
  return { ...rest, text, ...(seen.length === 0 ? {} : { images: seen }) };
}

/** Precedes each image, so that text can refer to it. */
export const imageLabel = (image: AttachedMedia) => `[image ${shortIdOf(image)}]`;
