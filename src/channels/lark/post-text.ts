// Rich text (`post`) as the model reads it, and the pictures and films in it. Pure.
// open.feishu.cn/document/server-docs/im-v1/message-content-description/message_content

import { type Fields, fieldsOf, listOf, textOf } from '../../lib/json/json.ts';

export type PostPart = { readonly kind: 'image' | 'media'; readonly key: string };

export type PostContent = { readonly text: string; readonly files: readonly PostPart[] };

/** Events hold the post itself, some answers hold it by its language. */
export function postContent(content: Fields): PostContent {
  const inLanguage = Object.values(content)
    .map(fieldsOf)
    .find((one) => one?.['content']);
  const post = Array.isArray(content['content']) ? content : (inLanguage ?? content);
  const paragraphs = listOf(post['content']).map((line) => listOf(line).map(fieldsOf));
  const title = textOf(post['title']);
  const lines = paragraphs.map((line) => line.map((tag) => tagText(tag)).join(''));
  const text = [...(title === undefined ? [] : [`**${title}**`]), ...lines].join('\n').trim();
  return { text, files: paragraphs.flat().flatMap(fileIn) };
}

function fileIn(tag: Fields | undefined): readonly PostPart[] {
  const image = textOf(tag?.['image_key']);
  const file = textOf(tag?.['file_key']);
  if (tag?.['tag'] === 'img' && image !== undefined) return [{ kind: 'image', key: image }];
  return tag?.['tag'] === 'media' && file !== undefined ? [{ kind: 'media', key: file }] : [];
}

function tagText(tag: Fields | undefined): string {
  const text = textOf(tag?.['text']) ?? '';
  switch (tag?.['tag']) {
    case 'text':
      return styled(text, listOf(tag['style']));
    case 'a':
      return linkText(text, textOf(tag['href']));
    case 'at':
      // A key of the message's mentions, which are named later.
      return textOf(tag['user_id'])?.startsWith('@_')
        ? String(tag['user_id'])
        : `@${textOf(tag['user_name']) ?? 'somebody'}`;
    case 'emotion':
      return `:${textOf(tag['emoji_type']) ?? 'emoji'}:`;
    case 'code_block':
      return `\`\`\`${textOf(tag['language'])?.toLowerCase() ?? ''}\n${text.trimEnd()}\n\`\`\``;
    case 'hr':
      return '---';
    default:
      return text;
  }
}

const linkText = (text: string, href: string | undefined) =>
  href === undefined || href === text ? text : `[${text}](${href})`;

const MARKS = new Map<unknown, string>([
  ['bold', '**'],
  ['italic', '*'],
  ['lineThrough', '~~'],
]);

function styled(text: string, styles: readonly unknown[]): string {
  const core = text.trim();
  if (core === '') return text;
  const marks = [...new Set(styles)].flatMap((style) => MARKS.get(style) ?? []);
  const inside = marks.reduce((done, mark) => `${mark}${done}${mark}`, core);
  return text.replace(core, () => inside);
}
