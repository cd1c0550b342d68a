// Lark has names for its reactions: those that stand for an emoji, and those we may set while we work.
// open.feishu.cn/document/server-docs/im-v1/message-reaction/emojis-introduce

/** What may be set on a message while it is worked on. */
export const LARK_ACKNOWLEDGEMENTS = [
  'Typing',
  'OnIt',
  'OneSecond',
  'Get',
  'OK',
  'THUMBSUP',
  'DONE',
  'HEART',
  'SMILE',
  'SALUTE',
] as const;

const EMOJI: Readonly<Record<string, string>> = {
  THUMBSUP: '👍',
  JIAYI: '👍',
  ThumbsDown: '👎',
  MinusOne: '👎',
  OK: '👌',
  DONE: '✅',
  CheckMark: '✅',
  Yes: '✅',
  CrossMark: '❌',
  No: '❌',
  HEART: '❤️',
  LOVE: '😍',
  FINGERHEART: '🫰',
  HEARTBROKEN: '💔',
  SMILE: '🙂',
  JOYFUL: '😄',
  LAUGH: '😄',
  LOL: '😂',
  WINK: '😉',
  BLUSH: '😊',
  KISS: '😘',
  THINKING: '🤔',
  WOW: '😮',
  SHOCKED: '😱',
  FROWN: '🙁',
  CRY: '😢',
  SOB: '😭',
  TEARS: '😢',
  ANGRY: '😡',
  FACEPALM: '🤦',
  SPEECHLESS: '😶',
  SLEEP: '😴',
  SICK: '🤒',
  APPLAUSE: '👏',
  CLAP: '👏',
  PRAISE: '🙌',
  SALUTE: '🫡',
  WAVE: '👋',
  SHAKE: '🤝',
  HIGHFIVE: '🙌',
  HUG: '🤗',
  MUSCLE: '💪',
  FISTBUMP: '👊',
  PARTY: '🎉',
  Fire: '🔥',
  Hundred: '💯',
  Trophy: '🏆',
  ROSE: '🌹',
  BEER: '🍺',
  Coffee: '☕',
  CAKE: '🎂',
  GIFT: '🎁',
  POOP: '💩',
  SKULL: '💀',
};

/** Undefined for a sign of Lark's own that no emoji stands for. */
export const emojiOfLark = (name: string): string | undefined =>
  Object.hasOwn(EMOJI, name) ? EMOJI[name] : undefined;

/** The name of what may be set: a name itself, or an emoji that one stands for. */
export function larkReaction(sign: string): string | undefined {
  const known: readonly string[] = LARK_ACKNOWLEDGEMENTS;
  if (known.includes(sign)) return sign;
  return Object.keys(EMOJI).find((name) => EMOJI[name] === sign);
}

// Where Lark's API is: one of its two clouds by name, or an address of one's own.

const CLOUDS: Readonly<Record<string, string>> = {
  feishu: 'https://open.feishu.cn',
  lark: 'https://open.larksuite.com',
};

/** The address without a path and without a slash at its end. */
export function larkRoot(domain: string): string {
  return (Object.hasOwn(CLOUDS, domain) ? CLOUDS[domain] : domain)?.replace(/\/+$/, '') ?? domain;
}
