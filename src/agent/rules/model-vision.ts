// Which models see images, by name, and how many images one call shows. Names age: the configuration
// can say otherwise of any of them.

/** The first match counts; what matches nothing is taken for blind, and the person is told. */
const SIGHT: readonly { readonly pattern: RegExp; readonly sees: boolean }[] = [
  { pattern: /embed|rerank|whisper|tts|audio|transcribe|realtime/, sees: false },
  { pattern: /vision|multimodal|omni|(?:^|[^a-z])vl(?:[^a-z]|$)|[\d.]vl/, sees: true },
  { pattern: /claude-(?:2|instant)/, sees: false },
  { pattern: /claude-/, sees: true },
  { pattern: /gpt-oss|gpt-3|(?:^|\/)o[13]-mini|o1-preview/, sees: false },
  { pattern: /gpt-4o|gpt-4\.[15]|gpt-4-turbo|gpt-[5-9]|(?:^|\/)o[134](?:-|$)/, sees: true },
  { pattern: /gemini-/, sees: true },
  { pattern: /glm-\d+(?:\.\d+)?v/, sees: true },
  { pattern: /llama-?4|gemma-?3n/, sees: true },
  { pattern: /gemma-?3.*(?:270m|[^\d]1b)/, sees: false },
  { pattern: /gemma-?[34]/, sees: true },
  { pattern: /llava|moondream|minicpm-v|pixtral|internvl|molmo|deepseek-ocr/, sees: true },
  { pattern: /mistral-(?:small-?(?:3\.[12]|4)|medium-3|large-3)|ministral-3/, sees: true },
  { pattern: /grok-[45]|kimi-k2\.[5-9]|nova-(?:lite|pro|premier)/, sees: true },
];

/** `model` with or without the vendor's prefix. */
export function seesImages(model: string): boolean {
  const lower = model.toLowerCase();
  return SIGHT.find(({ pattern }) => pattern.test(lower))?.sees ?? false;
}

/** The newest of a conversation; each costs as much as a page of text at every call. */
const MAX_IMAGES = 8;
/** A small window, and seconds of reading for each. */
const MAX_LOCAL_IMAGES = 2;

export const imagesShownBy = (model: { readonly local: boolean }) =>
  model.local ? MAX_LOCAL_IMAGES : MAX_IMAGES;
